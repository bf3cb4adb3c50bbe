"""`countleak lab bench tables`: what published tables give away, beside the tools that check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from countleak.cli import console, options
from countleak.cli.lab import tables_at_scale as at_scale
from countleak.cli.option_rules import needs
from countleak.errors import InputError
from countleak.lab.bench.tables import cures, posterior, single, trial
from countleak.shares import percent

TRIAL, SINGLE, CURE, POSTERIOR = "trial", "single", "cure", "posterior"
SCALE, MAP, CELL_KEYS, CENSUS = "scale", "map", "cell-keys", "census"
WORLDS, FEWER_WORLDS = 10, 5
PEOPLE = {TRIAL: 3000, CURE: 150, POSTERIOR: 700}
ENGINE = Path("adapters/.envs/cell_key_table/bin/python")


@needs(
    {
        "--worlds": {"--suite": (TRIAL, SINGLE, CURE, POSTERIOR, MAP, CELL_KEYS)},
        "--people": {"--suite": tuple(PEOPLE)},
        "--cells": {"--suite": (SCALE,)},
        "--blocks": {"--suite": (CENSUS,)},
        "--jobs": {"--suite": (SCALE, MAP, CENSUS)},
        "--engine": {"--suite": (CELL_KEYS,)},
        "--picture": {"--suite": (MAP,)},
    }
)
def tables(
    suite: Annotated[
        str,
        typer.Option(
            help="trial: two tables of the same people, each protected by pytauargus; single: our "
            "intervals beside its audit's; cure: what protecting costs; posterior: whether likely "
            "counts are as likely as said; scale: a million cells; map: what rounding protects; "
            "cell-keys: averaging; census: by blocks."
        ),
    ] = TRIAL,
    worlds: Annotated[
        int | None,
        typer.Option(help="Generated worlds, 10 of each kind; map, cell-keys: 5.", min=1),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(help="People per world: trial 3000, cure 150, posterior 700.", min=10),
    ] = None,
    cells: Annotated[int, typer.Option(help="scale: unknown counts, about.", min=1)] = 1_000_000,
    blocks: Annotated[int, typer.Option(help="census: generated blocks.", min=2)] = 1000,
    jobs: options.Jobs = 2,
    engine: Annotated[
        Path, typer.Option(help="cell-keys: the Python that has cell-key-perturbation.")
    ] = ENGINE,
    picture: Annotated[Path | None, typer.Option(help="map: draw it to this file.")] = None,
    json: options.Json = False,
) -> None:
    """Measure what published tables give away together, beside the tools that check them."""
    suites: Mapping[str, Callable[[], tuple[dict[str, Any], Callable[[], None]]]] = {
        TRIAL: lambda: _trial(worlds or WORLDS, people or PEOPLE[TRIAL]),
        SINGLE: lambda: _single(worlds or WORLDS),
        CURE: lambda: _cures(worlds or WORLDS, people or PEOPLE[CURE]),
        POSTERIOR: lambda: _posterior(worlds or WORLDS, people or PEOPLE[POSTERIOR]),
        SCALE: lambda: at_scale.scale(cells, jobs),
        MAP: lambda: at_scale.safety_map(worlds or FEWER_WORLDS, jobs, picture),
        CELL_KEYS: lambda: at_scale.cell_keys(engine, worlds or FEWER_WORLDS),
        CENSUS: lambda: at_scale.census(blocks, jobs),
    }
    if suite not in suites:
        raise InputError(f"there is no suite {suite!r}; choose {', '.join(suites)}")
    record, show = suites[suite]()
    if json:
        console.print_json({"suite": suite, **record})
    else:
        show()


def _trial(worlds: int, people: int) -> tuple[dict[str, Any], Callable[[], None]]:
    with console.progress("bench tables, trial") as report:
        found = trial.measure_trial(worlds, people, progress=report)
    shares = trial.shares(found)

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
                for share in shares
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

    return {"worlds": [asdict(w) for w in found], "shares": [asdict(s) for s in shares]}, show


def _single(worlds: int) -> tuple[dict[str, Any], Callable[[], None]]:
    with console.progress("bench tables, single") as report:
        rows = single.measure_single(worlds, report)

    def show() -> None:
        console.print_table(
            [_summed([row for row in rows if row.table == name]) for name in _names(rows)],
            "Intervals of suppressed cells, beside those of pytauargus's audit",
        )

    return {"rows": [asdict(row) for row in rows]}, show


def _cures(worlds: int, people: int) -> tuple[dict[str, Any], Callable[[], None]]:
    with console.progress("bench tables, cure") as report:
        rows = cures.measure_cures(worlds, people, progress=report)

    def total(who: str, each: Sequence[cures.Protection]) -> dict[str, Any]:
        return {
            "protected by": who,
            "hidden": sum(p.hidden for p in each),
            "people": sum(p.people for p in each),
            "pinned": sum(p.pinned for p in each),
            "s": f"{sum(p.seconds for p in each):.1f}",
        }

    def show() -> None:
        for name in cures.TABLES:
            some = [row for row in rows if row.tables == name]
            title = f"{name}: {len(some)} worlds, {sum(r.numbers for r in some)} numbers, "
            title += f"{sum(r.primary for r in some)} of one or two people"
            theirs = total("pytauargus", [row.theirs for row in some])
            ours = total("countleak", [row.ours for row in some])
            console.print_table([theirs, ours], title)
            failed = [row.failure for row in some if row.failure]
            if failed:
                console.say(f"No cure in {len(failed)} worlds: {failed[0]}")

    return {"rows": [asdict(row) for row in rows]}, show


def _posterior(worlds: int, people: int) -> tuple[dict[str, Any], Callable[[], None]]:
    with console.progress("bench tables, posterior") as report:
        rows = posterior.measure_posterior(worlds, people, progress=report)

    def show() -> None:
        console.print_table(
            [
                {
                    "people are": row.kind,
                    "groups": row.groups,
                    "withdrawn": row.withdrawn,
                    "right": percent(row.accuracy),
                    "stated": percent(row.confidence),
                    "guessing": percent(row.baseline),
                    "calibration error": f"{row.error:.3f}",
                    "1 or 2 at 95%": f"{row.right} of {row.sure}",
                    "interval": f"{percent(row.low)} to {percent(row.high)}",
                    "of all": percent(row.few),
                }
                for row in rows
            ],
            f"The likeliest count of each hidden group, in {worlds} worlds of each kind",
        )

    return {"rows": [asdict(row) for row in rows]}, show


def _names(rows: Sequence[single.Row]) -> list[str]:
    return list(dict.fromkeys(row.table for row in rows))


def _summed(rows: Sequence[single.Row]) -> dict[str, Any]:
    """All tables of a name in one line."""

    def total(name: str) -> Any:
        values = [getattr(row, name) for row in rows]
        return None if None in values else sum(values)

    return {
        "table": rows[0].table,
        "tables": len(rows),
        **{name: total(name) for name in ("suppressed", "equal", "tighter", "wider", "pinned")},
        "not empty": total("pinned_not_empty"),
        "marked": total("pinned_marked"),
        "audit, ms": f"{1000 * total('audit_seconds'):.0f}",
        "ledger, ms": f"{1000 * total('ledger_seconds'):.0f}",
    }
