r"""The programs of the attack, stated once, and the certificates of their solutions.

    minimise  sum_i |b - Ax|_i   over  0 <= x <= 1,  |b - Ax|_i <= beta                    (P)
    maximise  b'y - beta sum_i max(0, |y_i| - 1) - sum_j max(0, (A'y)_j)   over y          (D)
    find x    with  0 <= x <= 1,  |b - Ax|_i <= beta                                       (F)

With beta infinite (P) is the program of Dwork, McSherry and Talwar, and (D) requires |y| <= 1;
with beta = 5 sigma it is the one used in the Aircloak challenge; (F) is Dinur and Nissim's. Any
feasible x bounds the optimum of (P) from above, any y from below. A y with

    b'y - beta sum_i |y_i| - sum_j max(0, (A'y)_j) > 0                                     (I)

proves that (F), and so (P), has no solution. With x restricted to {0, 1} every lower bound of
(D) and every proof (I) stays true.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.transcript import Transcript
from countleak.errors import InputError, ShapeError, SolverError


class Objective(Enum):
    """What a program minimises."""

    L1 = "sum of absolute residuals"
    NONE = "nothing, any feasible point will do"


@dataclass(frozen=True, eq=False)
class Problem:
    """(P) or (F): ``A`` (m, n), one row per released answer; ``b`` (m,), ``bound`` in people."""

    A: NDArray[np.int8] | NDArray[np.float64]
    b: NDArray[np.float64]
    objective: Objective = Objective.L1
    bound: float = inf
    integer: bool = False

    def __post_init__(self) -> None:
        m, n = self.A.shape
        if self.b.shape != (m,):
            raise ShapeError(f"{m} queries but {self.b.size} answers")
        if m == 0 or n == 0:
            raise InputError(f"{m} answers about {n} people; there must be some of both")
        if not np.isfinite(self.b).all():
            raise InputError("an answer is not a finite number; mark it suppressed or leave it out")
        if not self.bound >= 0:
            raise InputError(f"the bound on residuals is {self.bound:g}; it cannot be negative")
        if self.objective is Objective.NONE and self.bound == inf:
            raise InputError("without a bound on residuals every x will do; give a finite one")

    def relaxed(self) -> "Problem":
        """The same program with x anywhere in the box."""
        return replace(self, integer=False)

    def residual(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """b - Ax (m,)."""
        return self.b - self.A @ np.asarray(x, np.float64)

    def transposed(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """A'y (n,)."""
        return self.A.T @ y


class Program(Protocol):
    """A way to turn a transcript into a Problem."""

    def problem(self, transcript: Transcript) -> Problem:
        """One row per released answer; suppressed ones are left out."""
        ...


@dataclass(frozen=True)
class Dmt:
    """Least total residual (Dwork, McSherry, Talwar 2007), the paper's section 2."""

    integer: bool = False

    def problem(self, transcript: Transcript) -> Problem:
        A, b = _released(transcript)
        return Problem(A, b, integer=self.integer)


@dataclass(frozen=True)
class CappedDmt:
    """The same with every residual at most ``bound``, as used in the challenge (appendix A).

    There ``bound`` is 5 sigma = 20, and answers that are not positive were dropped.
    """

    bound: float = 20.0
    drop_nonpositive: bool = True
    integer: bool = False

    def problem(self, transcript: Transcript) -> Problem:
        A, b = _released(transcript)
        if self.drop_nonpositive:
            # Judged by the whole count: less the share of known people, rows would be selected by
            # their noise.
            keep = transcript.values[transcript.released] > 0
            if not keep.any():
                raise InputError("no answer is positive; keep those that are not, too")
            A, b = A[keep], b[keep]
        return Problem(A, b, bound=self.bound, integer=self.integer)


@dataclass(frozen=True)
class DiNi:
    """Any x with residuals at most B sigma (Dinur, Nissim 2003), the paper's section 3."""

    multiplier: float
    sigma: float
    integer: bool = False

    def __post_init__(self) -> None:
        if not self.multiplier >= 0:
            raise InputError(f"B is {self.multiplier:g}; a bound cannot be negative")
        if not self.sigma > 0:
            raise InputError(f"sigma is {self.sigma:g}; it must be above 0")

    def problem(self, transcript: Transcript) -> Problem:
        A, b = _released(transcript)
        bound = self.multiplier * self.sigma
        return Problem(A, b, Objective.NONE, bound, integer=self.integer)


def _released(transcript: Transcript) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    if not transcript.released.any():
        raise InputError(
            "no answer was released, so there is nothing to solve; suppressed answers can be read "
            "as 0"
        )
    return transcript.A, transcript.b


class Status(Enum):
    """Why a solver stopped, and what to do about it."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIME_LIMIT = "the time limit was reached; try a larger `time_limit`"
    ITERATION_LIMIT = "the iteration limit was reached; try a larger `max_iterations`"
    TROUBLE = "numerical trouble; try another solver"


class Point(Enum):
    """Which feasible point of (F) a solver returns: this decides how well DiNi does."""

    VERTEX = "vertex"
    CENTRE = "centre"


@dataclass(frozen=True, eq=False)
class Solution:
    """``x`` (n,) for (P) or (F) and ``y`` (m,) for (D) or (I), as far as ``status`` says.

    ``x`` is None when there is none, ``y`` when none was needed. ``solver`` names the solver,
    ``point`` the rule that picked x for (F); ``claimed`` is the bound of an integer program's tree.
    """

    x: NDArray[np.float64] | None
    y: NDArray[np.float64] | None
    status: Status
    iterations: int
    seconds: float
    solver: str
    point: Point | None = None
    claimed: float | None = None


@dataclass(frozen=True)
class Bracket:
    """The optimum of (P) lies between ``lower`` and ``upper``, in people.

    Both are evaluated in double precision and carry its rounding, some 1e-13 of ``upper``.
    ``violation`` is by how much the worst residual exceeds its bound at the x behind ``upper``,
    which is an upper bound of the program with beta that much larger. ``claimed`` is the lower
    bound that an integer program's tree reports, not certified.
    """

    lower: float
    upper: float
    violation: float = 0.0
    claimed: float | None = None

    @property
    def gap(self) -> float:
        """Distance of the bounds relative to max(1, upper)."""
        if self.upper == inf:
            return inf
        return max(0.0, self.upper - self.lower) / max(1.0, self.upper)


@dataclass(frozen=True)
class FeasiblePoint:
    """A solution of (F) whose worst residual exceeds its bound by ``violation`` (0: none does)."""

    violation: float


@dataclass(frozen=True)
class Infeasible:
    """A proof by (I) that there is no solution; ``margin`` is its left side, rounding deducted.

    With ``proven`` False it rests on an integer program's tree alone and was not checked.
    """

    margin: float
    proven: bool = True


Certificate = Bracket | FeasiblePoint | Infeasible


def certify(problem: Problem, solution: Solution, tolerance: float = 1e-6) -> Certificate:
    """What a solution proves, recomputed from its x and y alone.

    Raises SolverError where a claim does not hold up: a residual more than ``tolerance`` beyond
    its bound, or an infeasibility that y does not prove.
    """
    for name, values in (("x", solution.x), ("y", solution.y)):
        if values is not None and not np.isfinite(values).all():
            raise SolverError(f"{solution.solver} returned {name} with entries that are not finite")
    if solution.status is Status.INFEASIBLE:
        return _certify_infeasible(problem, solution)
    if problem.objective is Objective.NONE:
        if solution.x is None:
            raise SolverError(f"no feasible point: {solution.status.value}")
        return FeasiblePoint(_violation(problem, _inside(solution.x), tolerance))
    lower = 0.0 if solution.y is None else dual_bound(problem, solution.y)
    if solution.x is None:
        return Bracket(lower, inf, claimed=solution.claimed)
    x = _inside(solution.x)
    upper = float(np.abs(problem.residual(x)).sum())
    return Bracket(lower, upper, _violation(problem, x, tolerance), solution.claimed)


def dual_bound(problem: Problem, y: NDArray[np.float64]) -> float:
    """The objective of (D): below the optimum of (P) whatever y."""
    y = np.clip(y, -1.0, 1.0) if problem.bound == inf else y
    beyond = np.maximum(0.0, np.abs(y) - 1.0).sum()
    excess = problem.bound * beyond if beyond else 0.0
    return float(problem.b @ y - excess - np.maximum(0.0, problem.transposed(y)).sum())


def bound_below(problem: Problem, c: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """A lower bound of c'x over the x of (F), true whatever y (m,), rounding deducted.

    b'y - beta sum_i |y_i| + sum_j min(0, c_j - (A'y)_j): a residual costs at most beta |y_i|, and
    each x_j is at best 0 or 1.
    """
    m, n = problem.A.shape
    slack = np.minimum(0.0, c - problem.transposed(y)).sum()
    terms = np.abs(y) @ (np.abs(problem.b) + problem.bound + np.abs(problem.A).sum(axis=1))
    # Summing k terms in any order errs by at most about k eps times their absolute sum.
    rounding = float((m + n) * np.finfo(np.float64).eps * terms)
    return float(problem.b @ y - problem.bound * np.abs(y).sum() + slack) - rounding


def _certify_infeasible(problem: Problem, solution: Solution) -> Infeasible:
    if solution.y is None:
        if problem.integer:
            return Infeasible(margin=0.0, proven=False)
        raise SolverError("the solver calls the program infeasible but gives no proof")
    # (I) bounds 0'x from below: a bound above 0 is a contradiction.
    margin = bound_below(problem, np.zeros(problem.A.shape[1]), solution.y)
    if not margin > 0:
        raise SolverError(f"the proof of infeasibility does not hold: its margin is {margin:.1e}")
    return Infeasible(margin)


def _inside(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(x, 0.0, 1.0)


def _violation(problem: Problem, x: NDArray[np.float64], tolerance: float) -> float:
    if problem.bound == inf:
        return 0.0
    worst = float(np.abs(problem.residual(x)).max() - problem.bound)
    if worst > tolerance:
        raise SolverError(
            f"a residual exceeds its bound of {problem.bound:g} by {worst:.1e}, more than "
            f"{tolerance:.0e}; try another solver"
        )
    return max(0.0, worst)
