"""Solution variability: how far apart two data sets can be that both fit everything published.

    max  sum over the cells j of max(x_j - y_j, 0),   x and y both solve (L)               (V)

These are the people that the one data set has and the other has not: half of their L1 distance
where both have equally many. Components of (L) add up. Each is a maximum of a convex function, so
that vertices attain it: from the two that are furthest apart among those seen, one side and then
the other moves on, as long as that parts them further. That no two are further apart is shown by
the linear program over p_j, with w_j = high_j - low_j,

    p_j <= w_j z_j,   p_j <= x_j - y_j + w_j (1 - z_j),   p_j <= x_j - low_j,   p_j <= high_j - y_j,

by a bound that is recomputed from its multipliers in exact fractions, whatever the solver says
(Neumaier and Shcherbina, 2004). Where no pair meets that, branch and cut over whole x and y, and z
of 0 and 1, looks for pairs further apart and for a sharper bound.
"""

from dataclasses import dataclass
from math import floor, inf
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bmat, csc_array, diags_array, eye_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.bounds import taken_apart
from countleak.attack.ledger.component import EDGE, Clock, Component
from countleak.attack.solvers.highs import build_model
from countleak.errors import NoResult

Counts = NDArray[np.float64]
# Directions to start from, beside the pair furthest apart of those seen.
STARTS = 4
# Multipliers are whole multiples of 1 over this, and sums of them are less than 64 bits hold.
FINENESS, LARGEST = 2**20, 2**62


@dataclass(frozen=True, eq=False)
class Variability:
    """Two data sets ``first`` and ``second`` (n,) that fit, ``at_least`` people apart.

    No two are more than ``at_most`` apart, proven in fractions; ``searched`` is the sharper bound
    of branch and cut, which is only as sure as floating point. Both may be infinite.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    at_most: float
    searched: float

    @property
    def at_least(self) -> int:
        """People of the first that have no counterpart in the second."""
        return int(np.maximum(self.first - self.second, 0).sum())

    @property
    def determined(self) -> bool:
        """Whether there is one data set only."""
        return self.at_most == 0


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
    at_most = searched = 0.0
    for part, cells in parts:
        alone[cells] = False
        first[cells], second[cells], certified, bound = _furthest(part, clock)
        at_most, searched = at_most + certified, searched + bound
    first[alone] = np.where(np.isfinite(limits.high), limits.high, limits.low)[alone]
    width = float((limits.high - limits.low)[alone].sum())
    if not (ledger.holds(first) and ledger.holds(second)):
        raise NoResult("the solver's counts do not fit what was published; report this")
    whole = first.astype(np.int64), second.astype(np.int64)
    return Variability(*whole, at_most + width, searched + width)


def _some(part: Component) -> Counts:
    """The data sets (w, n) that were seen to fit, one or more."""
    if not part.seen.size:
        raise NoResult("no data set was found in the time given; allow more")
    return part.seen


def _furthest(part: Component, clock: Clock) -> tuple[Counts, Counts, float, float]:
    """Two solutions of a component, how far apart any are by certificate, and by the search."""
    x, y = _parted(part)
    if np.isinf(part.limits.high).any():
        # No row that has an upper end has the cell: nothing bounds it.
        return x, y, inf, inf
    relaxed = _program(part, 0, {"threads": 1})
    relaxed.run()
    certified = bound = _certified(relaxed)
    if _apart(x, y) < certified and clock.left > 0:
        searched, pair = _searched(part, clock)
        bound = min(certified, searched)
        if pair is not None and _apart(*pair) > _apart(x, y):
            x, y = pair
    return x, y, certified, bound


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


def _searched(part: Component, clock: Clock) -> tuple[float, tuple[Counts, Counts] | None]:
    """How far apart two solutions are at most by branch and cut, and the furthest it found."""
    n = part.ledger.cells
    model = _program(part, 3 * n, {"threads": 1, "time_limit": max(clock.left, 0.1)})
    model.run()
    info = model.getInfo()
    bound = -info.mip_dual_bound
    most = float(floor(bound + EDGE)) if np.isfinite(bound) else inf
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return most, None
    values = np.rint(np.array(model.getSolution().col_value)[: 2 * n])
    x, y = values[:n], values[n:]
    return most, (x, y) if part.holds(x) and part.holds(y) else None


def _program(part: Component, whole: int, options: dict[str, object]) -> highspy.Highs:
    """(V) of a component over x, y, z and p, whose cells have finite limits."""
    rows, low, high = part.ledger, part.limits.low, part.limits.high
    A, n, width = rows.A, rows.cells, high - low
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
    zero, ones = np.zeros(n), np.ones(n)
    return build_model(
        csc_array(matrix),
        cost=np.concatenate([zero, zero, zero, -ones]),
        columns=(
            np.concatenate([low, low, zero, zero]),
            np.concatenate([high, high, ones, width]),
        ),
        rows=(
            np.concatenate([rows.low, rows.low, np.full(4 * n, -inf)]),
            np.concatenate([rows.high, rows.high, zero, width, -low, high]),
        ),
        options=options,
        whole=whole,
    )


def _certified(model: highspy.Highs) -> float:
    """What minus the cost of a program of whole numbers cannot exceed, by the multipliers it has.

    For any u,  -c'v = u'Rv + (-c - R'u)'v, and both parts are bounded by the ends of Rv and v. All
    is reckoned in multiples of 1 / FINENESS, without rounding.
    """
    lp = model.getLp()
    matrix = lp.a_matrix_
    entries = np.rint(matrix.value_).astype(np.int64), np.array(matrix.index_)
    R = csc_array((*entries, np.array(matrix.start_)), (lp.num_row_, lp.num_col_))
    low, high = np.array(lp.row_lower_), np.array(lp.row_upper_)
    # Any multipliers do; these are small enough for sums of 64 bits.
    most = LARGEST // (1 + int(abs(R).sum(axis=0, dtype=np.float64).max(initial=1)))
    duals = np.nan_to_num(np.array(model.getSolution().row_dual)) * -FINENESS
    u = np.clip(np.rint(duals), -most, most).astype(np.int64)
    u[np.isinf(np.where(u > 0, high, low))] = 0
    left = np.rint(lp.col_cost_).astype(np.int64) * -FINENESS - R.T @ u
    ends = np.where(left > 0, lp.col_upper_, lp.col_lower_)
    total = _product(u, np.where(u > 0, high, low)) + _product(left, ends)
    return float(total // FINENESS)


def _product(weights: NDArray[np.int64], ends: Counts) -> int:
    """Their inner product, exactly; where the weight is 0 the end may be infinite."""
    some = np.flatnonzero(weights)
    pairs = zip(weights[some].tolist(), ends[some].tolist(), strict=True)
    return sum(weight * int(end) for weight, end in pairs)
