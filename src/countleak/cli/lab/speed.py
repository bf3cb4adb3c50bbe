"""`countleak lab bench`: how fast countleak is, beside its peers in the same run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from countleak.audit.report.drawing import require_drawing
from countleak.cli import console, options
from countleak.errors import InputError
from countleak.lab.bench.asking import measure_asking
from countleak.lab.bench.diffix import measure_attack, measure_many
from countleak.lab.bench.peers import versions
from countleak.lab.bench.serve import measure as measure_serving
from countleak.lab.bench.solvers import (
    PAPER_SIZES,
    growth,
    measure,
    measure_batch,
    measure_first_call,
)
from countleak.lab.bench.sweeps import measure_scaling
from countleak.lab.bench.timing import measure as measure_timing
from countleak.lab.figures.benches import draw_growth
from countleak.shares import percent


def solvers(
    sizes: Annotated[
        str,
        typer.Option(help="`paper` (50x500, 100x2550, 142x3500) or a list like 50x500,1000x10000."),
    ] = "paper",
    rows: Annotated[
        str, typer.Option(help="`random` rows, or `digits`: ids 1000.., exponents 0.5-0.9.")
    ] = "random",
    repeats: Annotated[int, typer.Option(help="Fresh instances per size.", min=1)] = 7,
    threads: Annotated[str, typer.Option(help="Threads, a list like 1,2.")] = "1",
    limit: Annotated[
        float, typer.Option(help="Seconds a peer may be expected to take before it is left out.")
    ] = 60.0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw time against n to this file (.svg or .png).")
    ] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Time the program from problem to certified solution, against all solvers."""
    counts = [options.whole_from(part, "--threads") for part in threads.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("bench solvers") as report:
        measurement = measure(
            sizes_of(sizes),
            rows=rows,
            repeats=repeats,
            threads=counts,
            seed=seed,
            limit=limit,
            progress=report,
        )
    if picture:
        draw_growth(measurement.rows, picture)
    if json:
        console.print_json(
            {
                "rows": [asdict(row) for row in measurement.rows],
                "ratios": [asdict(ratio) for ratio in measurement.ratios],
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
                    "time ~ n^": _exponent(growth(measurement.rows, row.solver, row.threads)),
                }
                for row in measurement.rows
            ],
            f"From problem to certified solution, {rows} rows, sigma 4",
        )
        for ratio in measurement.ratios:
            console.say(
                f"{ratio.n} x {ratio.m}, threads {ratio.threads}: {ratio.ratio:.1f} times as fast "
                f"as the best library ({ratio.best_library})"
            )
        console.say(f"Versions: {', '.join(f'{k} {v}' for k, v in versions().items())}")
    for remark in measurement.remarks:
        console.remark(remark)


def batch(
    n: Annotated[int, typer.Option(help="People.", min=1)] = 100,
    m: Annotated[int, typer.Option(help="Queries.", min=1)] = 2550,
    answers: Annotated[int, typer.Option(help="Answer vectors to the same queries.", min=1)] = 50,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 2,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Time many answer vectors to one set of queries: one by one, and in one call."""
    timing = measure_batch(n, m, answers, threads, seed)
    if json:
        console.print_json(asdict(timing))
    else:
        console.print_table([{k: _shown(v) for k, v in asdict(timing).items()}])


def sweep(
    jobs: Annotated[str, typer.Option(help="Numbers of cores, a list like 1,2.")] = "1,2",
    trials: Annotated[int, typer.Option(help="Trials to run on each.", min=3)] = 1400,
    json: options.Json = False,
) -> None:
    """Time a sweep on several numbers of cores: throughput, overhead per trial, total cost."""
    counts = [options.whole_from(part, "--jobs") for part in jobs.split(",")]
    with console.progress("bench sweep") as report:
        rows = [asdict(row) for row in measure_scaling(counts, trials=trials, progress=report)]
    if json:
        console.print_json({"rows": rows})
    else:
        console.print_table([{k: _shown(v) for k, v in row.items()} for row in rows])


def first_call(json: options.Json = False) -> None:
    """Time the first solution in a fresh process: imports and the cached code included."""
    seconds = measure_first_call()
    if json:
        console.print_json({"seconds": seconds})
    else:
        console.say(f"First solution in a fresh process: {seconds:.2f} s, Python's start included")


def diffix(
    primes: Annotated[
        int, typer.Option(help="Primes of the attack, 140 queries each.", min=1, max=1000)
    ] = 25,
    rows: Annotated[
        int, typer.Option(help="Also time questions over so many rows (0: none).", min=0)
    ] = 10_000_000,
    threads: Annotated[int, typer.Option(help="Threads of the database.", min=1)] = 2,
    json: options.Json = False,
) -> None:
    """Time the rebuilt Diffix: the attack on a bank, and questions over many rows."""
    timings = [measure_attack(primes)]
    if rows:
        with console.progress("bench diffix") as report:
            timings += measure_many(rows, threads, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in timings]})
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
            for row in timings
        ]
    )


def serve(
    queries: Annotated[int, typer.Option(help="Digit queries to ask of each.", min=1)] = 1000,
    connections: Annotated[str, typer.Option(help="Connections, a list like 1,4.")] = "1,4",
    json: options.Json = False,
) -> None:
    """Time digit queries through the server, in process, and on a plain PostgreSQL."""
    counts = [options.whole_from(part, "--connections") for part in connections.split(",")]
    with console.progress("bench serve") as report:
        rows = measure_serving(queries, counts, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows]})
        return
    console.print_table(
        [
            {
                "system": row.system,
                "connections": row.connections,
                "queries per second": f"{row.per_second:.0f}",
                "p50, ms": f"{1000 * row.p50:.2f}",
                "p99, ms": f"{1000 * row.p99:.2f}",
            }
            for row in rows
        ],
        f"{rows[0].queries} digit queries on 827 rows",
    )


def ask(
    family: Annotated[
        Literal["digits", "modular", "subsets"], typer.Option(help="Family of the questions.")
    ] = "digits",
    queries: Annotated[int, typer.Option(help="Questions to ask in a turn.", min=1)] = 3500,
    turns: Annotated[int, typer.Option(help="Turns that are counted.", min=1)] = 5,
    json: options.Json = False,
) -> None:
    """Time countleak beside a plain loop that asks the same questions of the same server."""
    with console.progress("bench ask") as report:
        found = measure_asking(family, queries, turns, report)
    if json:
        console.print_json(
            {**asdict(found), "share": found.share, "share_by_clock": found.share_by_clock}
        )
        return
    console.print_table(
        [
            {
                "what": cost.what,
                "seconds": f"{cost.seconds:.2f}",
                "of its own": f"{cost.own_seconds:.2f}",
            }
            for cost in found.costs
        ],
        f"{found.questions} {family} questions to a plain PostgreSQL, medians of {turns} turns",
    )
    console.say(
        f"Beyond the loop countleak takes {percent(found.share)} of the loop's time for itself, "
        f"{percent(found.share_by_clock)} by the clock."
    )


def timing(
    pairs: Annotated[
        int, typer.Option(help="Pairs of a suppressed group and an empty set.", min=1)
    ] = 2000,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Tell suppressed groups from empty sets by the time the rebuilt Diffix takes."""
    with console.progress("bench timing") as report:
        rows = measure_timing(pairs, seed, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows]})
        return
    console.print_table(
        [
            {
                "database": row.database,
                "suppressed, us": f"{1e6 * row.suppressed:.0f}",
                "empty, us": f"{1e6 * row.empty:.0f}",
                "AUC": f"{row.auc:.3f}",
                "95%": f"{row.low:.3f} to {row.high:.3f}",
                "question": row.question,
            }
            for row in rows
        ],
        f"{pairs} pairs, interleaved; an AUC of .5 tells nothing",
    )


def sizes_of(word: str) -> list[tuple[int, int]]:
    """The sizes (n, m) of a word like `paper` or 50x500,100x2550."""
    if word == "paper":
        return list(PAPER_SIZES)
    pairs = [part.split("x") for part in word.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--sizes {word!r}: write `paper` or a list like 50x500,1000x10000")
    return [(options.whole_from(n, "--sizes"), options.whole_from(m, "--sizes")) for n, m in pairs]


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _shown(value: float | int) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
