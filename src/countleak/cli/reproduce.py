"""`countleak reproduce`: the paper's experiments by name."""

from pathlib import Path
from typing import Annotated

import typer

from countleak.cli import console, words
from countleak.errors import InputError
from countleak.experiments import Settings
from countleak.experiments.catalogue import CATALOGUE


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="What to reproduce; without it, the list.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder `data` of the authors' repository, with recorded answers."),
    ] = None,
    arithmetic: words.ArithmeticWord = words.Arithmetics.FLOAT64,
    postgres: words.PostgresUrl = None,
    without_fragile: Annotated[
        bool,
        typer.Option(
            help="table-1: leave out queries that float64 and exact arithmetic decide apart."
        ),
    ] = False,
    solver: words.SolverWord = "auto",
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Run an experiment of the paper and show it next to the paper's words."""
    if name is None:
        _list(json)
        return
    if name not in CATALOGUE:
        raise InputError(f"there is no experiment {name!r}; choose {', '.join(CATALOGUE)}")
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data}: no such folder")
    experiment = CATALOGUE[name]
    with (
        words.arithmetic_of(arithmetic, postgres) as chosen,
        console.progress(name) as report,
    ):
        outcome = experiment.run(
            Settings(
                data,
                seed,
                chosen,
                words.solver_of(solver),
                sound=without_fragile,
                postgres=postgres,
            ),
            report,
        )
    if json:
        console.print_json({outcome.kind: [dict(record) for record in outcome.records]})
    else:
        console.say(f"The paper: {experiment.claim}")
        console.print_table(outcome.records, f"Ours, from {experiment.answers} answers")
    for text in outcome.remarks:
        console.remark(text)


def _list(json: bool) -> None:
    entries = [
        {"name": e.name, "answers": e.answers, "the_paper_says": e.claim}
        for e in CATALOGUE.values()
    ]
    if json:
        console.print_json({"experiments": entries})
    else:
        console.print_table(entries, "What can be reproduced: countleak reproduce NAME")
