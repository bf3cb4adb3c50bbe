"""`python -m benchmarks.query_log`: the leak meter on a long log with planted trackers."""

from dataclasses import asdict
from typing import Annotated

import typer

from benchmarks.query_log.measure import measure
from benchmarks.start import main
from countleak.cli import console, options


def query_log(
    rows: Annotated[int, typer.Option(help="Generated people.", min=1000)] = 1_000_000,
    statements: Annotated[int, typer.Option(help="Statements of the log.", min=100)] = 100_000,
    conditions: Annotated[
        int, typer.Option(help="Different conditions among them.", min=20)
    ] = 2000,
    trackers: Annotated[int, typer.Option(help="Trackers planted among them.", min=1)] = 60,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Time the leak meter on a long log, and count the trackers it catches and its false alarms."""
    with console.waiting("query_log"):
        found = measure(rows, statements, conditions, trackers, seed)
    if json:
        console.print_json(asdict(found))
        return
    console.print_table([asdict(row) for row in found.caught], "Trackers, by their last query")
    console.say(
        f"{found.statements:,} statements, {found.conditions:,} conditions, {found.rows:,} rows: "
        f"{found.seconds:.0f} s ({found.processor_seconds:.0f} s of processor time), "
        f"{found.megabytes:,.0f} MB"
    )
    console.say(
        f"Alarms: {found.alarms:,}, of which {found.planted_alarms:,} are of planted targets; "
        f"{found.proven:,} rest on the answers alone; {found.false:,} are false"
    )
    console.say(
        f"Without a printed proof: {found.unproven:,}; statements not read: {found.not_read:,}; "
        f"trackers that ask for a small count: {found.by_small_counts:,}"
    )


if __name__ == "__main__":
    main("query_log")
