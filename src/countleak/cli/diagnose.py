"""`countleak diagnose`: a system's character, read from its answers alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.attack.diagnosis import Diagnosis
from countleak.attack.diagnosis import diagnose as diagnose_answers
from countleak.attack.queries.files import read_queries
from countleak.attack.secrets import Bit
from countleak.attack.transcript import read_answers
from countleak.audit.report.diagnosis import draw_diagnosis
from countleak.audit.report.drawing import require_drawing
from countleak.audit.targets.recorded import read_ranges
from countleak.cli import console, options
from countleak.errors import InputError


def diagnose(
    answers: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWERS",
            help="Answers written by `countleak ask`, or a folder of recorded ones.",
        ),
    ],
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
        _diagnose_recorded(answers, picture, seed, json)
        return
    planned = read_queries(queries or answers.parent / "queries.jsonl")
    transcript, secret = read_answers(answers, planned, partial=partial)
    if not isinstance(secret, Bit):
        raise InputError(f"{answers}: only counts of one condition can be diagnosed")
    with console.waiting("diagnosing"):
        diagnosis = diagnose_answers(transcript, seed=seed)
    if picture is not None:
        draw_diagnosis(diagnosis, picture)
    if json:
        console.print_json(_record(diagnosis))
    else:
        _say(diagnosis)


def _diagnose_recorded(folder: Path, picture: Path | None, seed: int, json: bool) -> None:
    """Every range of the authors' folder; none of what is true of anyone is read."""
    records = {}
    for recorded in read_ranges(folder):
        transcript = recorded.log.transcript(recorded.people.ids)
        with console.waiting(f"diagnosing {recorded.name}"):
            diagnosis = diagnose_answers(transcript, seed=seed)
        if picture is not None:
            place = picture.with_stem(f"{picture.stem}-{recorded.name}")
            draw_diagnosis(diagnosis, place)
        records[recorded.name] = _record(diagnosis)
        if not json:
            console.say(f"Clients {recorded.name}")
            _say(diagnosis)
            console.say("")
    if json:
        console.print_json(records)


def _say(diagnosis: Diagnosis) -> None:
    for line in describe(diagnosis):
        console.say(line)
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
        yield f"Gross errors: {diagnosis.wrong:.1%} of the answers are far from any count"
    if diagnosis.threshold is not None:
        yield f"Suppression: counts below about {diagnosis.threshold.mean:g} are suppressed"
    if diagnosis.floor is not None:
        yield f"Floor: no answer is below {diagnosis.floor:g}"
    if diagnosis.sticky is None:
        yield "Stickiness: unknown, no question was asked twice (plan with --repeat)"
    else:
        kept = (
            "the same answer"
            if diagnosis.sticky
            else "fresh noise, so asking again averages it out"
        )
        yield f"Stickiness: a question asked again got {kept} ({diagnosis.repeated} were)"
    if diagnosis.by is None:
        yield "Groups: no group of queries has noise of its own"
    else:
        odd = ", ".join(f"{group.value:g}" for group in diagnosis.odd)
        yield f"Groups: the noise differs by {diagnosis.by}" + (
            f"; odd ones out: {odd}" if odd else ""
        )


def _record(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "people": diagnosis.people,
        "answers": diagnosis.answers,
        "suppressed": diagnosis.suppressed,
        "shape": diagnosis.shape.value,
        "sigma": diagnosis.sigma,
        "sigma_error": diagnosis.sigma_error,
        "offset": diagnosis.offset,
        "offset_error": diagnosis.offset_error,
        "kurtosis": diagnosis.kurtosis,
        "wrong": diagnosis.wrong,
        "bound": diagnosis.bound,
        "base": diagnosis.base,
        "floor": diagnosis.floor,
        "threshold": None if diagnosis.threshold is None else diagnosis.threshold.mean,
        "sticky": diagnosis.sticky,
        "groups_by": diagnosis.by,
        "groups": [
            {"value": g.value, "answers": g.answers, "sigma": g.sigma, "odd": g.odd}
            for g in diagnosis.groups
        ],
    }
