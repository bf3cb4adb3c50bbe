"""The least and the greatest count that any group can have, by linear and integer programs.

A component of (L) is one program whose cost changes from one group to the next: the simplex resumes
from the vertex where it was. Vertices that are whole are counts that everybody could have, so that
a bound which one of them reaches is exact; the others are settled by branch and cut.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.differencing import differenced
from countleak.attack.ledger.propagation import components, propagate
from countleak.attack.solvers.highs import build_model
from countleak.errors import SolverError

# Vertices are whole numbers, and bounds of them fractions, up to this.
EDGE = 1e-6
# Of so many vertices each is kept as a count that everybody could have.
WITNESSES = 200
MEANS = ("propagation", "linear programs", "integer programs")
# Primal: the vertex stays feasible when the cost changes.
SIMPLEX = {"threads": 1, "presolve": "off", "solver": "simplex", "simplex_strategy": 4}


@dataclass(frozen=True)
class Interval:
    """What a count can be: ``low`` to ``high``, and whether both ends are known to be attained."""

    low: int
    high: float
    exact: bool

    @property
    def pinned(self) -> bool:
        """Whether there is one count only."""
        return self.low == self.high


class Contradiction(Exception):
    """No counts at all solve (L)."""


class Bounder:
    """The intervals of groups of cells, one after the other; raises Contradiction where none fit.

    After ``time_limit`` seconds integer programs are left out; intervals may then be wider than
    need be, and say so. ``settled_by`` counts the groups by what it took.
    """

    def __init__(self, ledger: Ledger, time_limit: float = 60.0):
        ledger = differenced(ledger).ledger
        limits = propagate(ledger, Limits.none(ledger.cells))
        if limits is None:
            raise Contradiction
        self.limits = limits
        self.settled_by = dict.fromkeys(MEANS, 0)
        self._clock = _Clock(monotonic() + time_limit)
        self._parts: list[_Component] = []
        self._component = np.full(ledger.cells, -1)
        self._place = np.zeros(ledger.cells, np.int64)
        for rows, cells in components(ledger, limits):
            self._component[cells], self._place[cells] = len(self._parts), np.arange(cells.size)
            around = Limits(limits.low[cells], limits.high[cells])
            part = _Component(_beside(ledger, limits, rows, cells), around)
            part.check(self._clock)
            self._parts.append(part)

    def interval(self, group: NDArray[np.int64]) -> Interval:
        """What the cells of a group can add up to."""
        settled = group[self._component[group] < 0]
        low = float(self.limits.low[settled].sum())
        high = float(self.limits.high[settled].sum())
        exact, means = True, 0
        for part, cells in self._inside(group):
            end = part.interval(cells, self._clock)
            low, high, exact = low + end.low, high + end.high, exact and end.exact
            means = max(means, 2 if part.branched else 1)
        self.settled_by[MEANS[means]] += 1
        return Interval(int(low), high, exact)

    def may_exceed(self, group: NDArray[np.int64], count: float) -> bool:
        """Whether counts were already seen that fit and give the group more than ``count``."""
        settled = group[self._component[group] < 0]
        most = float(self.limits.low[settled].sum())
        most += sum(part.most_seen(cells) for part, cells in self._inside(group))
        return most > count

    def _inside(self, group: NDArray[np.int64]) -> Iterator[tuple["_Component", NDArray[np.int64]]]:
        joined = self._component[group]
        for number in np.unique(joined[joined >= 0]).tolist():
            yield self._parts[number], self._place[group[joined == number]]


def _beside(
    ledger: Ledger, limits: Limits, rows: NDArray[np.int64], cells: NDArray[np.int64]
) -> Ledger:
    """The rows of a component, over its cells alone: less what their settled cells add."""
    fixed = np.where(limits.fixed, limits.low, 0.0)
    settled = np.asarray((ledger.A @ fixed)[rows], np.float64)
    part = ledger.part(rows, cells)
    return Ledger(part.A, part.low - settled, part.high - settled)


@dataclass
class _Clock:
    """When integer programs end."""

    deadline: float

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - monotonic()


@dataclass
class _Component:
    """One program over the cells of a component, and whole solutions of it that were seen."""

    ledger: Ledger
    limits: Limits
    witnesses: list[NDArray[np.float64]] = field(default_factory=list)
    branched: bool = False
    _model: highspy.Highs | None = None

    def check(self, clock: _Clock) -> None:
        """Raise where no whole counts fit at all."""
        nobody = np.zeros(0, np.int64)
        self._relaxed(nobody, 1.0)
        if not self.witnesses and clock.left > 0:
            self._whole(nobody, 1.0, 0.0, clock)

    def interval(self, cells: NDArray[np.int64], clock: _Clock) -> Interval:
        """What the ``cells`` can add up to."""
        self.branched = False
        low, low_exact = self._end(cells, 1.0, clock)
        high, high_exact = self._end(cells, -1.0, clock)
        return Interval(int(low), -high, low_exact and high_exact)

    def most_seen(self, cells: NDArray[np.int64]) -> float:
        """The most that the ``cells`` add up to in any counts that were seen to fit."""
        return max((float(seen[cells].sum()) for seen in self.witnesses), default=0.0)

    def _end(self, cells: NDArray[np.int64], sign: float, clock: _Clock) -> tuple[float, bool]:
        """The least of sign * (the sum of the cells), and whether it is attained."""
        by_cell = sign * (self.limits.low if sign > 0 else self.limits.high)[cells].sum()
        if any(sign * seen[cells].sum() <= by_cell for seen in self.witnesses):
            return float(by_cell), True
        relaxed = self._relaxed(cells, sign)
        if relaxed == -inf:
            return -inf, True
        least = max(float(ceil(relaxed - EDGE)), float(by_cell))
        if any(sign * seen[cells].sum() <= least for seen in self.witnesses):
            return least, True
        if clock.left <= 0:
            return least, False
        self.branched = True
        return self._whole(cells, sign, least, clock)

    def _relaxed(self, cells: NDArray[np.int64], sign: float) -> float:
        model = self._program()
        model.changeColsCost(cells.size, cells.astype(np.int32), np.full(cells.size, sign))
        model.run()
        status, value = model.getModelStatus(), model.getInfo().objective_function_value
        if status == highspy.HighsModelStatus.kOptimal:
            self._keep(np.array(model.getSolution().col_value))
        model.changeColsCost(cells.size, cells.astype(np.int32), np.zeros(cells.size))
        match status:
            case highspy.HighsModelStatus.kOptimal:
                return float(value)
            case highspy.HighsModelStatus.kUnbounded:
                return -inf
            case highspy.HighsModelStatus.kInfeasible:
                raise Contradiction
        raise SolverError(f"HiGHS stopped without an optimum ({status.name})")

    def _whole(
        self, cells: NDArray[np.int64], sign: float, least: float, clock: _Clock
    ) -> tuple[float, bool]:
        cost = np.zeros(self.ledger.cells)
        cost[cells] = sign
        options = {"threads": 1, "time_limit": max(clock.left, 0.1)}
        model = self._built(cost, self.ledger.cells, options)
        model.run()
        status, info = model.getModelStatus(), model.getInfo()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise Contradiction
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            self._keep(np.array(model.getSolution().col_value))
        if status == highspy.HighsModelStatus.kOptimal:
            return float(round(info.objective_function_value)), True
        return max(least, float(ceil(info.mip_dual_bound - EDGE))), False

    def _program(self) -> highspy.Highs:
        if self._model is None:
            self._model = self._built(np.zeros(self.ledger.cells), 0, SIMPLEX)
        return self._model

    def _built(
        self, cost: NDArray[np.float64], whole: int, options: Mapping[str, object]
    ) -> highspy.Highs:
        return build_model(
            csc_array(self.ledger.A),
            cost=cost,
            columns=(self.limits.low, self.limits.high),
            rows=(self.ledger.low, self.ledger.high),
            options=options,
            whole=whole,
        )

    def _keep(self, x: NDArray[np.float64]) -> None:
        nearest = np.rint(x)
        if np.abs(x - nearest).max() < EDGE and self._holds(nearest):
            self.witnesses.append(nearest)
            del self.witnesses[:-WITNESSES]

    def _holds(self, x: NDArray[np.float64]) -> bool:
        inside = (self.limits.low <= x) & (x <= self.limits.high)
        return bool(inside.all()) and self.ledger.holds(x)
