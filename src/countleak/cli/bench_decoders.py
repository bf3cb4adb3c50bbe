"""`countleak bench decoders`: every decoder on the same answers, next to what is possible."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.cli import console, words
from countleak.errors import InputError
from countleak.lab.bench.decoders import SUITES, compare, pooled_error, queries_needed
from countleak.lab.bench.recorded import compare_recorded, needed

SHOWN = ("kind", "n", "m", "sigma", "prior", "decoder", "accuracy", "se", "worst", "perfect",
         "baseline", "evolution", "limit", "genie", "calibration_error", "claims_95",
         "precision_95", "seconds")  # fmt: skip


def decoders(
    suite: Annotated[
        str,
        typer.Option(
            help=f"What to compare on: {', '.join(SUITES)}, or recorded (with --data).",
        ),
    ] = "queries",
    trials: Annotated[
        int, typer.Option(help="Worlds a setting (recorded: subsets a size).", min=2)
    ] = 20,
    data: Annotated[
        Path | None, typer.Option(help="recorded: the folder `data` of the authors' repository.")
    ] = None,
    jobs: words.Jobs = -1,
    json: words.Json = False,
) -> None:
    """Compare the decoders' accuracy, calibration and speed with each other and with the limits."""
    if suite == "recorded":
        _recorded(data, trials, jobs, json)
        return
    if suite not in SUITES:
        raise InputError(f"there is no suite {suite!r}; choose {', '.join([*SUITES, 'recorded'])}")
    chosen = SUITES[suite]
    with console.progress(f"bench decoders, {suite}") as report:
        records = list(compare(chosen, trials, jobs, report))
    reached = _reached(records) if suite in ("queries", "suppression") else {}
    pooled = {
        name: pooled_error([r for r in records if r["decoder"] == name]) for name in chosen.decoders
    }
    if json:
        console.print_json(
            {
                "suite": suite,
                "trials": trials,
                "rows": records,
                "needed": reached,
                "pooled_calibration_error": pooled,
            }
        )
        return
    rows = [{name: record[name] for name in _telling(records)} for record in records]
    console.print_table(rows, f"{chosen.question} ({trials} simulated worlds a row)")
    for decoder, error in pooled.items():
        if error is not None:
            console.say(f"Calibration error of {decoder} over all rows together: {error:.4f}")
    for decoder, queries in reached.items():
        found = "not reached" if queries is None else f"{queries:.0f} queries"
        console.say(f"99% with {decoder}: {found}")


def _telling(records: list[dict[str, Any]]) -> list[str]:
    """The columns that say something: not those that are empty, or the same in every row."""
    always = ("decoder", "accuracy", "se", "baseline")
    return [
        name
        for name in SHOWN
        if name in always or len({repr(record[name]) for record in records}) > 1
    ]


def _reached(records: list[dict[str, Any]]) -> dict[str, float | None]:
    return {
        decoder: queries_needed(
            [(r["m"], r["accuracy"]) for r in records if r["decoder"] == decoder]
        )
        for decoder in dict.fromkeys(record["decoder"] for record in records)
    }


def _recorded(data: Path | None, trials: int, jobs: int, json: bool) -> None:
    if data is None:
        raise InputError("pass --data with the folder `data` of the authors' repository")
    with console.progress("bench decoders, recorded") as report:
        records = list(compare_recorded(data, trials, jobs, report))
    rows = needed(records)
    if json:
        console.print_json({"suite": "recorded", "trials": trials, "rows": records, "needed": rows})
        return
    console.print_table(records, f"Recorded answers of Diffix ({trials} random subsets a row)")
    console.print_table(rows, "Queries for 99% mean accuracy")
