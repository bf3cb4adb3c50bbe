"""Solution variability: how far apart two data sets can be that both fit everything published.

    max  sum over the cells j of max(x_j - y_j, 0),   x and y both solve (L)               (V)

These are the people that the one data set has and the other has not. Components of (L) add up. Each
is a maximum of a convex function, so that vertices attain it: from the two that are furthest apart
among those seen, one side and then the other moves on, as long as that parts them further. That no
two are further apart is shown by the linear program over p_j, with w_j = high_j - low_j,

    p_j <= w_j z_j,   p_j <= x_j - y_j + w_j (1 - z_j),   p_j <= x_j - low_j,   p_j <= high_j - y_j,

and where its bound is not met by branch and cut over whole x and y, and z of 0 and 1.
"""

from dataclasses import dataclass
from math import floor, inf
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bmat, csc_array, csr_array, diags_array, eye_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.bounds import taken_apart
from countleak.attack.ledger.component import EDGE, Clock, Component
from countleak.attack.solvers.highs import build_model
from countleak.errors import NoResult, SolverError

Counts = NDArray[np.float64]
# Directions to start from, beside the pair furthest apart of those seen.
STARTS = 4


@dataclass(frozen=True, eq=False)
class Variability:
    """Two data sets (n,) that fit, as far apart as was found, and how far any two ``most`` can be.

    ``most`` is proven; it is infinite where nothing bounds it.
    """

    first: Counts
    second: Counts
    most: float

    @property
    def shown(self) -> int:
        """The people that the first data set has and the second has not."""
        return int(np.maximum(self.first - self.second, 0).sum())

    @property
    def exact(self) -> bool:
        """Whether no two data sets are further apart than those shown."""
        return self.shown == self.most


def reconstructed(ledger: Ledger, time_limit: float = 60.0) -> Counts:
    """One data set (n,) that fits; raises Contradiction where none does."""
    limits, parts = taken_apart(ledger, Clock(monotonic() + time_limit))
    x = limits.low.copy()
    for part, cells in parts:
        x[cells] = _some(part)[0]
    return x


def variability(ledger: Ledger, time_limit: float = 60.0) -> Variability:
    """(V), with integer programs for so many seconds; raises Contradiction where nothing fits."""
    clock = Clock(monotonic() + time_limit)
    limits, parts = taken_apart(ledger, clock)
    first, second = limits.low.copy(), limits.low.copy()
    # Cells that are in no component are free within their limits.
    alone = ~limits.fixed
    most = 0.0
    for part, cells in parts:
        alone[cells] = False
        first[cells], second[cells], bound = _of_part(part, clock)
        most += bound
    width = (limits.high - limits.low)[alone]
    finite = np.isfinite(limits.high)
    first[alone & finite] = limits.high[alone & finite]
    return Variability(first, second, most + float(width.sum()))


def _some(part: Component) -> NDArray[np.float64]:
    if not part.seen.size:
        raise NoResult("no data set was found in the time given; allow more")
    return part.seen


def _of_part(part: Component, clock: Clock) -> tuple[Counts, Counts, float]:
    """Two solutions of a component that are far apart, and how far any two can be."""
    every = csr_array(eye_array(part.ledger.cells))
    ends = part.ends(every)
    limits = Limits(ends.low, ends.high)
    x, y = _parted(part)
    if np.isinf(limits.high).any():
        return x, y, inf
    program = _Program(part.ledger, limits)
    most = program.relaxed()
    if _apart(x, y) < most and clock.left > 0:
        bound, pair = program.whole(clock)
        most = min(most, bound)
        if pair is not None and _apart(*pair) > _apart(x, y):
            x, y = pair
    return x, y, float(max(most, _apart(x, y)))


def _apart(x: Counts, y: Counts) -> float:
    return float(np.maximum(x - y, 0).sum())


def _parted(part: Component) -> tuple[Counts, Counts]:
    """The furthest pair that climbing finds from a few starts."""
    rng = np.random.default_rng(part.ledger.cells)
    seen = _some(part)
    gaps = np.maximum(seen[:, None] - seen[None, :], 0).sum(axis=2)
    i, j = np.unravel_index(int(gaps.argmax()), gaps.shape)
    best = _climbed(part, seen[i], seen[j])
    for _ in range(STARTS):
        towards = rng.choice([-1.0, 1.0], part.ledger.cells)
        x, y = part.least(-towards), part.least(towards)
        if x is not None and y is not None:
            best = max(best, _climbed(part, x, y), key=lambda pair: _apart(*pair))
    return best


def _climbed(part: Component, x: Counts, y: Counts) -> tuple[Counts, Counts]:
    """The pair moved apart, each towards what it has more of, as long as that helps."""
    while True:
        more = (x > y).astype(np.float64)
        if not more.any():
            return x, y
        further, other = part.least(-more), part.least(more)
        pair = (x if further is None else further, y if other is None else other)
        if _apart(*pair) <= _apart(x, y):
            return x, y
        x, y = pair


class _Program:
    """(V) of a component over x, y, z and p, whose cells have finite limits."""

    def __init__(self, ledger: Ledger, limits: Limits):
        self._ledger, self._limits = ledger, limits

    def relaxed(self) -> float:
        """How far apart two solutions are at most, by the linear program."""
        model = self._model(0, {"threads": 1})
        model.run()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"HiGHS stopped without an optimum ({model.getModelStatus().name})")
        return float(floor(-model.getInfo().objective_function_value + EDGE))

    def whole(self, clock: Clock) -> tuple[float, tuple[Counts, Counts] | None]:
        """The same by branch and cut, and the pair that it found furthest apart."""
        n = self._ledger.cells
        model = self._model(3 * n, {"threads": 1, "time_limit": max(clock.left, 0.1)})
        model.run()
        info = model.getInfo()
        bound = -info.mip_dual_bound
        most = float(floor(bound + EDGE)) if np.isfinite(bound) else inf
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return most, None
        values = np.rint(np.array(model.getSolution().col_value)[: 2 * n])
        x, y = values[:n], values[n:]
        return most, (x, y) if self._ledger.holds(x) and self._ledger.holds(y) else None

    def _model(self, whole: int, options: dict[str, object]) -> highspy.Highs:
        A, low, high = csr_array(self._ledger.A), self._limits.low, self._limits.high
        n, width = self._ledger.cells, high - low
        one, w = eye_array(n), diags_array(width)
        matrix = bmat(
            [
                [A, None, None, None],
                [None, A, None, None],
                [None, None, -w, one],
                [-one, one, w, one],
                [-one, None, None, one],
                [None, one, None, one],
            ],
            format="csc",
        )
        ends = (self._ledger.low, self._ledger.high)
        below = np.concatenate([np.zeros(n), width, -low, high])
        nothing, ones = np.zeros(n), np.ones(n)
        return build_model(
            csc_array(matrix),
            cost=np.concatenate([np.zeros(3 * n), -ones]),
            columns=(
                np.concatenate([low, low, nothing, nothing]),
                np.concatenate([high, high, ones, width]),
            ),
            rows=(
                np.concatenate([ends[0], ends[0], np.full(4 * n, -inf)]),
                np.concatenate([ends[1], ends[1], below]),
            ),
            options=options,
            whole=whole,
        )
