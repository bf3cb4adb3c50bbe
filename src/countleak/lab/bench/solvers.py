"""Time from problem to certified solution, our solver beside every other a user might pick."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np

from countleak.attack.programs import Bracket, Problem, Solution, certify
from countleak.attack.queries.digits import CONSTANTS, SWEEP_EXPONENTS, digit_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.solvers.interior import InteriorPoint
from countleak.audit.people import generated_census
from countleak.errors import InputError, SolverError
from countleak.lab.bench.peers import PEERS, Peer, using_threads
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


@dataclass(frozen=True)
class Batch:
    """Milliseconds per problem for many answer vectors to one set of queries."""

    n: int
    m: int
    answers: int
    threads: int
    ms_one_by_one: float
    ms_in_one_call: float
    worst_gap: float


def measure_batch(n: int, m: int, answers: int, threads: int, seed: int = 0) -> Batch:
    """Solve ``answers`` right-hand sides of one matrix, apart and together."""
    first = instance("random", n, m, (seed, n, m))
    rng = np.random.default_rng([seed, answers])
    problems = [
        Problem(first.A, first.A @ rng.integers(0, 2, n) + np.round(rng.normal(0.0, SIGMA, m)))
        for _ in range(answers)
    ]
    solver = InteriorPoint(threads=threads)
    solver.solve_all(problems[:2])
    begin = perf_counter()
    for problem in problems:
        solver.solve(problem)
    apart = perf_counter() - begin
    begin = perf_counter()
    solutions = solver.solve_all(problems)
    together = perf_counter() - begin
    worst = max(_gap(p, s) for p, s in zip(problems, solutions, strict=True))
    return Batch(n, m, answers, threads, 1000 * apart / answers, 1000 * together / answers, worst)


FIRST_CALL = """
import numpy
from countleak.attack.programs import Problem
from countleak.attack.solvers.interior import InteriorPoint
A = numpy.random.default_rng(0).integers(0, 2, (500, 50), dtype=numpy.int8)
InteriorPoint().solve(Problem(A, A @ numpy.ones(50)))
"""


def measure_first_call() -> float:
    """Seconds from the start of a Python process to its first solution, the cache warm."""
    command = [sys.executable, "-c", FIRST_CALL]
    subprocess.run(command, check=True)
    begin = perf_counter()
    subprocess.run(command, check=True)
    return perf_counter() - begin
