"""The solvers a user might pick for the unbounded (P), each from problem to certified solution.

Each peer gets the formulation that suits it best among the usual ones, and the tightest
tolerance that does not slow it down; ``certify`` then measures what it reached.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, hstack, vstack
from threadpoolctl import threadpool_limits

from countleak.attack.programs import Problem, Solution, Status
from countleak.attack.solvers.highs import dual_program, primal_program

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Peer:
    """A solver by name: how it solves (P), and the module it must import."""

    name: str
    run: Callable[[Problem, int], tuple[Vector, Vector]]
    module: str | None = None

    @property
    def installed(self) -> bool:
        """Whether its module can be imported."""
        return self.module is None or find_spec(self.module) is not None

    def solve(self, problem: Problem, threads: int = 1) -> Solution:
        """Solve (P); whether the solution is optimal is left to ``certify``."""
        begin = perf_counter()
        x, y = self.run(problem, threads)
        return Solution(x, y, Status.OPTIMAL, 0, perf_counter() - begin, self.name)


def _highs(form: str, method: str) -> Callable[[Problem, int], tuple[Vector, Vector]]:
    def run(problem: Problem, threads: int) -> tuple[Vector, Vector]:
        options = {
            "solver": method,
            "threads": threads,
            "presolve": "off",
            # Without it IPX still gets below 1e-9 here, and sooner.
            "run_crossover": "off",
            "ipm_optimality_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
        }
        m, n = problem.A.shape
        model = (dual_program if form == "dual" else primal_program)(problem, options)
        model.run()
        solution = model.getSolution()
        if form == "dual":
            return np.array(solution.row_dual), np.array(solution.col_value[:m])
        return np.array(solution.col_value[:n]), np.array(solution.row_dual)

    return run


def _scipy(method: str) -> Callable[[Problem, int], tuple[Vector, Vector]]:
    def run(problem: Problem, threads: int) -> tuple[Vector, Vector]:
        m, n = problem.A.shape
        # Half a second to import, which only a measurement should have to wait for.
        from scipy.optimize import linprog

        result = linprog(
            np.repeat([0.0, 1.0], [n, 2 * m]),
            A_eq=hstack([csr_array(problem.A), eye_array(m), -eye_array(m)]),
            b_eq=problem.b,
            bounds=[(0, 1)] * n + [(0, None)] * (2 * m),
            method=method,
        )
        return result.x[:n], result.eqlin.marginals

    return run


def _clarabel(problem: Problem, threads: int) -> tuple[Vector, Vector]:
    """min 1't  s.t.  |b - Ax| <= t,  0 <= x <= 1, as one nonnegative cone."""
    import clarabel

    m, n = problem.A.shape
    A, one, box = csr_array(problem.A.astype(np.float64)), eye_array(m), eye_array(n)
    rows = vstack(
        [
            hstack([A, -one]),
            hstack([-A, -one]),
            hstack([box, csr_array((n, m))]),
            hstack([-box, csr_array((n, m))]),
        ],
        format="csc",
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    solution = clarabel.DefaultSolver(
        csc_array((n + m, n + m)),
        np.repeat([0.0, 1.0], [n, m]),
        rows,
        np.concatenate([problem.b, -problem.b, np.ones(n), np.zeros(n)]),
        [clarabel.NonnegativeConeT(2 * m + 2 * n)],
        settings,
    ).solve()
    z = np.array(solution.z)
    return np.array(solution.x[:n]), z[m : 2 * m] - z[:m]


def _cvxpy(problem: Problem, threads: int) -> tuple[Vector, Vector]:
    """What the modelling language's tutorial writes, with whatever solver it picks."""
    import cvxpy

    m, n = problem.A.shape
    x, r = cvxpy.Variable(n), cvxpy.Variable(m)
    fit = r == problem.b - problem.A.astype(np.float64) @ x
    cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(r)), [fit, x >= 0, x <= 1]).solve()
    return x.value, -fit.dual_value


def _piqp(problem: Problem, threads: int) -> tuple[Vector, Vector]:
    """(D) as  min 1't - b'y  s.t.  A'y + s - t = 0,  s, t >= 0,  |y| <= 1."""
    import piqp

    m, n = problem.A.shape
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = 1e-9
    solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 1e-10
    box, size = eye_array(n), m + 2 * n
    solver.setup(
        csc_array((size, size)),
        np.concatenate([-problem.b, np.zeros(n), np.ones(n)]),
        csc_array(hstack([csr_array(problem.A.astype(np.float64)).T, box, -box])),
        np.zeros(n),
        None,
        None,
        None,
        np.concatenate([np.full(m, -1.0), np.zeros(2 * n)]),
        np.concatenate([np.ones(m), np.full(2 * n, np.inf)]),
    )
    solver.solve()
    # The multiplier of A'y + s - t = 0 is x up to the sign of the solver's convention.
    return np.array(solver.result.y), np.array(solver.result.x[:m])


PEERS: tuple[Peer, ...] = (
    Peer("HiGHS simplex, dual", _highs("dual", "simplex")),
    Peer("HiGHS IPX, dual", _highs("dual", "ipx")),
    Peer("HiGHS simplex, primal", _highs("primal", "simplex")),
    Peer("HiGHS IPX, primal", _highs("primal", "ipx")),
    Peer("scipy highs-ds", _scipy("highs-ds")),
    Peer("scipy highs-ipm", _scipy("highs-ipm")),
    Peer("Clarabel", _clarabel, "clarabel"),
    Peer("cvxpy default", _cvxpy, "cvxpy"),
    Peer("piqp", _piqp, "piqp"),
)


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Keep every library to ``count`` threads meanwhile.

    HiGHS keeps the number of threads of its first run, and fails when another is set, unless its
    scheduler is reset in between.
    """
    highspy.Highs.resetGlobalScheduler(True)
    try:
        with threadpool_limits(limits=count):
            yield
    finally:
        highspy.Highs.resetGlobalScheduler(True)


def versions() -> dict[str, str]:
    """The version of every library measured."""
    from importlib.metadata import PackageNotFoundError, version

    installed: dict[str, str] = {}
    for package in ("highspy", "scipy", "clarabel", "cvxpy", "piqp", "numpy", "numba"):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "not installed"
    return installed
