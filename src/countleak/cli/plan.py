"""`countleak plan`: which questions to ask."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countleak.attack.queries import Queries
from countleak.attack.queries.digits import fragile
from countleak.attack.queries.files import write_queries
from countleak.attack.queries.signs import Signs
from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.errors import InputError
from countleak.files import require_writable

SHOWN = 200


@needs(
    {
        "--without-fragile": {"--family": options.DIGITS},
        "--list-fragile": {"--family": options.DIGITS},
    }
)
def plan(
    who: options.Who,
    family: options.Family,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries", "-m", help="How many queries (digits: that many of them).", min=1
        ),
    ] = None,
    without_fragile: Annotated[
        bool,
        typer.Option(
            "--without-fragile",
            help="Leave out digit queries on which float64 and exact arithmetic disagree.",
        ),
    ] = False,
    list_fragile: Annotated[
        bool, typer.Option("--list-fragile", help="List those queries, in SQL.")
    ] = False,
    repeat: Annotated[
        int, typer.Option(help="Ask that many of them twice, to see whether noise sticks.", min=0)
    ] = 0,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path(
        "queries.jsonl"
    ),
    json: options.Json = False,
) -> None:
    """Choose the questions: whom each counts, and how it is asked in SQL."""
    require_writable(out, "queries")
    people = who.read()
    with console.waiting("planning"):
        planned = family.queries(people, queries, seed)
    record: dict[str, Any] = {"file": str(out), "people": planned.ids.size}
    if list_fragile or without_fragile:
        marks = fragile(planned)
        record["fragile"] = int(marks.sum())
        if list_fragile:
            record["fragile_queries"] = [
                _where(planned, at, people.key) for at in np.flatnonzero(marks).tolist()
            ]
        if without_fragile:
            planned = planned.take(np.flatnonzero(~marks))
    if repeat > len(planned):
        raise InputError(f"--repeat is {repeat}, but there are {len(planned)} queries")
    if repeat:
        planned = planned.take(np.append(np.arange(len(planned)), np.arange(repeat)))
    write_queries(out, planned)
    record["queries"] = len(planned)
    with console.beside(out):
        if json:
            console.print_json(record)
        else:
            _tell(planned, record, without_fragile, people.key)


def _tell(
    queries: Queries, record: dict[str, Any], without_fragile: bool, key: tuple[str, ...]
) -> None:
    console.say(
        f"{len(queries)} queries ({queries.family.name}) about {queries.ids.size} people in "
        f"{record['file']}"
    )
    if "fragile" in record:
        fate = "left out" if without_fragile else "kept; --without-fragile leaves them out"
        console.say(f"{record['fragile']} are fragile (float64 and exact disagree): {fate}")
    for where in record.get("fragile_queries", ()):
        console.say(f"  {where}")
    if not isinstance(queries.family, Signs):
        first = _where(queries, 0, key)
        short = first if len(first) <= SHOWN else f"{first[:SHOWN]} ..."
        console.say(f"The first counts those WHERE {short}")


def _where(queries: Queries, position: int, key: tuple[str, ...]) -> str:
    return queries.predicate(position, key).sql(dialect="postgres", identify=True)
