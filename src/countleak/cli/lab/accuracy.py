"""`countleak lab bench`: how right countleak is, beside its peers and what is possible."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from countleak.attack.design import Goal, Information, Variance
from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.errors import InputError
from countleak.lab.bench import budget as grids
from countleak.lab.bench.attained import FEW, MANY, NAMED, measure_named
from countleak.lab.bench.categories import measure_categories
from countleak.lab.bench.decoders import SUITES, compare, pooled_error, queries_needed
from countleak.lab.bench.exact import PEOPLE, crossings, measure_exact
from countleak.lab.bench.questions import measure_questions, savings
from countleak.lab.bench.recorded import compare_recorded, needed
from countleak.lab.figures.benches import draw_categories, draw_exact, draw_orders
from countleak.shares import percent

SHOWN = ("kind", "n", "m", "sigma", "prior", "decoder", "accuracy", "se", "worst", "perfect",
         "baseline", "evolution", "limit", "genie", "calibration_error", "claims_95",
         "precision_95", "seconds")  # fmt: skip


@needs({"--data": {"--suite": ("recorded",)}})
def decoders(
    suite: Annotated[
        str,
        typer.Option(
            help=f"What to compare on: {', '.join(SUITES)}, or recorded (with --data).",
        ),
    ] = "queries",
    trials: Annotated[
        int, typer.Option(help="Worlds per setting (recorded: subsets per size).", min=2)
    ] = 20,
    data: Annotated[
        Path | None, typer.Option(help="recorded: the folder `data` of the authors' repository.")
    ] = None,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Compare the decoders' accuracy, calibration and speed with each other and the limits."""
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
    console.print_table(rows, f"{chosen.question} ({trials} simulated worlds per row)")
    for decoder, error in pooled.items():
        if error is not None:
            console.say(f"Calibration error of {decoder} over all rows together: {error:.4f}")
    for decoder, queries in reached.items():
        needed = "not reached" if queries is None else f"{queries:.0f} queries"
        console.say(f"99% with {decoder}: {needed}")


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
    console.print_table(records, f"Recorded answers of Diffix ({trials} random subsets per row)")
    console.print_table(rows, "Queries for 99% mean accuracy")


def questions(
    ranges: Annotated[
        str, typer.Option(help="Ids of the generated bank, a list like 2000-2999,10000-11999.")
    ] = "2000-2999",
    salts: Annotated[int, typer.Option(help="Systems per range, each with a salt.", min=1)] = 20,
    starts: Annotated[int, typer.Option(help="First batches per system.", min=1)] = 1,
    batch: Annotated[int, typer.Option(help="Queries per batch.", min=1)] = 50,
    most: Annotated[int, typer.Option(help="Queries asked at most.", min=1)] = 1600,
    primes: Annotated[
        int, typer.Option(help="Primes of the pool, 140 queries each.", min=1, max=1000)
    ] = 25,
    jobs: options.Jobs = 1,
    folder: Annotated[
        Path, typer.Option(help="Where answers are kept, so that none is asked twice.")
    ] = Path("runs/questions"),
    picture: Annotated[
        Path | None, typer.Option(help="Draw precision against queries to this file.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Count the queries that choosing them saves, against random order from the same pool."""
    if picture:
        require_drawing(picture)
    pairs = [part.split("-") for part in ranges.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--ranges {ranges!r}: write a list like 2000-2999,10000-11999")
    ids = [
        (options.whole_from(low, "--ranges"), options.whole_from(high, "--ranges"))
        for low, high in pairs
    ]
    goals: dict[str, Goal] = {"information": Information(), "variance": Variance()}
    with console.progress("bench questions") as report:
        curves = measure_questions(
            folder, goals, ids, salts, starts, batch, most, primes, jobs, report
        )
    rows = list(savings(curves))
    if picture:
        draw_orders(curves, picture)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows]})
        return
    if not rows:
        console.say("No order got so far on two systems; raise --most")
        return
    console.print_table(
        [
            {
                "ids": f"{row.ids[0]}-{row.ids[1]}",
                "goal": row.order,
                "until": f"{row.until} share right {row.level:g}",
                "systems": f"{row.pairs} of {row.systems}",
                "random": f"{row.random:.0f} ± {row.random_error:.0f}",
                "chosen": f"{row.chosen:.0f} ± {row.chosen_error:.0f}",
                "fewer": f"{row.fewer:.0f} ± {row.fewer_error:.0f}",
                "saved": percent(row.fewer_share),
                "wins, ties": f"{row.wins}, {row.ties}",
            }
            for row in rows
        ],
        "Queries needed, mean ± standard error",
    )


@needs({"--suppression": {"--suite": ("paper",)}, "--within": {"--suite": ("paper",)}})
def budget(
    suite: Annotated[
        Literal["paper", "named"],
        typer.Option(
            help="The paper's grid, or whether each decoder that is named attains what is "
            "predicted: uniform noise, rounding, few answers, many people."
        ),
    ] = "paper",
    whole_grid: Annotated[
        bool, typer.Option("--whole-grid", help="All of the grid, not a thinned one.")
    ] = False,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="A list of lp, ls, bayes and, with --suite named, bounded (one second per trial, "
            "not a millisecond); paper: lp,ls; named: all."
        ),
    ] = None,
    suppression: Annotated[
        bool, typer.Option(help="paper: simulate each attack with low counts suppressed, too.")
    ] = True,
    trials: Annotated[
        int | None,
        typer.Option(help="Simulated attacks per cell (paper: 100, named: 12).", min=2),
    ] = None,
    within: Annotated[
        float, typer.Option(help="paper: difference beyond which a cell is named.")
    ] = 0.015,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Compare the accuracy `countleak budget` predicts with simulated attacks."""
    chosen = [name.strip() for name in decoder.split(",")] if decoder is not None else None
    if suite == "named":
        _named(whole_grid, chosen or list(NAMED), trials or 12, seed, json)
        return
    with console.progress("bench budget") as report:
        rows = grids.measure_budget(
            grids.PEOPLE if whole_grid else grids.FEW_PEOPLE,
            grids.QUERIES if whole_grid else grids.FEW_QUERIES,
            grids.SIGMAS if whole_grid else grids.FEW_SIGMAS,
            ["lp", "ls"] if chosen is None else chosen,
            suppression,
            trials or 100,
            seed,
            report,
        )
    summaries = [asdict(s) for s in grids.summaries(rows, within)]
    if json:
        console.print_json({"rows": [asdict(row) for row in rows], "summaries": summaries})
        return
    beyond = [row for row in rows if abs(row.difference) > within]
    if not whole_grid:
        console.print_table([asdict(row) for row in rows], "Predicted and simulated accuracy")
    elif beyond:
        console.print_table(
            [asdict(row) for row in beyond], f"Cells that differ by over {within:g}"
        )
    console.print_table(summaries, "By decoder")


def _named(whole: bool, decoders: list[str], trials: int, seed: int, json: bool) -> None:
    """Compare with the decoders that are named; exit with 1 where one does not hold."""
    with console.progress("bench budget") as report:
        rows = measure_named(MANY if whole else FEW, trials, decoders, seed, report)
    failed = sum(not row.holds for row in rows)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows], "failed": failed})
    else:
        console.print_table([asdict(row) for row in rows], "Predicted, and measured of a decoder")
        console.say(f"{len(rows) - failed} of {len(rows)} rows hold")
    if failed:
        raise typer.Exit(1)


def categories(
    queries: Annotated[
        str, typer.Option(help="Queries per value, a list like 50,150.")
    ] = "50,150,350,750",
    people: Annotated[int, typer.Option(help="Clients attacked.", min=2, max=800)] = 100,
    sigma: Annotated[float, typer.Option(help="SD of the noise.", min=1e-3, max=1e6)] = 4.0,
    trials: Annotated[int, typer.Option(help="Fresh banks per number of queries.", min=1)] = 24,
    suppression: Annotated[bool, typer.Option(help="Suppress low counts, as Diffix.")] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw accuracy against queries to this file.")
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Decode all four loan statuses together, and one by one: accuracy beside the baseline."""
    counts = [options.whole_from(part, "--queries") for part in queries.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("bench categories") as report:
        rows = measure_categories(counts, people, sigma, trials, suppression, seed, report)
    if picture:
        draw_categories(rows, picture)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows]})
    else:
        console.print_table([asdict(row) for row in rows])


def exact(
    people: Annotated[str, typer.Option(help="Numbers of people, a list like 60,100.")] = ",".join(
        map(str, PEOPLE)
    ),
    trials: Annotated[int, typer.Option(help="Worlds per number of queries.", min=1)] = 20,
    limit: Annotated[float, typer.Option(help="Seconds per world.", min=0.1)] = 10.0,
    jobs: options.Jobs = -1,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the share of worlds solved to this file.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Find how few exact counts are enough to solve for everyone, and to prove it."""
    sizes = [options.whole_from(part, "--people") for part in people.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("bench exact") as report:
        rows = measure_exact(sizes, trials=trials, time_limit=limit, jobs=jobs, progress=report)
    enough = [asdict(crossing) for crossing in crossings(rows)]
    if picture:
        draw_exact(rows, limit, picture)
    if json:
        console.print_json(
            {"time_limit": limit, "rows": [asdict(row) for row in rows], "crossings": enough}
        )
        return
    shown = [
        {
            "n": row.n,
            "m": row.m,
            "solved": f"{row.solved} of {row.worlds}",
            "95%": row.interval,
            "proven": row.proven,
            "wrong proofs": row.wrong_proofs,
            "time outs": row.time_outs,
            "median seconds": row.median_seconds,
            "last engine": ", ".join(row.engines),
        }
        for row in rows
    ]
    console.print_table(shown, f"Exact counts of random people, {limit:g} s per world")
    console.print_table(enough, "Fewest queries from which on 95% of the worlds are solved")
