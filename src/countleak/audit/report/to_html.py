"""The report as one page of HTML that needs nothing else: no script, no font, no network."""

import json
from importlib.resources import files
from typing import Any

from countleak.audit.report.comparison import Comparison
from countleak.audit.report.plain_words import (
    Row,
    facts,
    granted,
    meaning,
    of_typical,
    shortest,
    span,
)
from countleak.audit.report.record import Record, Scored
from countleak.audit.report.remedy import Remedy
from countleak.audit.report.report import AtRisk, Report
from countleak.audit.report.verdict import Outcome
from countleak.errors import MissingExtra
from countleak.foreign import brief, clean_lines
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


def to_html(report: Report) -> str:
    """The page."""
    try:
        from countleak.audit.report import pictures
    except ImportError:
        raise _missing() from None
    audit = report.audit
    unit = "its units" if audit.kind == "number" else "people"
    return render(
        "report.html.j2",
        report=report,
        audit=audit,
        leaks=report.verdict.outcome is Outcome.LEAKS,
        facts=facts(report),
        meaning=meaning(report),
        granted=granted(audit),
        bare=_bare(report.people),
        growth=pictures.growth_picture(audit.growth, audit.score.baseline if audit.score else None),
        people=pictures.people_picture(report.people),
        calibration=audit.calibration and pictures.calibration_picture(audit.calibration),
        residuals=audit.residuals and pictures.residuals_picture(audit.residuals, unit),
        groups=audit.residuals and pictures.groups_picture(audit.residuals, unit),
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
        raise _missing() from None
    folder = files(PACKAGE) / "pages"
    texts = {part.name: part.read_text(encoding="utf-8") for part in folder.iterdir()}
    environment = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_plain,
    )
    environment.filters |= {
        "percent": percent,
        "span": span,
        "short": shortest,
        "minute": _minute,
        "about": _about,
        "brief": brief,
    }
    environment.globals["beginning"] = BEGINNING
    return environment.get_template(name).render(context)


def _missing() -> MissingExtra:
    return MissingExtra("the report as a page", "report")


def sentence(text: str) -> str:
    """Words as a sentence: begun with a capital, ended with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _plain(value: Any) -> Any:
    """What is written, without letters that nobody sees and that turn round what stands beside."""
    return clean_lines(value) if type(value) is str else value


def _about(words: str, secret: str) -> str:
    """Words about a secret, which is kept apart: letters from right to left move none of theirs."""
    from markupsafe import Markup, escape

    name = escape(brief(secret))
    return escape(clean_lines(words)).replace(name, Markup("<bdi>{}</bdi>").format(name))


def _minute(time: str) -> str:
    """The day and minute of a time as ISO writes it."""
    return time[:16].replace("T", " ")


def _shortened(sql: str) -> str:
    return sql if len(sql) <= LONGEST_SAMPLE else f"{sql[:LONGEST_SAMPLE]} …"


def _bare(people: AtRisk) -> int:
    """How many claims there are where a list of them would say nothing: no id, no probability."""
    says = any(p.confidence is not None or p.standing != "claimed" for p in people.listed)
    return 0 if people.shown or says else len(people.listed) + people.more


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
                f"{of_typical(remedy.base / 2, remedy)}.",
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
        f"{of_typical(off, remedy)}.",
    )
