"""`countleak lab bench tables`: what published tables give away, beside the tools that check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.errors import InputError
from countleak.lab.bench.tables import cures, posterior, single, trial
from countleak.shares import percent

TRIAL, SINGLE, CURE, POSTERIOR = "trial", "single", "cure", "posterior"


@needs({"--people": {"--suite": (TRIAL, CURE, POSTERIOR)}})
def tables(
    suite: Annotated[
        str,
        typer.Option(
            help="trial: two tables of the same people, each protected by pytauargus; single: our "
            "intervals of single tables beside those of its audit; cure: what protecting them "
            "costs, beside it; posterior: whether likely counts are as likely as said."
        ),
    ] = TRIAL,
    worlds: Annotated[int, typer.Option(help="Generated worlds, of each kind.", min=1)] = 10,
    people: Annotated[
        int | None,
        typer.Option(help="People per world; by default 3000, cure 150, posterior 700.", min=10),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure what published tables give away together, beside the tools that check them."""
    suites: Mapping[str, Callable[[], tuple[dict[str, Any], Callable[[], None]]]] = {
        TRIAL: lambda: _trial(worlds, people or 1500),
        SINGLE: lambda: _single(worlds),
        CURE: lambda: _cures(worlds, people or 150),
        POSTERIOR: lambda: _posterior(worlds, people or 700),
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
