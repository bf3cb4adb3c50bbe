"""How few exact counts determine everyone, and how few a solver can make use of.

Random subsets of n people with secrets of rate 1/2, counted exactly. A count of random people
carries about log2(n)/2 bits, so that fewer than 2n / log2(n) counts cannot determine n bits; how
many more it takes to find them within a time limit is measured.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from joblib import Parallel, delayed

from countleak.attack.solvers.integer import WholeStatus, solve_whole
from countleak.attack.solvers.intervals import CountIntervals
from countleak.audit.scores import wilson
from countleak.errors import InputError
from countleak.lab.bench.worlds import Setting
from countleak.progress import Progress, silent

PEOPLE = (60, 100, 200)
# Queries per person, from where everything is easy downwards.
SHARES = (0.55, 0.525, 0.5, 0.475, 0.45, 0.425, 0.4, 0.375, 0.35, 0.325, 0.3)
ENOUGH = 0.95
# Below this share of worlds solved, fewer queries are not tried.
HOPELESS = 0.5


@dataclass(frozen=True)
class Row:
    """Of ``worlds`` with ``m`` exact counts of ``n`` people: how many were solved, and proven.

    In ``solved`` of them everyone is right, in ``proven`` there is proven to be no other solution,
    and ``time_outs`` ended with somebody undecided. ``interval`` is Wilson's for the share solved.
    """

    n: int
    m: int
    information_limit: float
    worlds: int
    solved: int
    interval: tuple[float, float]
    proven: int
    wrong_proofs: int
    time_outs: int
    median_seconds: float
    engines: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of worlds solved."""
        return self.solved / self.worlds


@dataclass(frozen=True)
class Crossing:
    """The smallest ``m`` tried from which on 95% of worlds are solved; None: nowhere."""

    n: int
    information_limit: float
    m: int | None
    ratio: float | None


@dataclass(frozen=True)
class _Trial:
    solved: bool
    proven: bool
    wrong_proofs: int
    time_out: bool
    seconds: float
    engine: str


def information_limit(n: int) -> float:
    """2n / log2(n), in queries."""
    return 2 * n / log2(n)


def measure_exact(
    people: Sequence[int] = PEOPLE,
    shares: Sequence[float] = SHARES,
    trials: int = 20,
    time_limit: float = 10.0,
    jobs: int = 1,
    progress: Progress = silent,
) -> list[Row]:
    """Rows from many queries to few, for each number of people until half are not solved."""
    if min(people) < 2:
        raise InputError(f"{min(people)} people; there must be at least 2")
    total = len(people) * len(shares) * trials
    rows: list[Row] = []
    with Parallel(n_jobs=jobs, return_as="generator") as run:
        for at, n in enumerate(people):
            sizes = sorted({max(1, round(share * n)) for share in shares}, reverse=True)
            for step, m in enumerate(sizes):
                results: list[_Trial] = []
                tasks = (delayed(_trial)(n, m, number, time_limit) for number in range(trials))
                for result in run(tasks):
                    progress((at * len(shares) + step) * trials + len(results), total)
                    results.append(result)
                rows.append(_row(n, m, results))
                if rows[-1].share < HOPELESS:
                    break
    progress(total, total)
    return rows


def _trial(n: int, m: int, number: int, time_limit: float) -> _Trial:
    world = Setting(n, m, sigma=0.0).world(number)
    intervals = CountIntervals.around(world.transcript.A, world.transcript.b)
    solution = solve_whole(intervals, time_limit=time_limit, seed=number)
    right = np.zeros(n, np.bool_) if solution.x is None else solution.x == world.secret
    return _Trial(
        bool(right.all()),
        solution.unique,
        int((solution.proven & ~right).sum()) if solution.x is not None else 0,
        solution.status is WholeStatus.TIME_OUT or bool(solution.undecided.any()),
        solution.seconds,
        solution.engines[-1],
    )


def _row(n: int, m: int, results: Sequence[_Trial]) -> Row:
    solved = sum(result.solved for result in results)
    return Row(
        n,
        m,
        information_limit(n),
        len(results),
        solved,
        wilson(solved, len(results)),
        sum(result.proven for result in results),
        sum(result.wrong_proofs for result in results),
        sum(result.time_out for result in results),
        float(np.median([result.seconds for result in results])),
        tuple(dict.fromkeys(result.engine for result in results)),
    )


def crossings(rows: Sequence[Row]) -> Iterator[Crossing]:
    """For each number of people, how few queries were enough."""
    for n in dict.fromkeys(row.n for row in rows):
        enough = None
        for row in sorted((row for row in rows if row.n == n), key=lambda row: -row.m):
            if row.share < ENOUGH:
                break
            enough = row.m
        limit = information_limit(n)
        yield Crossing(n, limit, enough, None if enough is None else enough / limit)
