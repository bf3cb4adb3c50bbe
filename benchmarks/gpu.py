"""What a GPU does: the rate of its products, and how far message passing goes with them.

Hashed subsets, simulated answers. Everything is checked on the way: products against the
processor's, accuracy against state evolution and against the attack's own probabilities, and least
residuals by a certificate that the processor recomputes.
"""

import json
import sys
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from countleak.attack.queries.gpu import OnGpu, device
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.solvers.amp import MessagePassing
from countleak.attack.solvers.pdhg import FirstOrder, bracket
from countleak.audit.budget.evolution import Attack, Posterior, fixed_point
from countleak.audit.scores import wilson
from countleak.audit.targets.simulated import Gaussian
from countleak.progress import Progress, silent

# People, counts, SD of the noise.
SETTINGS = (
    (2**17, 2**17, 20.0),
    (2**20, 2**22, 150.0),
    (2**20, 3 * 2**18, 65.0),
    (2**20, 2**19, 20.0),
    (2**22, 2**24, 300.0),
    (2**24, 2**24, 260.0),
)
# The people and counts whose products are timed.
TIMED = (2**20, 2**22)
# Counts per person, SD of the noise, and the share and size of gross errors.
WILD = (2**17, 2**19, 20.0, 0.01, 2000.0)
GAP = 1e-4


@dataclass(frozen=True)
class Rate:
    """Tbit/s of the matrix that ``dot`` and ``tdot`` pass, for so many ``digits`` of 16 bits."""

    device: str
    n: int
    m: int
    digits: int
    dot: float
    tdot: float

    @property
    def average(self) -> float:
        """Over both passes, by time."""
        return 2 / (1 / self.dot + 1 / self.tdot)


@dataclass(frozen=True)
class Passing:
    """Message passing about ``n`` people from ``m`` counts; seconds by the clock."""

    n: int
    m: int
    sigma: float
    seconds: float
    rounds: int
    accuracy: float
    interval: tuple[float, float]
    expected: float
    predicted: float
    doubt: str


@dataclass(frozen=True)
class LeastResiduals:
    """(P) with gross errors: its bracket, which the processor recomputed, and who is right."""

    n: int
    m: int
    sigma: float
    wild: float
    seconds: float
    steps: int
    gap: float
    accuracy: float


def agreement(n: int = 5_000, m: int = 7_000, seed: int = 1) -> float:
    """How far products on the GPU are from the processor's, next to the largest; for any ids."""
    rng = np.random.default_rng(seed)
    rows = HashedRows(seed, rng.permutation(3 * m)[:m], np.sort(rng.permutation(9 * n)[:n]))
    x, y = rng.normal(size=n), rng.normal(size=m)
    gpu = OnGpu(rows, digits=2, on_host=True)
    apart = [
        np.abs(gpu.dot(x) - rows.dot(x)).max() / np.abs(rows.dot(x)).max(),
        np.abs(gpu.tdot(y) - rows.tdot(y)).max() / np.abs(rows.tdot(y)).max(),
    ]
    whole = rng.integers(-1000, 1000, n).astype(np.float64)
    if not np.array_equal(OnGpu(rows, on_host=True).dot(whole), rows.dot(whole)):
        raise ArithmeticError("products of whole numbers on the GPU are not exact")
    return float(max(apart))


def rate(n: int, m: int, digits: int) -> Rate:
    """How fast products are."""
    gpu = OnGpu(HashedRows(7, np.arange(m), np.arange(n)), digits)
    cupy = gpu.arrays
    x, y = cupy.random.standard_normal(n), cupy.random.standard_normal(m)
    seconds = [_clock(gpu.dot, x), _clock(gpu.tdot, y)]
    return Rate(device(), n, m, digits, *(n * m / each / 1e12 for each in seconds))


def _clock(product: Any, vector: Any, times: int = 3) -> float:
    import cupy

    product(vector)
    cupy.cuda.Device().synchronize()
    begin = perf_counter()
    for _ in range(times):
        product(vector)
    cupy.cuda.Device().synchronize()
    return (perf_counter() - begin) / times


def passing(n: int, m: int, sigma: float, seed: int = 1, progress: Progress = silent) -> Passing:
    """Message passing on answers of a simulated system."""
    gpu, bits, answers = _simulated(n, m, sigma, seed)
    begin = perf_counter()
    passed = MessagePassing(progress=progress).solve(gpu, answers)
    p = passed.probability
    right = int(((p > 0.5) == bits).sum())
    seconds = perf_counter() - begin
    expected = float(np.maximum(p, 1 - p).mean())
    predicted = fixed_point(Attack(n, m, Gaussian(sigma)), Posterior()).accuracy
    return Passing(
        n, m, sigma, seconds, passed.rounds, right / n, wilson(right, n), expected, predicted,
        passed.doubt,
    )  # fmt: skip


def least_residuals(
    n: int, m: int, sigma: float, wild: float, size: float, seed: int = 1
) -> LeastResiduals:
    """(P) where a share of the answers is off by up to ``size``."""
    gpu, bits, answers = _simulated(n, m, sigma, seed)
    cupy = gpu.arrays
    off = cupy.random.uniform(-size, size, m) * (cupy.random.uniform(size=m) < wild)
    answers = answers + np.rint(off)
    begin = perf_counter()
    solution = FirstOrder(GAP).solve(OnGpu(gpu.rows, digits=2), answers)
    seconds = perf_counter() - begin
    x, y = cupy.asnumpy(solution.x), cupy.asnumpy(solution.y)
    on_host = bracket(gpu.rows, cupy.asnumpy(answers), replace(solution, x=x, y=y))
    right = (x > 0.5) == cupy.asnumpy(bits)
    gap = (on_host.upper - on_host.lower) / on_host.upper
    return LeastResiduals(n, m, sigma, wild, seconds, solution.iterations, gap, float(right.mean()))


def _simulated(n: int, m: int, sigma: float, seed: int) -> tuple[OnGpu, Any, Any]:
    gpu = OnGpu(HashedRows(seed, np.arange(m), np.arange(n)))
    cupy = gpu.arrays
    cupy.random.seed(seed)
    bits = cupy.random.randint(0, 2, n).astype(np.float64)
    answers = np.rint(gpu.dot(bits) + sigma * cupy.random.standard_normal(m))
    return gpu, bits, answers


def measure_gpu(largest: int) -> None:
    """Write everything, a line of JSON each, up to so many people; raises NoGpu."""
    _say({"device": device(), "apart": agreement()})
    # CuPy compiles what it is first asked for.
    passing(2**13, 2**13, 10.0)
    least_residuals(2**10, 2**12, 5.0, 0.01, 100.0)
    for digits in (1, 2):
        measured = rate(*TIMED, digits)
        _say({**asdict(measured), "average": measured.average})
    _say(asdict(least_residuals(*WILD)))
    for n, m, sigma in SETTINGS:
        if n <= largest:
            _say(asdict(passing(n, m, sigma)))


def _say(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
