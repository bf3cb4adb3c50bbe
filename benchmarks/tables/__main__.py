"""`python -m benchmarks.tables`: what published tables give away, beside the tools that check."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from benchmarks.start import main
from benchmarks.tables import census as blockwise
from benchmarks.tables.trial import measure_trial, shares
from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.shares import percent

TRIAL, CENSUS = "trial", "census"
# What a suite found, as a record and as a function that shows it.
Found = tuple[dict[str, Any], Callable[[], None]]


@needs(
    {
        "--worlds": {"--suite": (TRIAL,)},
        "--people": {"--suite": (TRIAL,)},
        "--blocks": {"--suite": (CENSUS,)},
        "--jobs": {"--suite": (CENSUS,)},
    }
)
def tables(
    suite: Annotated[
        Literal["trial", "census"],
        typer.Option(
            help="trial: two tables of the same people, each protected by pytauargus; census: a "
            "generated census, block by block."
        ),
    ] = "trial",
    worlds: Annotated[int, typer.Option(help="trial: generated worlds.", min=1)] = 10,
    people: Annotated[int, typer.Option(help="trial: people per world.", min=10)] = 3000,
    blocks: Annotated[int, typer.Option(help="census: generated blocks.", min=2)] = 1000,
    jobs: options.Jobs = 2,
    json: options.Json = False,
) -> None:
    """Measure what published tables give away together, beside the tools that check them."""
    record, show = _trial(worlds, people) if suite == TRIAL else _census(blocks, jobs)
    if json:
        console.print_json({"suite": suite, **record})
    else:
        show()


def _trial(worlds: int, people: int) -> Found:
    with console.progress("tables, trial") as report:
        found = measure_trial(worlds, people, progress=report)
    pinned = shares(found)

    def show() -> None:
        suppressed, flagged = sum(w.suppressed for w in found), sum(w.flagged for w in found)
        console.print_table(
            [
                {
                    "groups of one or two people": share.groups,
                    "held": share.held,
                    "pinned": f"{share.pinned} of {share.of}",
                    "share": percent(share.share),
                    "95%": f"{percent(share.low)} to {percent(share.high)}",
                }
                for share in pinned
            ],
            f"What each table pins, and both together, in {worlds} worlds",
        )
        console.say(f"pytauargus's audit flags {flagged} of {suppressed} suppressed cells.")
        console.say(f"Intervals that do not hold the true count: {sum(w.wrong for w in found)}")
        times = {
            "pytauargus protects": [w.protect_seconds for w in found],
            "its audit, each table": [w.audit_seconds for w in found],
            "the ledger, each table": [w.alone_seconds for w in found],
            "the ledger, both together": [w.both_seconds for w in found],
        }
        means = (f"{what} {sum(each) / worlds:.2f} s" for what, each in times.items())
        console.say(f"Mean time per world: {'; '.join(means)}")

    return {"worlds": [asdict(w) for w in found], "shares": [asdict(s) for s in pinned]}, show


def _census(blocks: int, jobs: int) -> Found:
    """So many blocks of a generated census, and what all of the country would take."""
    with console.progress("tables, census") as report:
        found = blockwise.measure_census(blocks, jobs=jobs, progress=report)
    bill = blockwise.bill(found)

    def show() -> None:
        nodes, days = blockwise.PUBLISHED
        console.say(
            f"{bill.blocks} blocks, {bill.people} people; the data set reconstructed has "
            f"{percent(bill.right)} of them ({percent(bill.right_low)} to "
            f"{percent(bill.right_high)}), giving everyone the commonest race and origin "
            f"{percent(bill.guessed)}."
        )
        console.say(
            f"Two data sets that fit are {percent(bill.shown)} of the people apart, and none are "
            f"further apart than {percent(bill.most)}; proven to be the furthest in {bill.settled} "
            f"blocks. {bill.unique} blocks ({percent(bill.unique_low)} to "
            f"{percent(bill.unique_high)}) have one data set only. Wrong: {bill.wrong}."
        )
        console.say(
            f"Blocks per second and core: {bill.reconstructed_per_second:.1f} to reconstruct, "
            f"{bill.bounded_per_second:.1f} with the certified distance."
        )
        console.say(
            f"All {blockwise.OCCUPIED_BLOCKS:,} occupied blocks: "
            f"{bill.core_hours_to_reconstruct:.0f} core-hours, "
            f"{bill.core_hours_to_bound:.0f} with the distance; the published run with Gurobi took "
            f"{nodes} nodes {days} days."
        )

    return {"bill": asdict(bill), "blocks": [asdict(block) for block in found]}, show


if __name__ == "__main__":
    main("tables")
