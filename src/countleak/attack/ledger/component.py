"""The least and the greatest counts in one component of (L): a program whose cost changes.

The simplex resumes from the vertex where it was. Vertices that are whole are counts that everybody
could have: a bound that any of them reaches is exact, so that most bounds need no program of their
own. Bounds that no vertex reached are looked for on the face of the program where they would lie,
and then by branch and cut.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.propagation import sums_of
from countleak.attack.solvers.highs import build_model
from countleak.errors import NoResult, SolverError

# Vertices are whole numbers, and bounds of them fractions, up to this.
EDGE = 1e-6
# So many counts that everybody could have are kept.
WITNESSES = 200
# Vertices of a face that are looked at before branch and cut.
TRIES = 4
# A round that settles fewer of the bounds left is the last that settles many at a time.
WORTHWHILE = 0.02
PROPAGATION, LINEAR, INTEGER = range(3)
# Primal: the vertex stays feasible when the cost changes.
SIMPLEX = {"threads": 1, "presolve": "off", "solver": "simplex", "simplex_strategy": 4}
DECIDED = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kUnbounded,
    highspy.HighsModelStatus.kInfeasible,
)


class Contradiction(NoResult):
    """No counts at all solve (L)."""

    def __init__(self, text: str = "no whole counts fit what was published"):
        super().__init__(text)


@dataclass(frozen=True)
class Clock:
    """When integer programs end."""

    deadline: float

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - monotonic()


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


@dataclass(eq=False)
class Ends:
    """Both ends of what groups can add up to, all (k,); ``high`` may be infinite.

    ``means`` is what each took. ``large`` groups were seen to have more people than was asked
    about, and their ends are no further looked for.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    exact: NDArray[np.bool_]
    means: NDArray[np.int8]
    large: NDArray[np.bool_]

    def interval(self, group: int) -> Interval:
        """What one group can add up to."""
        high, exact = float(self.high[group]), bool(self.exact[group])
        return Interval(int(self.low[group]), high, exact)


class Component:
    """One program over the cells of a component, and whole solutions of it that were seen."""

    def __init__(self, ledger: Ledger, limits: Limits, clock: Clock):
        """Raise Contradiction where no whole counts fit at all."""
        self.ledger, self.limits, self.clock = ledger, limits, clock
        self._seen: deque[NDArray[np.float64]] = deque(maxlen=WITNESSES)
        self._model = self._built(0, SIMPLEX)
        self._costly = np.zeros(0, np.int32)
        self._branching: highspy.Highs | None = None
        self._rng = np.random.default_rng(ledger.cells)
        nothing = np.zeros(ledger.cells)
        value, x = self._vertex(nothing)
        if value == inf:
            raise Contradiction
        if self._kept(x) is None and self._on_face(nothing) is None and clock.left > 0:
            self._whole(nothing, -inf)

    @property
    def seen(self) -> NDArray[np.float64]:
        """Whole counts (w, n) that were seen to fit."""
        return np.array(self._seen).reshape(-1, self.ledger.cells)

    def least(self, cost: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Whole counts that fit and cost as little as any; None where the vertex is not whole."""
        return self._kept(self._vertex(cost)[1])

    def cheap(self, cost: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Whole counts that fit and cost as little as time allows; None where it found none."""
        found = self.least(cost)
        if found is not None:
            return found
        return self._whole(cost, -inf)[1] if self.clock.left > 0 else None

    def most_seen(self, cells: NDArray[np.int64]) -> float:
        """The most that the ``cells`` add up to in any counts that were seen to fit."""
        return max((float(seen[cells].sum()) for seen in self._seen), default=0.0)

    def ends(self, groups: csr_array, most: NDArray[np.float64] | None = None) -> Ends:
        """What each of the ``groups`` (k, n) of cells can add up to.

        Of a group that was seen with more than ``most`` (k,) people no more is found out.
        """
        search = _Search(groups, self.limits, most)
        if self._seen:
            search.note(np.array(self._seen).T)
        for sign in (-1, 1):
            self._settle_many(search, sign)
        for end in search.open:
            if search.is_open(end):
                self._settle(search, int(end))
        return search.ends()

    def _settle_many(self, search: "_Search", sign: int) -> None:
        """Go where all bounds on a side that are left would be, as long as that settles some."""
        while (left := search.left(sign)).size:
            x = self._kept(self._vertex(search.cost(left))[1])
            if x is None:
                return
            search.note(x[:, None])
            if search.left(sign).size > (1 - WORTHWHILE) * left.size:
                return

    def _settle(self, search: "_Search", end: int) -> None:
        """Find out one bound."""
        cost = search.cost(np.array([end]))
        value, x = self._vertex(cost)
        search.means[end] = LINEAR
        if value == -inf:
            search.bound[end] = search.best[end] = -inf
            return
        if value == inf:
            raise Contradiction
        search.bound[end] = max(search.bound[end], ceil(value - EDGE))
        if (seen := self._kept(x)) is not None:
            search.note(seen[:, None])
        if search.is_open(end) and (seen := self._on_face(cost, search.bound[end])) is not None:
            search.note(seen[:, None])
        if not search.is_open(end) or self.clock.left <= 0:
            return
        search.means[end] = INTEGER
        least, seen = self._whole(cost, search.bound[end])
        search.bound[end] = max(search.bound[end], least)
        if seen is not None:
            search.note(seen[:, None])

    def _on_face(self, cost: NDArray[np.float64], most: float = inf) -> NDArray[np.float64] | None:
        """Whole counts where the cost of one cell is at most so much, if a few tries find some."""
        model, at = self._model, np.flatnonzero(cost)
        if at.size > 1:
            return None
        cells, low, high = at.astype(np.int32), self.limits.low[at], self.limits.high[at]
        if at.size:
            upwards = cost[at[0]] > 0
            face = (low, np.array([most])) if upwards else (np.array([-most]), high)
            model.changeColsBounds(1, cells, *face)
        found = None
        for _ in range(TRIES):
            found = self._kept(self._vertex(self._rng.random(self.ledger.cells))[1])
            if found is not None:
                break
        if at.size:
            model.changeColsBounds(1, cells, low, high)
        return found

    def _vertex(self, cost: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The least cost, and a vertex that has it; -inf or, where nothing fits, inf and none."""
        model, was, none = self._model, self._costly, np.full(self.ledger.cells, inf)
        cells = np.flatnonzero(cost).astype(np.int32)
        model.changeColsCost(was.size, was, np.zeros(was.size))
        model.changeColsCost(cells.size, cells, cost[cells])
        self._costly = cells
        model.run()
        if model.getModelStatus() not in DECIDED:
            # A basis that does not suit the new cost can leave the simplex undecided.
            model.clearSolver()
            model.run()
        match status := model.getModelStatus():
            case highspy.HighsModelStatus.kOptimal:
                value = float(model.getInfo().objective_function_value)
                return value, np.array(model.getSolution().col_value)
            case highspy.HighsModelStatus.kUnbounded:
                return -inf, none
            case highspy.HighsModelStatus.kInfeasible:
                return inf, none
        raise SolverError(f"HiGHS stopped without an optimum ({status.name})")

    def _whole(
        self, cost: NDArray[np.float64], target: float
    ) -> tuple[float, NDArray[np.float64] | None]:
        """A lower bound of the cost of whole counts, and the best that were found.

        The search ends with any that cost no more than the ``target``.
        """
        if self._branching is None:
            self._branching = self._built(self.ledger.cells, {"threads": 1})
        model, every = self._branching, np.arange(self.ledger.cells, dtype=np.int32)
        model.changeColsCost(every.size, every, cost)
        model.setOptionValue("time_limit", max(self.clock.left, 0.1))
        model.setOptionValue("objective_target", target + EDGE)
        model.clearSolver()
        model.run()
        status, info = model.getModelStatus(), model.getInfo()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise Contradiction
        x = None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            x = self._kept(np.array(model.getSolution().col_value))
        if status == highspy.HighsModelStatus.kOptimal:
            return float(round(info.objective_function_value)), x
        bound = info.mip_dual_bound
        return (float(ceil(bound - EDGE)) if np.isfinite(bound) else -inf), x

    def _built(self, whole: int, options: Mapping[str, object]) -> highspy.Highs:
        return build_model(
            csc_array(self.ledger.A),
            cost=np.zeros(self.ledger.cells),
            columns=(self.limits.low, self.limits.high),
            rows=(self.ledger.low, self.ledger.high),
            options=options,
            whole=whole,
        )

    def _kept(self, x: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The counts, kept, if they are whole and fit."""
        if not np.isfinite(x).all():
            return None
        nearest = np.rint(x)
        if np.abs(x - nearest).max(initial=0.0) >= EDGE or not self.holds(nearest):
            return None
        self._seen.append(nearest)
        return nearest

    def holds(self, x: NDArray[np.float64]) -> bool:
        """Whether counts solve it."""
        inside = (self.limits.low <= x) & (x <= self.limits.high)
        return bool(inside.all()) and self.ledger.holds(x)


class _Search:
    """The lower ends of k groups and then, as the least of what is negative, their upper ends.

    Each of the 2k has a ``bound``, below which it cannot be, and the ``best`` that was seen.
    """

    def __init__(self, groups: csr_array, limits: Limits, most: NDArray[np.float64] | None):
        self._groups = groups
        k = groups.shape[0]
        self._most = np.full(k, inf) if most is None else most
        self.bound = np.concatenate([groups @ limits.low, -sums_of(groups, limits.high)])
        self.best = np.full(2 * k, inf)
        self.means = np.zeros(2 * k, np.int8)
        self._sign = np.repeat([1.0, -1.0], k)

    @property
    def open(self) -> NDArray[np.int64]:
        """The ends that are not settled, the upper ones first: those may show a group as large."""
        left = np.flatnonzero((self.best > self.bound) & ~np.tile(self.large, 2))
        ordered: NDArray[np.int64] = left[np.argsort(self._sign[left], kind="stable")]
        return ordered

    @property
    def large(self) -> NDArray[np.bool_]:
        """Groups seen with more people than was asked about."""
        return -self.best[self._most.size :] > self._most

    def is_open(self, end: int) -> bool:
        """Whether an end is not settled."""
        k = self._most.size
        large = -self.best[k + end % k] > self._most[end % k]
        return bool(self.best[end] > self.bound[end]) and not large

    def left(self, sign: int) -> NDArray[np.int64]:
        """The ends of a side that are not settled and have any bound so far."""
        left = self.open
        mine: NDArray[np.bool_] = (self._sign[left] == sign) & np.isfinite(self.bound[left])
        return left[mine]

    def cost(self, ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is least where all of these ends are reached."""
        k = self._most.size
        by_group = np.zeros(k)
        np.add.at(by_group, ends % k, self._sign[ends])
        return np.asarray(by_group @ self._groups, np.float64)

    def note(self, counts: NDArray[np.float64]) -> None:
        """Counts (n, w) that fit."""
        sums = self._groups @ counts
        k = self._most.size
        np.minimum(self.best[:k], sums.min(axis=1), out=self.best[:k])
        np.minimum(self.best[k:], -sums.max(axis=1), out=self.best[k:])

    def ends(self) -> Ends:
        """What was found; raises Contradiction where the two ends of a group leave nothing."""
        k = self._most.size
        if (self.bound[:k] > -self.bound[k:]).any():
            raise Contradiction
        exact = self.best <= self.bound
        return Ends(
            self.bound[:k],
            -self.bound[k:] + 0.0,
            exact[:k] & exact[k:],
            np.maximum(self.means[:k], self.means[k:]),
            self.large,
        )
