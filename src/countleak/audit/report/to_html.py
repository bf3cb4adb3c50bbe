"""The report as one page of HTML that needs nothing else: no script, no font, no network."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from countleak.audit.report.comparison import Comparison
from countleak.audit.report.pictures import (
    calibration_picture,
    groups_picture,
    growth_picture,
    people_picture,
    residuals_picture,
)
from countleak.audit.report.record import Record, Scored
from countleak.audit.report.remedy import Remedy
from countleak.audit.report.report import Report
from countleak.audit.report.verdict import Outcome
from countleak.errors import MissingExtra
from countleak.shares import percent

PACKAGE = "countleak.audit.report"
# How the page begins, by which one is told from other pages.
BEGINNING = "<!doctype html><!-- countleak report -->"
# No sample of a question is shown longer.
LONGEST_SAMPLE = 420
FAMILIES = {
    "digits": "arithmetic on the id, which splits the people about in half, differently each time",
    "modular": "arithmetic on the id, which splits the people about in half, differently each time",
    "hashed": "a hash of the id and a seed, which splits the people in half, differently each time",
    "subsets": "random halves of the people, listed by id",
    "tables": "tables of counts, grouped by what is known of everyone",
    "ranges": "ranges of what is known of everyone",
    "signs": "random halves of the people against the other halves",
}


@dataclass(frozen=True)
class Row:
    """A line of a table: what it is, its value, and what that means."""

    name: str
    value: str
    meaning: str


def to_html(report: Report) -> str:
    """The page."""
    audit = report.audit
    unit = "its units" if audit.kind == "number" else "people"
    return render(
        "report.html.j2",
        report=report,
        audit=audit,
        leaks=report.verdict.outcome is Outcome.LEAKS,
        facts=_facts(report),
        meaning=_meaning(report),
        growth=growth_picture(audit.growth, audit.score.baseline if audit.score else None),
        people=people_picture(report.people),
        calibration=audit.calibration and calibration_picture(audit.calibration),
        residuals=audit.residuals and residuals_picture(audit.residuals, unit),
        groups=audit.residuals and groups_picture(audit.residuals, unit),
        family=FAMILIES.get(audit.asked.family, audit.asked.family),
        samples=[_shortened(sample) for sample in audit.asked.samples],
        expects=any(point.expected is not None for point in audit.growth.points),
        scores=_scores(audit),
        remedies=_remedies(audit.remedy, audit.asked.answers),
        solved=json.dumps(audit.method.solved, indent=2, ensure_ascii=False),
        sentence=sentence,
    )


def comparison_to_html(found: Comparison, before: Report, after: Report) -> str:
    """The page of two audits compared."""
    title, _, figures = found.headline.partition(": ")
    return render(
        "comparison.html.j2",
        found=found,
        title=title,
        figures=figures,
        before=before.audit,
        after=after.audit,
        sentence=sentence,
    )


def render(name: str, **context: Any) -> str:
    """A page from its template; whatever it is given is escaped."""
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError:
        raise MissingExtra("the report as a page", "report") from None
    folder = files(PACKAGE) / "pages"
    texts = {part.name: part.read_text(encoding="utf-8") for part in folder.iterdir()}
    environment = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"percent": percent, "span": span, "short": shortest}
    environment.globals["beginning"] = BEGINNING
    return environment.get_template(name).render(context)


def span(interval: tuple[float, float]) -> str:
    """An interval of shares."""
    return f"{percent(interval[0])} to {percent(interval[1])}"


def shortest(value: float) -> str:
    """A size to three digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sentence(text: str) -> str:
    """Words as a sentence: begun with a capital, ended with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _shortened(sql: str) -> str:
    return sql if len(sql) <= LONGEST_SAMPLE else f"{sql[:LONGEST_SAMPLE]} …"


def _facts(report: Report) -> list[Row]:
    """The figures under the verdict."""
    audit, score = report.audit, report.audit.score
    usual = "the mean" if audit.kind == "number" else "the commonest value"
    rows = []
    if score is not None and score.accuracy is not None and score.interval is not None:
        rows += [
            Row("guesses right", percent(score.accuracy), span(score.interval)),
            Row("guessing without answers", percent(score.baseline), f"{usual} for everyone"),
        ]
        if score.advantage is not None and score.advantage_interval is not None:
            between = span(score.advantage_interval)
            rows.append(Row("advantage over guessing", percent(score.advantage), between))
    elif audit.expected is not None:
        expected = audit.expected
        rows.append(Row("expected right", percent(expected.share), span(expected.interval)))
    forced = report.people.proven or report.people.implied
    if forced and score is None:
        how = "proven" if report.people.proven else "implied"
        rows.append(Row(f"people {how}", f"{forced:,}", f"of {audit.people:,}"))
    suppressed = f"{audit.asked.suppressed:,} suppressed" if audit.asked.suppressed else "all given"
    rows.append(Row("answers", f"{audit.asked.answers:,}", suppressed))
    return rows


def _meaning(report: Report) -> list[Row]:
    """What was done, what that means and what to do, in plain words."""
    audit = report.audit
    how = "was simulated on this machine" if audit.simulated else "was asked"
    what = "sums" if audit.kind == "number" else "counts"
    done = (
        f"A system that answers {what} {how}: {audit.asked.answers:,} {what} about "
        f"{audit.people:,} people, none of which names anyone's secret. From these answers alone a "
        "program tried to work out each person's secret."
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
                "did worse than naming the commonest value of everyone"
                if below
                else "did not beat guessing by more than chance"
            )
            return (
                f"About {audit.secret} this attack, with these questions, {did}. That is no proof "
                "of anonymity."
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
        sd = shortest(remedy.noise_sd)
        ways.append(f"noise with a standard deviation of {sd} on each answer")
    if remedy.answers and remedy.answers < report.audit.asked.answers:
        ways.append(f"no more than {remedy.answers:,} answers in all")
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
        f"{remedy.allowed:.0%}: {' or '.join(ways)}. The section on remedies says what it costs."
    )


def _scores(audit: Record) -> list[Row]:
    """The scores that others compare by, each with what it means."""
    rows = _score_rows(audit.score) if audit.score is not None else []
    if audit.control is not None:
        control = audit.control
        rows.append(
            Row(
                "Risk against control",
                f"{percent(control.risk)} ({span(control.interval)})",
                f"What is left beyond luck: on a twin with shuffled secrets the same attack gets "
                f"{control.by_luck:,} right, here {control.right:,}.",
            )
        )
    if audit.calibration is not None:
        rows += [
            Row(
                "Calibration error",
                f"{audit.calibration.error:.3f}",
                "How far probabilities are from how often claims are right, on average; 0 is best.",
            ),
            Row("Brier score", f"{audit.calibration.brier:.3f}", "Mean squared error; 0 is best."),
        ]
    return rows


def _score_rows(score: Scored) -> list[Row]:
    within = "" if score.tolerance is None else f" to within {score.tolerance:.0%}"
    interval = "" if score.interval is None else f" ({span(score.interval)})"
    accuracy = "none" if score.accuracy is None else percent(score.accuracy)
    rows = [
        Row(
            "Accuracy",
            f"{accuracy}{interval}",
            f"{score.right:,} of {score.claims:,} claims right{within}.",
        ),
        Row("Baseline", percent(score.baseline), "What guessing without any answer gets."),
    ]
    if score.advantage is not None and score.advantage_interval is not None:
        rows.append(
            Row(
                "Advantage",
                f"{percent(score.advantage)} ({span(score.advantage_interval)})",
                "How far from guessing (0%) to knowing everything (100%).",
            )
        )
    if score.kappa is not None:
        rows.append(
            Row("Kappa", f"{score.kappa:.1f}", "The advantage as the Aircloak challenge scored it.")
        )
    rows.append(
        Row(
            "Alpha",
            f"{score.alpha_ids_known:.2f} / {score.alpha_ids_free:,.0f}",
            "Claims for each cell known beforehand, if ids count as known / as free.",
        )
    )
    if score.false_positives is not None and score.false_negatives is not None:
        rows.append(
            Row(
                "Errors",
                f"{score.false_positives:,} / {score.false_negatives:,}",
                "Claimed to have the trait without it / claimed not to have it with it.",
            )
        )
    return rows


def _remedies(remedy: Remedy, answers: int) -> list[Row]:
    """What would keep the limit, how much of it, and what that costs."""
    rows = []
    if remedy.noise_sd is not None:
        name, now = "More noise", f"now {remedy.noise_now}"
        if remedy.in_place:
            name = "Normal noise instead"
        elif remedy.noise_suffices:
            name, now = "Noise", f"{now}, which is enough"
        rows.append(_noise_row(name, remedy.noise_sd, now, remedy))
    if remedy.noise_sd_against_all is not None:
        who = "against every attacker, even one who knows all others' secrets"
        rows.append(_noise_row("Noise against anyone", remedy.noise_sd_against_all, who, remedy))
    if remedy.answers is not None:
        rows.append(
            Row(
                "A cap on answers",
                f"{remedy.answers:,} in all" if remedy.answers else "none",
                f"For ever and for everyone together, with the system as it is; this audit took "
                f"{answers:,}."
                if remedy.answers
                else "The first answer breaks the limit.",
            )
        )
    if remedy.base is not None:
        rows.append(
            Row(
                "Coarser counts",
                f"multiples of {remedy.base:,}",
                f"In place of noise. A count is off by up to {remedy.base / 2:,.0f}"
                f"{_of_typical(remedy.base / 2, remedy)}.",
            )
        )
    elif remedy.rounding_helps is False:
        rows.append(Row("Coarser counts", "no base will do", "Rounding alone does not keep it."))
    if remedy.epsilon is not None and remedy.noise_sd_for_epsilon is not None:
        rows.append(
            Row(
                "Differential privacy",
                f"SD {shortest(remedy.noise_sd_for_epsilon)}",
                f"On each answer, for epsilon = {remedy.epsilon_wanted:g} in all (delta = "
                f"{remedy.delta:g}); now it is {shortest(remedy.epsilon)}.",
            )
        )
    return rows


def _noise_row(name: str, sd: float, note: str, remedy: Remedy) -> Row:
    off = 1.96 * sd
    return Row(
        name,
        f"SD {shortest(sd)}",
        f"On each answer; {note}. A count would be off by up to {shortest(off)}, 19 times of 20"
        f"{_of_typical(off, remedy)}.",
    )


def _of_typical(off: float, remedy: Remedy) -> str:
    typical = remedy.typical_count
    if not typical:
        return ""
    return f"; a count here is about {shortest(typical)}, so that is {off / typical:.0%} of it"
