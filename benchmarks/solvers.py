"""Time from problem to certified solution, our solver beside every other a user might pick."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from benchmarks.peers import PEERS, Peer, using_threads, versions
from benchmarks.start import main, whole_from
from countleak.attack.programs import Bracket, Problem, Solution, certify
from countleak.attack.queries.digits import CONSTANTS, SWEEP_EXPONENTS, digit_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.solvers.interior import InteriorPoint
from countleak.audit.people import generated_census
from countleak.audit.report.drawing import altair, require_drawing, save
from countleak.cli import console, options
from countleak.errors import InputError, SolverError
from countleak.progress import Progress, silent

PAPER_SIZES = ((50, 500), (100, 2550), (142, 3500))
PILOT = (100, 1000)
SIGMA = 4.0
# A library whose gap is larger has not solved the program, and its time does not count.
SOLVED = 1e-6
OURS = "countleak interior point"


@dataclass(frozen=True)
class Row:
    """What one solver did at one size: the median time, and the worst gap it left."""

    n: int
    m: int
    solver: str
    threads: int
    median_seconds: float
    gap: float
    repeats: int


@dataclass(frozen=True)
class Ratio:
    """How many times faster ours was than the best library at one size."""

    n: int
    m: int
    threads: int
    best_library: str
    ratio: float


@dataclass(frozen=True)
class Measurement:
    """All rows and ratios of one run, and why a solver is missing."""

    rows: tuple[Row, ...]
    ratios: tuple[Ratio, ...]
    remarks: tuple[str, ...]


def instance(rows: str, n: int, m: int, seed: tuple[int, ...]) -> Problem:
    """A program as the paper's simulations draw it: n bits, m queries, rounded noise of SD 4.

    ``rows`` are `random` or `digits`.
    """
    rng = np.random.default_rng(seed)
    ids = generated_census(max(n, 2)).ids[:n]
    if rows == "random":
        matrix = random_subsets(ids, m, rng).matrix
    elif rows == "digits":
        primes = -(-m // (len(CONSTANTS) * len(SWEEP_EXPONENTS)))
        matrix = digit_queries(ids, primes=primes, exponents=SWEEP_EXPONENTS).matrix[:m]
    else:
        raise InputError(f"there are no rows {rows!r}; choose random or digits")
    noise = np.round(rng.normal(0.0, SIGMA, m))
    return Problem(matrix, matrix @ rng.integers(0, 2, n) + noise)


def measure(
    sizes: Sequence[tuple[int, int]],
    *,
    rows: str = "random",
    repeats: int = 7,
    threads: Sequence[int] = (1,),
    seed: int = 0,
    limit: float = 60.0,
    progress: Progress = silent,
) -> Measurement:
    """Time every solver on the same fresh instances, one after the other on each.

    A peer expected to take longer than ``limit`` seconds at a size is left out there.
    """
    timings: list[Row] = []
    remarks = [f"{p.name}: not installed (extra `bench`)" for p in PEERS if not p.installed]
    peers = [peer for peer in PEERS if peer.installed]
    # A small pilot says what to expect of each peer at the first size, and loads every library.
    pilot = instance(rows, *PILOT, (seed,))
    InteriorPoint().solve(pilot)
    with using_threads(1):
        first = {peer.name: _second(peer, pilot) for peer in peers}
    done, total = 0, len(threads) * len(sizes) * repeats
    for count in threads:
        last = dict(first)
        for n, m in sizes:
            contestants: dict[str, Callable[[Problem], Solution]] = {OURS: InteriorPoint().solve}
            for peer in peers:
                expected = _expected(last[peer.name], n, m)
                if expected <= limit:
                    contestants[peer.name] = partial(peer.solve, threads=count)
                else:
                    remarks.append(f"{peer.name} left out at {n} x {m}: {expected:.0f} s expected")
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
            with using_threads(count):
                for repeat in range(repeats):
                    progress(done, total)
                    done += 1
                    problem = instance(rows, n, m, (seed, n, m, repeat))
                    _race(problem, contestants, runs, limit, [seed, repeat])
            for name, timed in runs.items():
                seconds, gaps = zip(*timed, strict=True)
                timings.append(Row(n, m, name, count, median(seconds), max(gaps), len(timed)))
                last[name] = (n * m, max(seconds))
    progress(total, total)
    return Measurement(tuple(timings), tuple(_ratios(timings)), tuple(remarks))


def _race(
    problem: Problem,
    contestants: Mapping[str, Callable[[Problem], Solution]],
    runs: dict[str, list[tuple[float, float]]],
    limit: float,
    seed: list[int],
) -> None:
    """Let every contestant solve the problem, in random order, and note its time and gap."""
    for name in map(str, np.random.default_rng(seed).permutation(sorted(contestants))):
        spent = sum(seconds for seconds, _ in runs[name])
        if not runs[name] or spent + runs[name][-1][0] <= limit:
            solution = contestants[name](problem)
            runs[name].append((solution.seconds, _gap(problem, solution)))


def _second(peer: Peer, problem: Problem) -> tuple[int, float]:
    """Entries and seconds of a second run; the first may still be loading something."""
    peer.solve(problem)
    return problem.A.size, peer.solve(problem).seconds


def _gap(problem: Problem, solution: Solution) -> float:
    certificate = certify(problem, solution)
    if not isinstance(certificate, Bracket):
        raise SolverError(
            f"{solution.solver} calls a program infeasible that always has a solution"
        )
    return certificate.gap


def _expected(last: tuple[int, float], n: int, m: int) -> float:
    """Seconds to expect from the last size: simplex and factorisations grow like (nm)^1.5."""
    return float(last[1] * (n * m / last[0]) ** 1.5)


def _ratios(rows: Sequence[Row]) -> list[Ratio]:
    ratios = []
    for n, m, threads in dict.fromkeys((row.n, row.m, row.threads) for row in rows):
        here = [row for row in rows if (row.n, row.m, row.threads) == (n, m, threads)]
        ours = next(row for row in here if row.solver == OURS)
        libraries = [row for row in here if row.solver != OURS and row.gap <= SOLVED]
        if libraries and ours.gap <= SOLVED:
            best = min(libraries, key=lambda row: row.median_seconds)
            ratios.append(
                Ratio(n, m, threads, best.solver, best.median_seconds / ours.median_seconds)
            )
    return ratios


def growth(rows: Sequence[Row], solver: str, threads: int = 1) -> float | None:
    """The exponent k of time ~ n^k, fitted over the sizes a solver was measured at."""
    points = {r.n: r.median_seconds for r in rows if (r.solver, r.threads) == (solver, threads)}
    if len(points) < 2:
        return None
    return float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])


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
    counts = [whole_from(part, "--threads") for part in threads.split(",")]
    if picture:
        require_drawing(picture)
    with console.progress("solvers") as report:
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
                    "time ~ n^": _exponent(measurement.rows, row),
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


def sizes_of(word: str) -> list[tuple[int, int]]:
    """The sizes (n, m) of a word like `paper` or 50x500,100x2550."""
    if word == "paper":
        return list(PAPER_SIZES)
    pairs = [part.split("x") for part in word.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--sizes {word!r}: write `paper` or a list like 50x500,1000x10000")
    return [(whole_from(n, "--sizes"), whole_from(m, "--sizes")) for n, m in pairs]


def _exponent(rows: Sequence[Row], row: Row) -> str:
    exponent = growth(rows, row.solver, row.threads)
    return "-" if exponent is None else f"{exponent:.1f}"


def draw_growth(rows: Sequence[Row], path: Path) -> None:
    """Draw each solver's median time against n, on logarithmic scales, with the fitted exponent."""
    alt = altair()
    points = [
        {
            "n": row.n,
            "milliseconds": 1000 * row.median_seconds,
            "solver": _legend(rows, row.solver, row.threads),
            "ours": row.solver == OURS,
        }
        for row in rows
    ]
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "n:Q",
                scale=alt.Scale(type="log", nice=False),
                title="people n",
                axis=alt.Axis(values=sorted({row.n for row in rows})),
            ),
            y=alt.Y(
                "milliseconds:Q",
                scale=alt.Scale(type="log", nice=False),
                title="milliseconds, median",
            ),
            color=alt.Color("solver:N", title=None, sort=None, legend=alt.Legend(labelLimit=400)),
            strokeWidth=alt.condition("datum.ours", alt.value(4), alt.value(1.5)),
        )
        .properties(width=460, height=340, title="From problem to certified solution")
    )
    save(chart, path)


def _legend(rows: Sequence[Row], solver: str, threads: int) -> str:
    exponent = growth(rows, solver, threads)
    fitted = f", ~ n^{exponent:.1f}" if exponent is not None else ""
    return f"{solver}{fitted}" if threads == 1 else f"{solver}, {threads} threads{fitted}"


if __name__ == "__main__":
    main("solvers")
