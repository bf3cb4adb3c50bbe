"""HiGHS: exact, general, and the oracle the other solvers are tested against.

(P) goes in as its dual, an LP with n rows instead of m: presolve off, that is 10 to 20 times
faster than the primal that most people write. Its row multipliers are x.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, hstack, kron

from countleak.attack.programs import Objective, Point, Problem, Solution, Status
from countleak.errors import InputError, SolverError

NAME = "HiGHS"
_INFINITY = highspy.kHighsInf
_DECIDED = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnbounded)


@dataclass(frozen=True)
class Highs:
    """Simplex for linear programs, branch and cut for integer ones.

    Of (F) it returns the vertex that the simplex stops at. ``time_limit`` is in seconds and ends an
    integer program with what it has.
    """

    tolerance: float = 1e-9
    time_limit: float = 60.0

    def __post_init__(self) -> None:
        if not self.time_limit > 0:
            raise InputError(f"the time limit is {self.time_limit:g} s; it must be above 0")

    @property
    def _options(self) -> dict[str, object]:
        return {
            "threads": 1,
            "presolve": "off",
            "solver": "simplex",
            "primal_feasibility_tolerance": self.tolerance,
            "dual_feasibility_tolerance": self.tolerance,
        }

    def solve(self, problem: Problem) -> Solution:
        """Solve (P) or (F), over the box or over whole numbers."""
        begin = perf_counter()
        if problem.integer:
            return self._integer(problem, begin)
        if problem.objective is Objective.NONE:
            return self._feasible(problem, begin)
        return self._dual(problem, begin)

    def _dual(self, problem: Problem, begin: float) -> Solution:
        """(D), whose rows x prices.

        A finite beta lets y leave [-1, 1] at a price. Few rows ever need that: they get their
        columns when x first exceeds their bound, and the simplex resumes from where it was.
        """
        A, model = csr_array(problem.A), dual_program(problem, self._options)
        freed = np.empty(0, dtype=np.int64)
        iterations = 0
        while True:
            model.run()
            if model.getModelStatus() not in _DECIDED:
                # A basis that does not suit the new columns can leave the simplex undecided.
                model.clearSolver()
                model.run()
            iterations += _iterations(model)
            if model.getModelStatus() == highspy.HighsModelStatus.kUnbounded:
                y = _assemble(problem, freed, np.array(model.getPrimalRay()[2]))
                return Solution(
                    None, y, Status.INFEASIBLE, iterations, perf_counter() - begin, NAME
                )
            solution = model.getSolution()
            x, columns = np.array(solution.row_dual), np.array(solution.col_value)
            if problem.bound == inf or _status(model) is not Status.OPTIMAL:
                break
            exceeds = np.abs(problem.residual(x)) > problem.bound + self.tolerance
            exceeds[freed] = False
            if not exceeds.any():
                break
            new = np.flatnonzero(exceeds)
            _free(model, A[new], problem.b[new], problem.bound)
            freed = np.concatenate([freed, new])
        if problem.bound < inf and _status(model) is not Status.OPTIMAL:
            proof = self._feasible(replace(problem, objective=Objective.NONE), begin)
            if proof.status is Status.INFEASIBLE:
                return proof
        y = _assemble(problem, freed, columns)
        return Solution(x, y, _status(model), iterations, perf_counter() - begin, NAME)

    def _feasible(self, problem: Problem, begin: float) -> Solution:
        """(F) as ranged rows  b - beta <= Ax <= b + beta  with nothing to minimise."""
        model = self._ranged(problem)
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            _, has_ray, ray = model.getDualRay()
            y = np.array(ray) if has_ray else _empty_rows(problem)
            seconds = perf_counter() - begin
            return Solution(None, y, Status.INFEASIBLE, _iterations(model), seconds, NAME)
        x = np.array(model.getSolution().col_value)
        status = Status.FEASIBLE if _status(model) is Status.OPTIMAL else _status(model)
        iterations = _iterations(model)
        return Solution(x, None, status, iterations, perf_counter() - begin, NAME, Point.VERTEX)

    def _integer(self, problem: Problem, begin: float) -> Solution:
        """Branch and cut on the primal; the relaxation's y certifies what the tree cannot."""
        relaxation = self.solve(problem.relaxed())
        if relaxation.status is Status.INFEASIBLE:
            return relaxation
        n = problem.A.shape[1]
        if problem.objective is Objective.NONE:
            model = self._ranged(problem)
        else:
            model = primal_program(problem, self._options)
        model.setOptionValue("presolve", "choose")
        model.setOptionValue("time_limit", self.time_limit)
        model.HandleKeyboardInterrupt = True
        model.solve()
        info = model.getInfo()
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        x = np.round(np.array(model.getSolution().col_value[:n])) if feasible else None
        status = _status(model)
        if problem.objective is Objective.NONE and status is Status.OPTIMAL:
            status = Status.FEASIBLE
        return Solution(
            x,
            None if status is Status.INFEASIBLE else relaxation.y,
            status,
            int(info.mip_node_count),
            perf_counter() - begin,
            NAME,
            None,
            float(info.mip_dual_bound) if problem.objective is Objective.L1 else None,
        )

    def _ranged(self, problem: Problem) -> highspy.Highs:
        n = problem.A.shape[1]
        return build_model(
            csc_array(problem.A),
            cost=np.zeros(n),
            columns=(np.zeros(n), np.ones(n)),
            rows=(problem.b - problem.bound, problem.b + problem.bound),
            options=self._options,
            whole=n if problem.integer else 0,
        )


def extremes(
    problem: Problem, towards: NDArray[np.float64]
) -> Iterator[NDArray[np.float64] | None]:
    """For each person i a y (m,) that bounds towards_i x_i from below over the x of (F).

    None where HiGHS found no optimum. Only the cost changes from one person to the next, so the
    simplex resumes from the vertex where it was.
    """
    model = Highs()._ranged(problem)
    model.setOptionValue("simplex_strategy", 4)  # primal: the vertex stays feasible
    for i, direction in enumerate(towards.tolist()):
        model.changeColCost(i, direction)
        model.run()
        optimal = _status(model) is Status.OPTIMAL
        yield np.array(model.getSolution().row_dual) if optimal else None
        model.changeColCost(i, 0.0)


def build_model(
    matrix: csc_array,
    *,
    cost: NDArray[np.float64],
    columns: tuple[NDArray[np.float64], NDArray[np.float64]],
    rows: tuple[NDArray[np.float64], NDArray[np.float64]],
    options: Mapping[str, object],
    whole: int = 0,
) -> highspy.Highs:
    """min cost'v  s.t.  rows[0] <= matrix v <= rows[1],  columns[0] <= v <= columns[1].

    The first ``whole`` variables are whole numbers.
    """
    model = highspy.Highs()
    for option, value in {"output_flag": False, **options}.items():
        model.setOptionValue(option, value)
    count, matrix = matrix.shape[1], matrix.tocsc()
    outcome = model.passModel(
        count,
        matrix.shape[0],
        matrix.nnz,
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        cost,
        *columns,
        *rows,
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        (np.arange(count) < whole).astype(np.int32),
    )
    if outcome == highspy.HighsStatus.kError:
        raise SolverError("HiGHS rejected the program; check A and b for huge numbers")
    return model


def dual_program(problem: Problem, options: Mapping[str, object]) -> highspy.Highs:
    """(D) without bounds:  min 1't - b'y  s.t.  t - A'y >= 0,  t >= 0,  |y| <= 1."""
    m, n = problem.A.shape
    A = csr_array(problem.A)
    # By columns, -A' is A by rows: put together by hand, which takes a tenth of hstack's time.
    ends = A.indptr[-1] + np.arange(1, n + 1)
    matrix = csc_array(
        (
            np.append(-A.data.astype(np.float64), np.ones(n)),
            np.append(A.indices, np.arange(n)),
            np.append(A.indptr, ends),
        ),
        shape=(n, m + n),
    )
    return build_model(
        matrix,
        cost=np.append(-problem.b, np.ones(n)),
        columns=(np.repeat([-1.0, 0.0], [m, n]), np.repeat([1.0, _INFINITY], [m, n])),
        rows=(np.zeros(n), np.full(n, _INFINITY)),
        options=options,
    )


def primal_program(problem: Problem, options: Mapping[str, object]) -> highspy.Highs:
    """(P) as most write it:  min 1'(u + v)  s.t.  Ax + u - v = b,  0 <= u, v <= beta."""
    m, n = problem.A.shape
    beta = _INFINITY if problem.bound == inf else problem.bound
    return build_model(
        hstack([csr_array(problem.A), eye_array(m), -eye_array(m)], format="csc"),
        cost=np.repeat([0.0, 1.0], [n, 2 * m]),
        columns=(np.zeros(n + 2 * m), np.repeat([1.0, beta], [n, 2 * m])),
        rows=(problem.b, problem.b),
        options=options,
        whole=n if problem.integer else 0,
    )


def _empty_rows(problem: Problem) -> NDArray[np.float64]:
    """The proof for which HiGHS has no ray: a row of zeros whose answer exceeds the bound."""
    impossible = ~np.any(problem.A, axis=1) & (np.abs(problem.b) > problem.bound)
    return np.where(impossible, np.sign(problem.b), 0.0)


def _free(model: highspy.Highs, A: csr_array, b: NDArray[np.float64], bound: float) -> None:
    """Two neighbouring columns per row: y above 1 at the price beta - b, below -1 at beta + b."""
    pairs = csr_array(kron(A, [[-1.0], [1.0]]))
    k = 2 * b.size
    model.addCols(
        k,
        np.column_stack([bound - b, bound + b]).ravel(),
        np.zeros(k),
        np.full(k, _INFINITY),
        pairs.nnz,
        pairs.indptr.astype(np.int32),
        pairs.indices.astype(np.int32),
        pairs.data,
    )


def _assemble(
    problem: Problem, freed: NDArray[np.int64], columns: NDArray[np.float64]
) -> NDArray[np.float64]:
    """y (m,) from the columns of the dual LP: its part in [-1, 1] and what leaves it."""
    m, n = problem.A.shape
    y = columns[:m].copy()
    above, below = columns[m + n :].reshape(-1, 2).T
    y[freed] += above - below
    return y


def _status(model: highspy.Highs) -> Status:
    known = {
        highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
        highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
        highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
        highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
    }
    return known.get(model.getModelStatus(), Status.TROUBLE)


def _iterations(model: highspy.Highs) -> int:
    return int(model.getInfo().simplex_iteration_count)
