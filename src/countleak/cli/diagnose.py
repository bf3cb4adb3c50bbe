"""`countleak diagnose`: a system's character, read from its answers alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.attack.diagnosis import Diagnosis
from countleak.attack.diagnosis import diagnose as diagnose_answers
from countleak.attack.noise import Shape
from countleak.attack.queries import read_queries
from countleak.attack.transcript import read_answers
from countleak.audit.report.diagnosis import draw_diagnosis
from countleak.audit.report.drawing import require_drawing
from countleak.audit.targets.recorded import read_ranges
from countleak.cli import console, words


def diagnose(
    answers: Annotated[
        Path,
        typer.Argument(help="Answers written by `countleak ask`, or a folder of recorded ones."),
    ],
    queries: Annotated[
        Path | None,
        typer.Option(
            help="The queries they answer (default: queries.jsonl beside the answers).",
            show_default=False,
        ),
    ] = None,
    partial: words.Partial = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the residuals and the noise by group, there.")
    ] = None,
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Say what noise a system adds, from its answers alone, without the truth."""
    if picture is not None:
        require_drawing(picture)
    if answers.is_dir():
        _diagnose_recorded(answers, picture, seed, json)
        return
    asked = read_queries(queries or answers.parent / "queries.jsonl")
    answered = read_answers(answers, asked, partial=partial)
    with console.waiting("diagnosing"):
        found = diagnose_answers(asked, answered, seed=seed)
    if picture is not None:
        draw_diagnosis(found, picture)
    if json:
        console.print_json(_record(found))
    else:
        _say(found)


def _diagnose_recorded(folder: Path, picture: Path | None, seed: int, json: bool) -> None:
    """Every range of the authors' folder; none of what is true of anyone is read."""
    records = {}
    for recorded in read_ranges(folder):
        asked = recorded.log.queries(recorded.people.ids)
        with console.waiting(f"diagnosing {recorded.name}"):
            found = diagnose_answers(asked, recorded.log.answers(), seed=seed)
        if picture is not None:
            place = picture.with_stem(f"{picture.stem}-{recorded.name}")
            draw_diagnosis(found, place)
        records[recorded.name] = _record(found)
        if not json:
            console.say(f"Clients {recorded.name}")
            _say(found)
            console.say("")
    if json:
        console.print_json(records)


def _say(found: Diagnosis) -> None:
    for line in describe(found):
        console.say(line)
    if found.groups:
        rows = [
            {str(found.by): group.value, "answers": group.answers, "SD": group.sigma,
             "verdict": "odd" if group.odd else "fits"}
            for group in found.groups
        ]  # fmt: skip
        console.print_table(rows)


def describe(found: Diagnosis) -> Iterator[str]:
    """The diagnosis in sentences."""
    yield (
        f"{found.answers} answers about {found.people} people, {found.suppressed} suppressed; "
        f"{'whole numbers' if found.whole else 'not whole numbers'}"
    )
    yield f"Noise: {_law(found)}"
    if found.has_offset:
        yield f"Offset: all answers are off by {found.offset:+.2f} ± {found.offset_error:.2f}"
    else:
        yield f"Offset: none beyond chance ({found.offset:+.2f} ± {found.offset_error:.2f})"
    if found.wrong:
        yield f"Gross errors: {found.wrong:.1%} of the answers have nothing to do with the count"
    if found.threshold is not None:
        yield f"Suppression: counts below about {found.threshold.mean:g} are held back"
    if found.floor is not None:
        yield f"Floor: no answer is below {found.floor:g}"
    if found.sticky is None:
        yield "Stickiness: unknown, no question was asked twice (plan with --repeat)"
    else:
        kept = "the same answer" if found.sticky else "fresh noise, so asking again averages it out"
        yield f"Stickiness: a question asked again got {kept} ({found.repeated} were)"
    if found.by is None:
        yield "Groups: no group of queries has noise of its own"
    else:
        odd = ", ".join(f"{group.value:g}" for group in found.odd)
        yield f"Groups: the noise differs by {found.by}" + (f"; odd ones out: {odd}" if odd else "")


def _law(found: Diagnosis) -> str:
    size = f"SD {found.sigma:.2f} ± {found.sigma_error:.2f}"
    if found.shape is Shape.ROUNDED:
        return f"rounding to multiples of {found.base}, within {found.bound:g} of the count"
    if found.shape is Shape.UNIFORM:
        return f"uniform within ± {found.bound:g} ({size}, kurtosis {found.kurtosis:.1f})"
    return f"{found.shape.value}, {size} (kurtosis {found.kurtosis:.1f})"


def _record(found: Diagnosis) -> dict[str, Any]:
    return {
        "people": found.people,
        "answers": found.answers,
        "suppressed": found.suppressed,
        "shape": found.shape.value,
        "sigma": found.sigma,
        "sigma_error": found.sigma_error,
        "offset": found.offset,
        "offset_error": found.offset_error,
        "kurtosis": found.kurtosis,
        "wrong": found.wrong,
        "bound": found.bound,
        "base": found.base,
        "floor": found.floor,
        "threshold": None if found.threshold is None else found.threshold.mean,
        "sticky": found.sticky,
        "groups_by": found.by,
        "groups": [
            {"value": g.value, "answers": g.answers, "sigma": g.sigma, "odd": g.odd}
            for g in found.groups
        ],
    }
