"""`countleak bench`: measurements against named peers, in one run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from countleak.attack.design import Goal, Information, Variance
from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, words
from countleak.cli.bench_decoders import decoders
from countleak.errors import InputError
from countleak.lab.bench import budget as grids
from countleak.lab.bench.categories import measure_categories
from countleak.lab.bench.diffix import measure_attack, measure_many
from countleak.lab.bench.peers import versions
from countleak.lab.bench.questions import measure_questions, savings
from countleak.lab.bench.serve import measure as measure_serving
from countleak.lab.bench.solvers import (
    PAPER_SIZES,
    growth,
    measure,
    measure_batch,
    measure_first_call,
)
from countleak.lab.bench.sweeps import measure_scaling
from countleak.lab.figures.benches import draw_categories, draw_growth, draw_orders

bench = typer.Typer(
    help="Measure countleak against named peers, side by side in one run.", no_args_is_help=True
)


@bench.callback()
def options() -> None:
    """Measure countleak against named peers, side by side in one run."""


bench.command()(decoders)


@bench.command()
def solvers(
    sizes: Annotated[
        str,
        typer.Option(help="`paper` (50x500, 100x2550, 142x3500) or a list like 50x500,1000x10000."),
    ] = "paper",
    rows: Annotated[
        str, typer.Option(help="`random` rows, or `digits`: ids 1000.., exponents 0.5-0.9.")
    ] = "random",
    repeats: Annotated[int, typer.Option(help="Fresh instances a size.", min=1)] = 7,
    threads: Annotated[str, typer.Option(help="Threads, a list like 1,2.")] = "1",
    limit: Annotated[
        float, typer.Option(help="Seconds a peer may be expected to take before it is left out.")
    ] = 60.0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw time against n to this file (.svg or .png).")
    ] = None,
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Time the reconstruction program from problem to certified solution, against all solvers."""
    counts = [words.whole(part, "--threads") for part in threads.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("bench solvers") as report:
        found = measure(
            sizes_of(sizes),
            rows=rows,
            repeats=repeats,
            threads=counts,
            seed=seed,
            limit=limit,
            progress=report,
        )
    if picture:
        draw_growth(found.rows, picture)
    if json:
        console.print_json(
            {
                "rows": [asdict(row) for row in found.rows],
                "ratios": [asdict(ratio) for ratio in found.ratios],
                "versions": versions(),
            }
        )
    else:
        console.print_table(
            [
                {
                    "n": row.n,
                    "m": row.m,
                    "threads": row.threads,
                    "solver": row.solver,
                    "median_ms": f"{1000 * row.median_seconds:.2f}",
                    "worst_gap": f"{row.gap:.0e}",
                    "runs": row.repeats,
                    "time ~ n^": _exponent(growth(found.rows, row.solver, row.threads)),
                }
                for row in found.rows
            ],
            f"From problem to certified solution, {rows} rows, sigma 4",
        )
        for ratio in found.ratios:
            console.say(
                f"{ratio.n} x {ratio.m}, threads {ratio.threads}: {ratio.ratio:.1f} times as fast "
                f"as the best library ({ratio.best_library})"
            )
        console.say(f"Versions: {', '.join(f'{k} {v}' for k, v in versions().items())}")
    for remark in found.remarks:
        console.remark(remark)


@bench.command()
def batch(
    n: Annotated[int, typer.Option(help="People.", min=1)] = 100,
    m: Annotated[int, typer.Option(help="Queries.", min=1)] = 2550,
    answers: Annotated[int, typer.Option(help="Answer vectors to the same queries.", min=1)] = 50,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 2,
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Time many answer vectors to one set of queries: one by one, and in one call."""
    found = measure_batch(n, m, answers, threads, seed)
    if json:
        console.print_json(asdict(found))
    else:
        console.print_table([{k: _shown(v) for k, v in asdict(found).items()}])


@bench.command()
def sweep(
    jobs: Annotated[str, typer.Option(help="Numbers of cores, a list like 1,2.")] = "1,2",
    trials: Annotated[int, typer.Option(help="Trials to run on each.", min=3)] = 1400,
    json: words.Json = False,
) -> None:
    """Time a sweep on several numbers of cores: throughput, overhead a trial, cost of many."""
    counts = [words.whole(part, "--jobs") for part in jobs.split(",")]
    with console.progress("bench sweep") as report:
        found = [asdict(row) for row in measure_scaling(counts, trials=trials, progress=report)]
    if json:
        console.print_json({"rows": found})
    else:
        console.print_table([{k: _shown(v) for k, v in row.items()} for row in found])


@bench.command()
def first_call(json: words.Json = False) -> None:
    """Time the first solution in a fresh process: imports and the cached code included."""
    seconds = measure_first_call()
    if json:
        console.print_json({"seconds": seconds})
    else:
        console.say(f"First solution in a fresh process: {seconds:.2f} s, Python's start included")


@bench.command()
def diffix(
    primes: Annotated[int, typer.Option(help="Attack of this many primes, 140 each.", min=1)] = 25,
    rows: Annotated[
        int, typer.Option(help="Also time questions over so many rows (0: none).", min=0)
    ] = 10_000_000,
    threads: Annotated[int, typer.Option(help="Threads of the database.", min=1)] = 2,
    json: words.Json = False,
) -> None:
    """Time the rebuilt Diffix: the attack on a bank, and questions over many rows."""
    found = [measure_attack(primes)]
    if rows:
        with console.progress("bench diffix") as report:
            found += measure_many(rows, threads, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in found]})
        return
    console.print_table(
        [
            {
                "rows": row.rows,
                "times": row.times,
                "ms each": f"{1000 * row.seconds_each:.1f}",
                "in all, s": f"{row.times * row.seconds_each:.1f}",
                "peak GiB": f"{row.peak_gib:.2f}",
                "question": row.question,
            }
            for row in found
        ]
    )


@bench.command()
def questions(
    ranges: Annotated[
        str, typer.Option(help="Ids of the generated bank, a list like 2000-2999,10000-11999.")
    ] = "2000-2999",
    salts: Annotated[int, typer.Option(help="Systems a range, each with its own salt.")] = 20,
    starts: Annotated[int, typer.Option(help="First batches a system.", min=1)] = 1,
    batch: Annotated[int, typer.Option(help="Queries a batch.", min=1)] = 50,
    most: Annotated[int, typer.Option(help="Queries asked at most.", min=1)] = 1600,
    primes: Annotated[int, typer.Option(help="Pool of this many primes, 140 each.", min=1)] = 25,
    jobs: words.Jobs = 1,
    folder: Annotated[
        Path, typer.Option(help="Where answers are kept, so that none is asked twice.")
    ] = Path("runs/questions"),
    picture: Annotated[
        Path | None, typer.Option(help="Draw precision against queries to this file.")
    ] = None,
    json: words.Json = False,
) -> None:
    """Count the queries that choosing them saves, against random order from the same pool."""
    if picture:
        require_drawing(picture)
    pairs = [part.split("-") for part in ranges.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--ranges {ranges!r}: write a list like 2000-2999,10000-11999")
    ids = [(words.whole(low, "--ranges"), words.whole(high, "--ranges")) for low, high in pairs]
    goals: dict[str, Goal] = {"information": Information(), "variance": Variance()}
    with console.progress("bench questions") as report:
        curves = measure_questions(
            folder, goals, ids, salts, starts, batch, most, primes, jobs, report
        )
    found = list(savings(curves))
    if picture:
        draw_orders(curves, picture)
    if json:
        console.print_json({"rows": [asdict(row) for row in found]})
        return
    if not found:
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
                "saved": f"{row.fewer_share:.1%}",
                "wins, ties": f"{row.wins}, {row.ties}",
            }
            for row in found
        ],
        "Queries needed, mean ± standard error",
    )


@bench.command()
def serve(
    queries: Annotated[int, typer.Option(help="Digit queries to ask of each.", min=1)] = 1000,
    connections: Annotated[str, typer.Option(help="Connections, a list like 1,4.")] = "1,4",
    json: words.Json = False,
) -> None:
    """Time digit queries through the server, in process, and on a plain PostgreSQL."""
    counts = [words.whole(part, "--connections") for part in connections.split(",")]
    with console.progress("bench serve") as report:
        found = measure_serving(queries, counts, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in found]})
        return
    console.print_table(
        [
            {
                "system": row.system,
                "connections": row.connections,
                "queries a second": f"{row.per_second:.0f}",
                "p50, ms": f"{1000 * row.p50:.2f}",
                "p99, ms": f"{1000 * row.p99:.2f}",
            }
            for row in found
        ],
        f"{found[0].queries} digit queries on 827 rows",
    )


@bench.command()
def budget(
    whole_grid: Annotated[
        bool, typer.Option("--whole-grid", help="All of the paper's grid, not a thinned one.")
    ] = False,
    decoder: Annotated[
        str, typer.Option(help="A list of lp, ls and bayes (a second a trial, not a millisecond).")
    ] = "lp,ls",
    suppression: Annotated[
        bool, typer.Option(help="Simulate each attack with low counts held back, too.")
    ] = True,
    trials: Annotated[int, typer.Option(help="Simulated attacks a cell.", min=2)] = 100,
    within: Annotated[float, typer.Option(help="Difference beyond which a cell is named.")] = 0.015,
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Compare the accuracy `countleak budget` predicts with simulated attacks."""
    with console.progress("bench budget") as report:
        found = grids.measure_budget(
            grids.PEOPLE if whole_grid else grids.FEW_PEOPLE,
            grids.QUERIES if whole_grid else grids.FEW_QUERIES,
            grids.SIGMAS if whole_grid else grids.FEW_SIGMAS,
            [name.strip() for name in decoder.split(",")],
            suppression,
            trials,
            seed,
            report,
        )
    summaries = [asdict(s) for s in grids.summaries(found, within)]
    if json:
        console.print_json({"rows": [asdict(row) for row in found], "summaries": summaries})
        return
    beyond = [row for row in found if abs(row.difference) > within]
    if not whole_grid:
        console.print_table([asdict(row) for row in found], "Predicted and simulated accuracy")
    elif beyond:
        console.print_table(
            [asdict(row) for row in beyond], f"Cells that differ by over {within:g}"
        )
    console.print_table(summaries, "By decoder")


@bench.command()
def categories(
    queries: Annotated[
        str, typer.Option(help="Queries a value, a list like 50,150.")
    ] = "50,150,350,750",
    people: Annotated[int, typer.Option(help="Clients of the bank attacked.", min=2)] = 100,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 4.0,
    trials: Annotated[int, typer.Option(help="Fresh banks a number of queries.", min=1)] = 24,
    suppression: Annotated[bool, typer.Option(help="Hold back low counts, as Diffix.")] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Draw accuracy against queries to this file.")
    ] = None,
    seed: words.Seed = 0,
    json: words.Json = False,
) -> None:
    """Decode all four loan statuses together, and one by one: accuracy beside the baseline."""
    counts = [words.whole(part, "--queries") for part in queries.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("bench categories") as report:
        found = measure_categories(counts, people, sigma, trials, suppression, seed, report)
    if picture:
        draw_categories(found, picture)
    if json:
        console.print_json({"rows": [asdict(row) for row in found]})
    else:
        console.print_table([asdict(row) for row in found])


def sizes_of(word: str) -> list[tuple[int, int]]:
    """The sizes (n, m) of a word like `paper` or 50x500,100x2550."""
    if word == "paper":
        return list(PAPER_SIZES)
    pairs = [part.split("x") for part in word.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--sizes {word!r}: write `paper` or a list like 50x500,1000x10000")
    return [(words.whole(n, "--sizes"), words.whole(m, "--sizes")) for n, m in pairs]


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _shown(value: float | int) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
