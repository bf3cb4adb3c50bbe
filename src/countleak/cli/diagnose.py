"""`countleak diagnose`: a system's character, read from its answers alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.attack.diagnosis import Diagnosis
from countleak.attack.diagnosis import diagnose as diagnose_answers
from countleak.attack.noise import Range, Suppression, Threshold
from countleak.attack.queries.files import read_queries
from countleak.attack.rules import Rules, inferred_in_words
from countleak.attack.secrets import Bit
from countleak.attack.transcript import read_answers
from countleak.audit.judgement import rules_in_words
from countleak.audit.report.diagnosis import draw_diagnosis
from countleak.audit.report.drawing import require_drawing
from countleak.audit.targets.recorded import read_ranges
from countleak.cli import console, options
from countleak.cli.rule_options import StatedRules
from countleak.errors import InputError
from countleak.shares import percent


def diagnose(
    answers: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWERS",
            help="Answers written by `countleak ask`, or a folder of recorded ones.",
        ),
    ],
    stated: StatedRules,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="The queries they answer (default: queries.jsonl beside the answers).",
            show_default=False,
        ),
    ] = None,
    partial: options.Partial = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the residuals and the noise by group, there.")
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Say what noise a system adds, from its answers alone, without the truth."""
    if picture is not None:
        require_drawing(picture)
    if answers.is_dir():
        _diagnose_recorded(answers, stated.rules(), picture, seed, json)
        return
    planned = read_queries(queries or answers.parent / "queries.jsonl")
    transcript, secret = read_answers(answers, planned, partial=partial)
    if not isinstance(secret, Bit):
        raise InputError(f"{answers}: only counts of one condition can be diagnosed")
    with console.waiting("diagnosing"):
        rules = stated.rules()
        diagnosis = diagnose_answers(transcript, rules, seed=seed)
    if picture is not None:
        draw_diagnosis(diagnosis, picture)
    if json:
        console.print_json(_record(diagnosis, rules))
    else:
        _say(diagnosis, rules)


def _diagnose_recorded(
    folder: Path, rules: Rules, picture: Path | None, seed: int, json: bool
) -> None:
    """Every range of the authors' folder; none of what is true of anyone is read."""
    records = {}
    for recorded in read_ranges(folder):
        transcript = recorded.log.transcript(recorded.people.ids)
        with console.waiting(f"diagnosing {recorded.name}"):
            diagnosis = diagnose_answers(transcript, rules, seed=seed)
        if picture is not None:
            place = picture.with_stem(f"{picture.stem}-{recorded.name}")
            draw_diagnosis(diagnosis, place)
        records[recorded.name] = _record(diagnosis, rules)
        if not json:
            console.say(f"Clients {recorded.name}")
            _say(diagnosis, rules)
            console.say("")
    if json:
        console.print_json(records)


def _say(diagnosis: Diagnosis, rules: Rules) -> None:
    inferred = inferred_in_words(diagnosis.noise, rules, diagnosis.sigma)
    for line in (*describe(diagnosis), *rules_in_words(rules.words, inferred)):
        console.say(line.rstrip("."))
    if diagnosis.groups:
        rows = [
            {str(diagnosis.by): group.value, "answers": group.answers, "SD": group.sigma,
             "verdict": "odd" if group.odd else "fits"}
            for group in diagnosis.groups
        ]  # fmt: skip
        console.print_table(rows)


def describe(diagnosis: Diagnosis) -> Iterator[str]:
    """The diagnosis in sentences."""
    yield (
        f"{diagnosis.answers} answers about {diagnosis.people} people, {diagnosis.suppressed} "
        "suppressed; "
        f"{'whole numbers' if diagnosis.whole else 'not whole numbers'}"
    )
    yield f"Noise: {diagnosis.law}"
    offset = f"{diagnosis.offset:+.2f} ± {diagnosis.offset_error:.2f}"
    if diagnosis.has_offset:
        yield f"Offset: all answers are off by {offset}"
    else:
        yield f"Offset: none beyond chance ({offset})"
    if diagnosis.wrong:
        yield f"Gross errors: {percent(diagnosis.wrong)} of the answers are far from any count"
    if diagnosis.suppression:
        yield f"Suppression: {diagnosis.suppression}"
    if diagnosis.noise.floor is not None:
        yield f"Floor: no answer is below {diagnosis.noise.floor:g}"
    if diagnosis.noise.ceiling is not None:
        yield f"Ceiling: no answer is above {diagnosis.noise.ceiling:g}"
    if diagnosis.sticky is None:
        yield "Stickiness: unknown, no question was asked twice (plan with --repeat)"
    else:
        kept = (
            "the same answer"
            if diagnosis.sticky
            else "fresh noise, so asking again averages it out"
        )
        yield f"Stickiness: a question asked again got {kept} ({diagnosis.repeated} were)"
    for shared in diagnosis.shared:
        yield f"Common noise: {shared}"
    if diagnosis.has_errors_per_person:
        yield (
            f"In every count that a person is in: {diagnosis.errors_per_person} "
            f"(chance {percent(diagnosis.per_person_chance, 0)})"
        )
    if not diagnosis.shared and not diagnosis.has_errors_per_person:
        yield "Common noise: none beyond chance"
    elif diagnosis.effective < 1:
        worth = percent(diagnosis.effective, 0)
        yield f"An answer says {worth} of what one with noise of its own would"
    if diagnosis.by is None:
        yield "Groups: no group of queries has noise of its own"
    else:
        odd = ", ".join(f"{group.value:g}" for group in diagnosis.odd)
        yield f"Groups: the noise differs by {diagnosis.by}" + (
            f"; odd ones out: {odd}" if odd else ""
        )


def _ends(threshold: Suppression | None) -> list[int] | None:
    return [threshold.low, threshold.high] if isinstance(threshold, Range) else None


def _record(diagnosis: Diagnosis, rules: Rules) -> dict[str, Any]:
    threshold = diagnosis.noise.threshold
    return {
        "people": diagnosis.people,
        "answers": diagnosis.answers,
        "suppressed": diagnosis.suppressed,
        "shape": diagnosis.noise.shape.value,
        "sigma": diagnosis.sigma,
        "sigma_error": diagnosis.sigma_error,
        "offset": diagnosis.offset,
        "offset_error": diagnosis.offset_error,
        "kurtosis": diagnosis.kurtosis,
        "wrong": diagnosis.wrong,
        "bound": diagnosis.noise.reach,
        "base": diagnosis.noise.base,
        "random_rounding": diagnosis.noise.random_rounding,
        "floor": diagnosis.noise.floor,
        "ceiling": diagnosis.noise.ceiling,
        "threshold": threshold.mean if isinstance(threshold, Threshold) else None,
        "suppressed_range": _ends(threshold),
        "stated": list(rules.words),
        "inferred": list(inferred_in_words(diagnosis.noise, rules, diagnosis.sigma)),
        "sticky": diagnosis.sticky,
        "shared": [{"by": s.kernel.words, "share": s.share} for s in diagnosis.shared],
        "per_person": diagnosis.per_person if diagnosis.has_errors_per_person else 0.0,
        "per_person_chance": diagnosis.per_person_chance,
        "per_one": diagnosis.per_one if diagnosis.has_errors_per_person else 0.0,
        "counted_twice": diagnosis.twice if diagnosis.has_errors_per_person else 0.0,
        "effective": diagnosis.effective,
        "groups_by": diagnosis.by,
        "groups": [
            {"value": g.value, "answers": g.answers, "sigma": g.sigma, "odd": g.odd}
            for g in diagnosis.groups
        ],
    }
