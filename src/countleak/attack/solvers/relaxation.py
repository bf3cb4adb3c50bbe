"""Proofs by linear programming that bits have no other value, checked in whole numbers.

Let x solve (W), and let U be bits that no known solution changes. Over the relaxation of (W), with
c_i = 1 where x_i is 1 and -1 where it is 0 (i in U, else 0), c'z <= c'x - 1 for every solution z
that changes a bit of U. Any y (m,) bounds c'z from below,

    c'z >= sum_r min(y_r low_r, y_r high_r) + sum_i min_z (c - A'y)_i z_i                  (B)

so one y with (B) above c'x - 1 proves all of U at once; and with z_i held at 1 - x_i in the last
sum, it proves the bit i alone. y comes from a simplex in floating point and is rounded to a
fraction of a power of two; (B) is then evaluated in whole numbers.
"""

from dataclasses import dataclass
from math import frexp
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from countleak.attack.solvers.clock import Clock
from countleak.attack.solvers.highs import build_model
from countleak.attack.solvers.intervals import Box, CountIntervals

# y in units of 2^-40 at the finest: finer than the simplex is exact.
_FINEST = 40
# Sums of whole numbers stay below 2^62.
_WIDEST = 61


@dataclass(frozen=True, eq=False)
class RelaxedPoint:
    """A vertex of the relaxation, rounded to bits ``x`` (n,), which may not solve (W)."""

    x: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Proof:
    """Who is ``proven`` (n,), and the vertex that was reached, rounded to bits ``x`` (n,).

    No solution differs in more than ``distance`` of the bits in question; below 1 all are proven.
    ``missing`` (n,) is how far each bit in question is from being proven alone, in such bits.
    """

    proven: NDArray[np.bool_]
    x: NDArray[np.int8]
    distance: float
    missing: NDArray[np.float64]


class NoPoint:
    """The relaxation, and so (W), has no solution: a y was checked that proves it."""


class Relaxation:
    """The linear program over 0 <= x <= 1, solved again and again from where it was."""

    def __init__(self, intervals: CountIntervals, clock: Clock) -> None:
        n = intervals.people
        self._intervals, self._clock = intervals, clock
        self._model = build_model(
            csc_array(intervals.A),
            cost=np.zeros(n),
            columns=(np.zeros(n), np.ones(n)),
            rows=(intervals.low.astype(np.float64), intervals.high.astype(np.float64)),
            options={"threads": 1, "presolve": "off", "solver": "simplex"},
        )

    def point(self, box: Box, seconds: float) -> RelaxedPoint | NoPoint | None:
        """Any vertex within ``box``, rounded; None where time ran out or nothing is certain."""
        n = self._intervals.people
        status = self._run(np.zeros(n), box, seconds)
        if status == highspy.HighsModelStatus.kOptimal:
            return RelaxedPoint(self._rounded())
        if status == highspy.HighsModelStatus.kInfeasible:
            _, has_ray, ray = self._model.getDualRay()
            nobody = np.zeros(n, np.int64)
            if has_ray and bounds(self._intervals, box, nobody, np.array(ray)).least > 0:
                return NoPoint()
        return None

    def prove(
        self, x: NDArray[np.int8], group: NDArray[np.bool_], box: Box, seconds: float
    ) -> Proof | None:
        """Which of the ``group`` (n,) of bits of ``x`` one program proves; None: out of time."""
        cost = np.where(group, 2 * x.astype(np.int64) - 1, 0)
        status = self._run(cost.astype(np.float64), box, seconds)
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        limit = bounds(self._intervals, box, cost, np.array(self._model.getSolution().row_dual))
        here = int(cost @ x) * limit.unit
        enough = here - limit.unit
        flipped = limit.flipped(x)
        proven = group & ((limit.least > enough) | (flipped > enough))
        distance = (here - limit.least) / limit.unit
        return Proof(proven, self._rounded(), distance, (enough - flipped) / limit.unit)

    def _run(self, cost: NDArray[np.float64], box: Box, seconds: float) -> Any:
        model, every = self._model, np.arange(cost.size, dtype=np.int32)
        model.changeColsCost(cost.size, every, cost)
        model.changeColsBounds(
            cost.size, every, box.lower.astype(np.float64), box.upper.astype(np.float64)
        )
        # HiGHS counts the seconds of all runs of a model together.
        model.setOptionValue("time_limit", model.getRunTime() + max(0.0, seconds))
        self._clock.during(model.run)
        return model.getModelStatus()

    def _rounded(self) -> NDArray[np.int8]:
        return (np.array(self._model.getSolution().col_value) > 0.5).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Bounds:
    """(B) in ``unit``-ths: ``least`` for all of the box; ``slope`` (n,) is c - A'y."""

    least: int
    slope: NDArray[np.int64]
    unit: int

    def flipped(self, x: NDArray[np.int8]) -> NDArray[np.int64]:
        """(B) (n,) with each bit in turn, of those that are free, held at 1 - x_i."""
        held: NDArray[np.int64] = self.least - np.minimum(0, self.slope) + self.slope * (1 - x)
        return held


def bounds(
    intervals: CountIntervals, box: Box, cost: NDArray[np.int64], y: NDArray[np.float64]
) -> Bounds:
    """(B) for ``cost`` (n,), in whole numbers and true whatever ``y`` (m,)."""
    reach = np.maximum(np.abs(intervals.low), np.abs(intervals.high)) + intervals.people
    largest = float((np.abs(y) + 1) @ reach) + float(np.abs(cost).sum())
    digits = min(_FINEST, _WIDEST - frexp(largest)[1]) if np.isfinite(largest) else -1
    if digits < 0:  # too large to be a proof: y = 0 is one of little, but a true one
        y, digits = np.zeros_like(y), 0
    unit = 1 << digits
    whole = np.rint(y * unit).astype(np.int64)
    rows = np.where(whole > 0, whole * intervals.low, whole * intervals.high)
    slope = cost * unit - whole @ intervals.A.astype(np.int64)
    ends = np.minimum(slope * box.lower, slope * box.upper)
    return Bounds(int(rows.sum() + ends.sum()), slope, unit)
