"""Two audits side by side: what changed, and whether what they found differs beyond chance.

The interval of a difference b - a comes from those of a and b, each with its own distances
(Newcombe 1998, method 10; Zou and Donner 2008 for figures that are no shares):

    b - a - sqrt((b - low_b)^2 + (high_a - a)^2)   to   b - a + sqrt((high_b - b)^2 + (a - low_a)^2)

Both audits are taken for independent. Where they are of the same people, what is right in one
tends to be right in the other, and the interval is wider than it need be.
"""

from dataclasses import asdict, dataclass
from math import hypot
from typing import Any

from countleak.audit.report.record import Record
from countleak.audit.report.report import Report
from countleak.shares import percent

Interval = tuple[float, float]


@dataclass(frozen=True)
class Change:
    """Something that the two audits do not have in common."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """A figure before and after, with the difference; ``beyond_chance`` if its interval omits 0."""

    what: str
    before: float
    after: float
    before_interval: Interval
    after_interval: Interval
    difference: float
    interval: Interval
    beyond_chance: bool


@dataclass(frozen=True)
class Comparison:
    """The ``headline``, what differs in figures, what changed, and what to be careful of."""

    headline: str
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    cautions: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """All of it as plain fields."""
        return asdict(self)


def compare(before: Report, after: Report) -> Comparison:
    """What two audits have found, compared."""
    differences = tuple(_differences(before.audit, after.audit))
    cautions = tuple(_cautions(before.audit, after.audit))
    headline = _headline(differences)
    return Comparison(headline, differences, tuple(_changes(before, after)), cautions)


def difference_of(
    what: str, before: tuple[float, Interval], after: tuple[float, Interval]
) -> Difference:
    """The difference of two figures that have intervals."""
    (a, (low_a, high_a)), (b, (low_b, high_b)) = before, after
    change = b - a
    low = change - hypot(b - low_b, high_a - a)
    high = change + hypot(high_b - b, a - low_a)
    beyond = low > 0 or high < 0
    return Difference(what, a, b, (low_a, high_a), (low_b, high_b), change, (low, high), beyond)


def _differences(before: Record, after: Record) -> list[Difference]:
    found = []
    for what, of in FIGURES.items():
        a, b = of(before), of(after)
        if a is not None and b is not None:
            found.append(difference_of(what, a, b))
    return found


def _advantage(record: Record) -> tuple[float, Interval] | None:
    score = record.score
    if score is None or score.advantage is None or score.advantage_interval is None:
        return None
    return score.advantage, score.advantage_interval


def _accuracy(record: Record) -> tuple[float, Interval] | None:
    score = record.score
    if score is None or score.accuracy is None or score.interval is None:
        return None
    return score.accuracy, score.interval


def _risk(record: Record) -> tuple[float, Interval] | None:
    control = record.control
    return None if control is None else (control.risk, control.interval)


def _expected(record: Record) -> tuple[float, Interval] | None:
    expected = record.expected
    return None if expected is None else (expected.share, expected.interval)


# The first that both audits have makes the headline. What is expected is no success rate.
FIGURES = {
    "advantage over guessing": _advantage,
    "share of guesses right": _accuracy,
    "risk against control": _risk,
    "share expected right, by the attack itself": _expected,
}


def _headline(differences: tuple[Difference, ...]) -> str:
    if not differences:
        return "Nothing can be compared: the two audits have no figure in common"
    first = differences[0]
    low, high = (f"{100 * end:+.1f}" for end in first.interval)
    size = f"{100 * first.difference:+.1f} points, 95% interval {low} to {high}"
    figures = f"{percent(first.before)} before, {percent(first.after)} after ({size})"
    if not first.beyond_chance:
        return f"No difference beyond chance: the {first.what} is {figures}"
    direction = "Less leaks" if first.difference < 0 else "More leaks"
    return f"{direction}: the {first.what} is {figures}"


def _changes(before: Report, after: Report) -> list[Change]:
    return [
        Change(what, a, b)
        for (what, a), (_, b) in zip(_settings(before), _settings(after), strict=True)
        if a != b
    ]


def _settings(report: Report) -> list[tuple[str, str]]:
    """What describes an audit, each in words."""
    audit = report.audit
    noise = "not known" if audit.residuals is None else f"SD {audit.residuals.sd:.3g}"
    return [
        ("verdict", report.verdict.headline),
        ("system", audit.system),
        ("secret", audit.secret),
        ("people", f"{audit.people:,}"),
        ("questions", audit.asked.family),
        ("answers", f"{audit.asked.answers:,}"),
        ("suppressed", f"{audit.asked.suppressed:,}"),
        ("noise left over", noise),
        ("stated of the system", "; ".join(audit.method.stated) or "nothing"),
        ("decoder", audit.method.decoder),
        ("countleak", audit.versions.get("countleak", "not known")),
    ]


def _cautions(before: Record, after: Record) -> list[str]:
    found = []
    if before.secret != after.secret:
        found.append(f"They are about different secrets: {before.secret} and {after.secret}.")
    if before.people != after.people:
        found.append(f"They are about {before.people:,} and {after.people:,} people.")
    if before.asked.answers != after.asked.answers:
        found.append("They asked different numbers of questions, which alone makes a difference.")
    for name, record in (("before", before), ("after", after)):
        if record.judged.nothing:
            found.append(f"The audit {name} shows nothing: {record.judged.nothing}.")
        elif record.method.misfit:
            found.append(f"The model of the audit {name} does not fit: {record.method.misfit}.")
        elif record.score is None:
            found.append(
                f"The truth is not known to the audit {name}: it gives a confidence, not a "
                "success rate."
            )
    found.append("That less leaks to this attack is no proof of anonymity.")
    return found
