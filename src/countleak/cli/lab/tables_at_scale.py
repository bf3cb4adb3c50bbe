"""The larger suites of `countleak lab bench tables`: many cells, many settings, many blocks."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from countleak.audit.report.drawing import require_drawing
from countleak.cli import console
from countleak.lab.bench.tables import cell_keys as keys
from countleak.lab.bench.tables import census as blockwise
from countleak.lab.bench.tables import safety
from countleak.lab.bench.tables.scale import Scale, measure_scale
from countleak.lab.figures.safety import draw_safety
from countleak.shares import percent

Suite = tuple[dict[str, Any], Callable[[], None]]


def scale(cells: int, jobs: int) -> Suite:
    """Areas' tables with so many unknown counts."""
    with console.progress("bench tables, scale") as report:
        found = measure_scale(cells, jobs, progress=report)
    return asdict(found), lambda: _show_scale(found)


def _show_scale(found: Scale) -> None:
    console.say(
        f"{found.numbers} published numbers ({found.hidden} not shown) about {found.groups} "
        f"groups, of which single numbers settle {found.settled_at_once}."
    )
    console.say(
        f"The other {found.cells} hang together in {found.pieces} pieces of {found.smallest} to "
        f"{found.largest}."
    )
    console.print_table(
        [
            {"settled by": means, "cells": count, "share": percent(count / found.cells)}
            for means, count in found.means.items()
        ],
        f"What it took to bound {found.cells} cells from both sides",
    )
    console.say(f"Pinned: {found.pinned}. Perhaps wider than need be: {found.open}.")
    console.say(f"Intervals that do not hold the true count: {found.wrong}")
    console.say(
        f"{found.seconds:.0f} s with {found.jobs} processes ({found.cpu_seconds:.0f} s of "
        f"processor time), after {found.generating_seconds:.0f} s of generating; at most "
        f"{found.megabytes:.0f} MB in the main process and {found.megabytes_per_process:.0f} MB in "
        "each other."
    )


def safety_map(worlds: int, jobs: int, picture: Path | None) -> Suite:
    """What all margins give away in spite of rounding, by setting."""
    if picture:
        require_drawing(picture)
    with console.progress("bench tables, map") as report:
        rows = safety.measure_map(worlds, jobs, progress=report)
    if picture:
        draw_safety(rows, picture)
    claims = safety.nearest_five(rows)

    def show() -> None:
        console.print_table(
            [
                {
                    "variables": f"{row.setting.variables} of {row.setting.values}",
                    "rounded": f"{row.setting.rounding} {row.setting.base}",
                    "people": row.setting.people,
                    "pinned": percent(row.share),
                    "95%": f"{percent(row.low)} to {percent(row.high)}",
                    "of one or two": f"{row.small_pinned} of {row.small}",
                }
                for row in rows
            ],
            f"Cells of which one count is left, mean of {worlds} worlds",
        )
        for claim in claims:
            console.say(
                f"Rounded to the nearest 5, {claim.variables} variables of {claim.values}: "
                f"something is pinned in {claim.pinned} of {claim.worlds} worlds "
                f"({percent(claim.low)} to {percent(claim.high)})."
            )
        console.say(
            f"Intervals that do not hold the true count: {sum(row.wrong for row in rows)}; "
            f"perhaps wider than need be: {sum(row.open for row in rows)}"
        )

    return {"rows": [asdict(r) for r in rows], "nearest_5": [asdict(c) for c in claims]}, show


def cell_keys(engine: Path, worlds: int) -> Suite:
    """How many tables it takes to average the noise of cell keys away."""
    with console.progress("bench tables, cell-keys") as report:
        rows, needed = keys.measure_cell_keys(engine, worlds, progress=report)

    def show() -> None:
        console.print_table(
            [
                {
                    "system": row.system,
                    "tables": row.tables,
                    "right": f"{row.right} of {row.cells}",
                    "share": percent(row.share),
                    "95%": f"{percent(row.low)} to {percent(row.high)}",
                    "as published": percent(row.published),
                }
                for row in rows
            ],
            f"Counts that the mean of split tables has right, {worlds} worlds",
        )
        for each in needed:
            median = "half never are" if each.median is None else f"median {each.median} tables"
            console.say(
                f"{each.system}: {median} until a count stays right; {each.never} of {each.cells} "
                "are wrong after the last."
            )

    return {"rows": [asdict(r) for r in rows], "needed": [asdict(n) for n in needed]}, show


def census(blocks: int, jobs: int) -> Suite:
    """So many blocks of a generated census, and what all of the country would take."""
    with console.progress("bench tables, census") as report:
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
