"""How far the attack goes: time, memory and accuracy as the people grow in number.

Hashed subsets, as many counts as people, and normal noise of SD sqrt(n)/10, which leaves about the
same accuracy at every n. Each run is a process of its own, so that its memory is its own. Beside it
stand HiGHS, its PDLP and scipy's lsq_linear on the same answers, until one of them would take too
long.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders.auto import FEWEST_PASSED
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.solvers.amp import MessagePassing
from countleak.audit.budget.evolution import (
    Attack,
    LeastAbsolute,
    LeastSquares,
    Posterior,
    Recursion,
    fixed_point,
)
from countleak.audit.budget.inverse import sigma_for
from countleak.audit.scores import wilson
from countleak.audit.targets.simulated import Gaussian
from countleak.errors import NoPrediction, NoResult
from countleak.progress import Progress

# The noise's SD is the square root of the people over this.
LAW = 10.0
# Time grows by less than the cube of the people: what would take longer than the limit is left out.
WORST_GROWTH = 3.0
# Seconds of processor time for imports, compiling and the answers.
SETTING_UP = 60
LEAKS, SIZES = 0.95, tuple(int(10 ** (k / 2)) for k in range(4, 15))
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One method on ``n`` people and as many counts: ``seconds`` of processor time, memory in MiB.

    On several cores their seconds add up; ``elapsed`` are those by the clock, which on a busy
    machine say more about the others. ``predicted`` is by state evolution, ``expected`` by the
    method's own probabilities, each missing where there is none; ``interval`` is Wilson's.
    """

    method: str
    n: int
    sigma: float
    seconds: float
    elapsed: float
    memory: float
    accuracy: float
    interval: tuple[float, float]
    predicted: float | None
    expected: float | None


@dataclass(frozen=True)
class Leak:
    """The SD of noise at which ``n`` counts of random halves of n people leak 95%.

    ``attained`` is what message passing got right there, where it was tried.
    """

    n: int
    sigma: float
    attained: float | None = None


def _messages(rows: HashedRows, answers: Vector) -> Vector:
    passed = MessagePassing().solve(rows, answers)
    if not passed.settled:
        raise NoResult(passed.doubt)
    return passed.probability


def _box(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.solvers.box import BoxSquares

    return BoxSquares(1e-4).solve(rows, answers).x


def _first_order(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.solvers.pdhg import FirstOrder

    return _of(FirstOrder(1e-3).solve(rows, answers).x)


def _highs(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.programs import Problem
    from countleak.attack.solvers.highs import Highs

    return _of(Highs(time_limit=1e6).solve(Problem(rows.dense(), answers)).x)


def _highs_pdlp(rows: HashedRows, answers: Vector) -> Vector:
    from countleak.attack.programs import Problem
    from countleak.attack.solvers.highs import dual_program

    options = {"solver": "pdlp", "pdlp_optimality_tolerance": 1e-3, "threads": 1}
    model = dual_program(Problem(rows.dense(), answers), options)
    model.run()
    return np.array(model.getSolution().row_dual)


def _lsq_linear(rows: HashedRows, answers: Vector) -> Vector:
    from scipy.optimize import lsq_linear

    return np.asarray(lsq_linear(rows.dense().astype(np.float64), answers, (0, 1), tol=1e-4).x)


def _of(x: Vector | None) -> Vector:
    if x is None:
        raise NoResult("the program has no solution")
    return x


# What each attains by state evolution, where that is known.
METHODS: dict[str, tuple[Callable[[HashedRows, Vector], Vector], Recursion]] = {
    "message passing": (_messages, Posterior()),
    "least squares by products": (_box, LeastSquares()),
    "least residuals by products": (_first_order, LeastAbsolute()),
    "HiGHS": (_highs, LeastAbsolute()),
    "HiGHS PDLP": (_highs_pdlp, LeastAbsolute()),
    "scipy lsq_linear": (_lsq_linear, LeastSquares()),
}


def measure(
    sizes: Sequence[int], limit: float, seed: int, progress: Progress, methods: Sequence[str] = ()
) -> list[Row]:
    """Every method at every size, as long as it is expected to take ``limit`` s or less."""
    rows: list[Row] = []
    tasks = [(name, n) for name in methods or METHODS for n in sorted(sizes)]
    for done, (name, n) in enumerate(tasks):
        progress(done, len(tasks))
        last = max((row for row in rows if row.method == name), key=lambda r: r.n, default=None)
        missing = last is None and n > min(sizes)
        if missing or (last and last.seconds * (n / last.n) ** WORST_GROWTH > 10 * limit):
            continue
        if (row := _run(name, n, limit, seed)) is not None:
            rows.append(row)
    progress(len(tasks), len(tasks))
    return rows


def _run(name: str, n: int, limit: float, seed: int) -> Row | None:
    """One run in a process of its own; None if it took longer than ``limit``, or failed."""
    words = [sys.executable, "-m", __name__, name, str(n), str(seed), str(int(limit) + SETTING_UP)]
    ended = subprocess.run(words, capture_output=True, check=False)
    if ended.returncode:
        return None
    record = json.loads(ended.stdout.splitlines()[-1])
    return Row(**{**record, "interval": tuple(record["interval"])})


def run_here(name: str, n: int, seed: int) -> Row:
    """The same in this process."""
    method, recursion = METHODS[name]
    sigma = sqrt(n) / LAW
    rows, bits, answers = simulated(n, sigma, seed)
    # What Numba compiles, or reads from its cache, is no part of the measurement.
    small = simulated(200, sigma, seed)
    method(small[0].take(np.arange(180)), small[2][:180])
    begin, busy = perf_counter(), process_time()
    found = method(rows, answers)
    seconds, elapsed = process_time() - busy, perf_counter() - begin
    right = (found > 0.5) == bits
    expected = float(np.maximum(found, 1 - found).mean()) if name == "message passing" else None
    return Row(
        name, n, sigma, seconds, elapsed, _peak(), float(right.mean()), wilson(int(right.sum()), n),
        _predicted(Attack(n, n, Gaussian(sigma)), recursion), expected,
    )  # fmt: skip


def simulated(n: int, sigma: float, seed: int) -> tuple[HashedRows, Vector, Vector]:
    """n hashed subsets of n people, their bits, and noisy counts."""
    rng = np.random.default_rng([seed, n])
    rows = HashedRows(int(rng.integers(2**32)), np.arange(n), np.arange(n))
    bits = rng.integers(0, 2, n).astype(np.float64)
    return rows, bits, np.rint(rows.dot(bits) + rng.normal(0, sigma, n))


def _predicted(attack: Attack, recursion: Recursion) -> float | None:
    try:
        return fixed_point(attack, recursion).accuracy
    except NoPrediction:
        return None


def _peak() -> float:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def leaks(largest: int, seed: int, progress: Progress) -> list[Leak]:
    """The noise that still leaks 95%, by state evolution; tried by message passing up to a size."""
    found: list[Leak] = []
    for n in SIZES:
        progress(len(found), len(SIZES))
        found.append(_leak(n, FEWEST_PASSED <= n <= largest, seed))
    progress(len(SIZES), len(SIZES))
    return found


def _leak(n: int, tried: bool, seed: int) -> Leak:
    sigma = sigma_for(Attack(n, n, Gaussian(1.0)), Posterior(), LEAKS)
    if not tried:
        return Leak(n, sigma)
    shares = []
    for world in range(max(1, 2000 // n)):
        rows, bits, answers = simulated(n, sigma, seed + world)
        # Settled or not: it is the bits that count here.
        found = MessagePassing().solve(rows, answers).probability
        shares.append(float(((found > 0.5) == bits).mean()))
    return Leak(n, sigma, float(np.mean(shares)))


def exponent(rows: Sequence[Row], method: str, what: str) -> float | None:
    """The k of seconds ~ n^k, or of memory, over its three largest sizes."""
    mine = [row for row in rows if row.method == method]
    points = [(row.n, getattr(row, what)) for row in mine][-3:]
    if len(points) < 2:
        return None
    n, values = np.array(points).T
    return float(np.polyfit(np.log(n), np.log(values), 1)[0])


if __name__ == "__main__":
    method_name, people, world_seed, allowed = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(allowed), int(allowed)))
    sys.stdout.write(json.dumps(asdict(run_here(method_name, int(people), int(world_seed)))) + "\n")
