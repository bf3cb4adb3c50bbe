"""HiGHS: exact, general, and the oracle the other solvers are tested against.

(P) goes in as its dual, an LP with n rows instead of m: presolve off, that is 10 to 20 times
faster than the primal that most people write. Its row multipliers are x.
"""

from dataclasses import dataclass
from math import inf
from time import perf_counter

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, hstack, kron, vstack

from countleak.errors import SolverError
from countleak.problems import Objective, Point, Problem, Solution, Status
from countleak.solvers.centre import analytic_centre

NAME = "HiGHS"
_INFINITY = highspy.kHighsInf


@dataclass(frozen=True)
class Highs:
    """Simplex for linear programs, branch and cut for integer ones.

    ``point`` picks the solution of (F): the vertex the simplex stops at, or the analytic centre.
    ``time_limit`` is in seconds and ends an integer program with what it has.
    """

    tolerance: float = 1e-9
    time_limit: float = 60.0
    point: Point = Point.VERTEX

    def solve(self, problem: Problem) -> Solution:
        """Solve (P) or (F), over the box or over whole numbers."""
        begin = perf_counter()
        if problem.integer:
            return self._integer(problem, begin)
        if problem.objective is Objective.NONE:
            return self._feasible(problem, begin)
        return self._dual(problem, begin)

    def _dual(self, problem: Problem, begin: float) -> Solution:
        """(D) as  min 1't - b'y  s.t.  t - A'y >= 0,  t >= 0,  |y| <= w;  x prices the rows.

        A finite beta lets y leave [-w, w] at a price. Few rows ever need that: they get their
        columns when x first breaks their bound, and the simplex goes on from where it was.
        """
        n = problem.A.shape[1]
        A, w = csr_array(problem.A), problem.w
        model = self._model(
            hstack([-A.T, eye_array(n)], format="csc"),
            cost=np.concatenate([-problem.b, np.ones(n)]),
            columns=(np.append(-w, np.zeros(n)), np.append(w, np.full(n, _INFINITY))),
            rows=(np.zeros(n), np.full(n, _INFINITY)),
        )
        freed = np.empty(0, dtype=np.int64)
        iterations = 0
        while True:
            model.run()
            iterations += _iterations(model)
            if model.getModelStatus() == highspy.HighsModelStatus.kUnbounded:
                y = _assemble(problem, freed, np.array(model.getPrimalRay()[2]))
                return Solution(
                    None, y, Status.INFEASIBLE, iterations, perf_counter() - begin, NAME
                )
            solution = model.getSolution()
            x, columns = np.array(solution.row_dual), np.array(solution.col_value)
            broken = np.abs(problem.residual(x)) > problem.bound + self.tolerance
            broken[freed] = False
            if not broken.any() or _status(model) is not Status.OPTIMAL:
                break
            new = np.flatnonzero(broken)
            _free(model, A[new], problem.b[new], problem.bound)
            freed = np.concatenate([freed, new])
        y = _assemble(problem, freed, columns)
        return Solution(x, y, _status(model), iterations, perf_counter() - begin, NAME)

    def _feasible(self, problem: Problem, begin: float) -> Solution:
        """(F) as ranged rows  b - beta <= Ax <= b + beta  with nothing to minimise."""
        model = self._ranged(problem)
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            y = np.array(model.getDualRay()[2])
            seconds = perf_counter() - begin
            return Solution(None, y, Status.INFEASIBLE, _iterations(model), seconds, NAME)
        x = np.array(model.getSolution().col_value)
        status = Status.FEASIBLE if _status(model) is Status.OPTIMAL else _status(model)
        if self.point is Point.CENTRE and status is Status.FEASIBLE:
            x = analytic_centre(problem, self._deepest(problem))
        iterations = _iterations(model)
        return Solution(x, None, status, iterations, perf_counter() - begin, NAME, self.point)

    def _deepest(self, problem: Problem) -> NDArray[np.float64]:
        """The x that stays farthest, by a common depth, from every bound of (F)."""
        m, n = problem.A.shape
        A, depth = csc_array(problem.A), csc_array(np.ones((m, 1)))
        box, edge = eye_array(n), csc_array(np.ones((n, 1)))
        rows = hstack([vstack([A, A, box, box]), vstack([depth, -depth, edge, -edge])])
        low = np.concatenate([np.full(m, -_INFINITY), problem.b - problem.bound])
        high = np.concatenate([problem.b + problem.bound, np.full(m, _INFINITY)])
        model = self._model(
            csc_array(rows),
            cost=np.concatenate([np.zeros(n), [-1.0]]),
            columns=(np.zeros(n + 1), np.concatenate([np.ones(n), [_INFINITY]])),
            rows=(
                np.concatenate([low, np.full(n, -_INFINITY), np.zeros(n)]),
                np.concatenate([high, np.ones(n), np.full(n, _INFINITY)]),
            ),
        )
        model.run()
        return np.array(model.getSolution().col_value[:n])

    def _integer(self, problem: Problem, begin: float) -> Solution:
        """Branch and cut on the primal; the relaxation's y certifies what the tree cannot."""
        relaxation = self.solve(problem.relaxed())
        if relaxation.status is Status.INFEASIBLE:
            return relaxation
        m, n = problem.A.shape
        if problem.objective is Objective.NONE:
            model = self._ranged(problem)
        else:
            beta = _INFINITY if problem.bound == inf else problem.bound
            model = self._model(
                hstack([csr_array(problem.A), eye_array(m), -eye_array(m)], format="csc"),
                cost=np.concatenate([np.zeros(n), problem.w, problem.w]),
                columns=(np.zeros(n + 2 * m), np.repeat([1.0, beta], [n, 2 * m])),
                rows=(problem.b, problem.b),
            )
        model.setOptionValue("presolve", "choose")
        model.setOptionValue("time_limit", self.time_limit)
        kinds = np.full(n, highspy.HighsVarType.kInteger)
        model.changeColsIntegrality(n, np.arange(n, dtype=np.int32), kinds)
        model.run()
        info = model.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        x = np.round(np.array(model.getSolution().col_value[:n])) if found else None
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
            self.point if problem.objective is Objective.NONE and x is not None else None,
            float(info.mip_dual_bound) if problem.objective is Objective.L1 else None,
        )

    def _ranged(self, problem: Problem) -> highspy.Highs:
        n = problem.A.shape[1]
        return self._model(
            csc_array(problem.A),
            cost=np.zeros(n),
            columns=(np.zeros(n), np.ones(n)),
            rows=(problem.b - problem.bound, problem.b + problem.bound),
        )

    def _model(
        self,
        matrix: csc_array,
        *,
        cost: NDArray[np.float64],
        columns: tuple[NDArray[np.float64], NDArray[np.float64]],
        rows: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> highspy.Highs:
        """min cost'v  s.t.  rows[0] <= matrix v <= rows[1],  columns[0] <= v <= columns[1]."""
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.col_cost_, (lp.col_lower_, lp.col_upper_) = cost, columns
        lp.row_lower_, lp.row_upper_ = rows
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
        lp.a_matrix_.value_ = matrix.data.astype(np.float64)
        model = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",
            "solver": "simplex",
            "primal_feasibility_tolerance": self.tolerance,
            "dual_feasibility_tolerance": self.tolerance,
        }.items():
            model.setOptionValue(option, value)
        if model.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS would not take the program; check A and b for huge numbers")
        return model


def _free(model: highspy.Highs, A: csr_array, b: NDArray[np.float64], bound: float) -> None:
    """Two neighbouring columns a row: y above w at the price beta - b, below -w at beta + b."""
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
    """y (m,) from the columns of the dual LP: its part in [-w, w] and what leaves it."""
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
