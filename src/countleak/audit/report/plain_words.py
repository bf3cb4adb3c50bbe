"""What an audit found, in the words of somebody who knows neither statistics nor the tool."""

from dataclasses import dataclass

from countleak.audit.report.record import Record
from countleak.audit.report.remedy import Remedy
from countleak.audit.report.report import Report
from countleak.audit.report.verdict import Outcome
from countleak.foreign import brief
from countleak.shares import percent

# Families whose questions are about groups of people by what is known of everyone.
GROUPING = ("tables", "ranges")


@dataclass(frozen=True)
class Row:
    """A line of a table: what it is, its value, and what that means."""

    name: str
    value: str
    meaning: str


def facts(report: Report) -> list[Row]:
    """The figures under the verdict."""
    audit, score = report.audit, report.audit.score
    usual = "the mean" if audit.kind == "number" else "the commonest value"
    rows = []
    if score is not None and score.accuracy is not None and score.interval is not None:
        rows += [
            Row("guesses right", percent(score.accuracy), interval(score.interval)),
            Row("guessing without answers", percent(score.baseline), f"{usual} for everyone"),
        ]
        if score.advantage is not None and score.advantage_interval is not None:
            scale = "0% is guessing, 100% knowing everyone"
            between = f"{scale}; {interval(score.advantage_interval)}"
            rows.append(Row("advantage over guessing", percent(score.advantage), between))
    elif audit.expected is not None:
        expected = audit.expected
        rows.append(Row("expected right", percent(expected.share), interval(expected.interval)))
    forced = report.people.proven or report.people.implied
    if forced and score is None:
        how = "proven" if report.people.proven else "implied"
        rows.append(Row(f"people {how}", f"{forced:,}", f"of {audit.people:,}"))
    suppressed = (
        f"{audit.asked.suppressed:,} suppressed" if audit.asked.suppressed else "none suppressed"
    )
    rows.append(Row("answers", f"{audit.asked.answers:,}", suppressed))
    return rows


def meaning(report: Report) -> list[Row]:
    """What was done, what that means and what to do, in plain words."""
    audit = report.audit
    how = "was simulated on this machine" if audit.simulated else "was asked"
    what = "sums" if audit.kind == "number" else "counts"
    done = (
        f"A system that answers {what} {how}: {audit.asked.answers:,} {what} about "
        f"{audit.people:,} people. From these alone, knowing {granted(audit)}, a program tried to "
        "work out each person's secret."
    )
    return [
        Row("What was done", "", done),
        Row("What it means", "", _consequence(report)),
        Row("What to do", "", _advice(report)),
    ]


def _consequence(report: Report) -> str:
    score, audit = report.audit.score, report.audit
    match report.verdict.outcome:
        case Outcome.LEAKS if score is not None and score.advantage is not None:
            rest = (
                "The answers tell the rest."
                if score.advantage == 1
                else f"The answers close {percent(score.advantage)} of the gap between that and "
                "knowing everything."
            )
            return (
                f"Without any answer, the best guess is right for {percent(score.baseline)} of the "
                f"people. {rest} Whoever may ask this system can do the same."
            )
        case Outcome.LEAKS:
            return "Whoever may ask this system can do the same, and prove it."
        case Outcome.CONFIDENCE:
            return (
                "The attack says how sure it is, but nobody has checked it against the truth. "
                "Treat the people it is sure about as known until that is done."
            )
        case Outcome.NOT_SHOWN:
            below = score is not None and (score.advantage_interval or (0.0, 0.0))[1] < 0
            did = (
                "did worse than guessing the commonest value for everyone"
                if below
                else "did not beat guessing by more than chance"
            )
            return (
                f"About {brief(audit.secret)} this attack, with these questions, {did}. That is no "
                "proof of anonymity."
            )
    return "The audit has not passed, and has not failed. It cannot be used as evidence."


def _advice(report: Report) -> str:
    remedy, outcome = report.audit.remedy, report.verdict.outcome
    if outcome in (Outcome.NOTHING, Outcome.MISFIT):
        return "Audit again: with other questions, or with what is known of the system stated."
    if outcome is Outcome.NOT_SHOWN:
        return "Audit again before every change: more answers, less noise, another table."
    ways = []
    if remedy.noise_sd is not None and not remedy.noise_suffices:
        a_count = (
            f"a count of about {shortest(usual)}" if (usual := remedy.typical_count) else "a count"
        )
        off = shortest(1.96 * remedy.noise_sd)
        ways.append(f"noise that puts {a_count} off by up to {off} (19 times of 20)")
    if remedy.answers and remedy.answers < report.audit.asked.answers:
        ways.append(f"no more than {remedy.answers:,} answers in all, to everyone together")
    if not ways and report.audit.judged.failed is False:
        return (
            "That is within what you allow, as far as this attack goes. Audit again before every "
            "change."
        )
    if not ways:
        return "Answer fewer questions, or with more noise, and audit again."
    either = "either" if len(ways) > 1 else "this"
    return (
        f"Against this attack {either} would keep the advantage over guessing at "
        f"{remedy.allowed:.0%}: {', or '.join(ways)}."
    )


def granted(audit: Record) -> str:
    """What the attacker is taken to know beforehand, to follow a preposition."""
    if audit.asked.family in GROUPING:
        return "everyone's id and the columns that the questions group people by"
    return "everyone's id, and so whom each question is about"


def span(interval: tuple[float, float]) -> str:
    """An interval of shares."""
    return f"{percent(interval[0])} to {percent(interval[1])}"


def interval(ends: tuple[float, float]) -> str:
    """An interval of shares that says what it is."""
    return f"95% interval {span(ends)}"


def shortest(value: float) -> str:
    """A size to three digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def of_typical(off: float, remedy: Remedy) -> str:
    """How much that is of a typical count, to end a sentence with."""
    typical = remedy.typical_count
    if not typical:
        return ""
    return f"; a count here is about {shortest(typical)}, so that is {off / typical:.0%} of it"
