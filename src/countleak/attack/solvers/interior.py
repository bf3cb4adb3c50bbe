"""The interior point made for the reconstruction program: fast, certified, dense.

The mathematics and the compiled loops are in ``attack.solvers.kernels``.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countleak.attack.programs import Objective, Point, Problem, Solution, Status
from countleak.attack.solvers.machine import cache_folder, one_thread
from countleak.errors import InputError

if TYPE_CHECKING:
    from countleak.attack.solvers.kernels.bits import Matrix
    from countleak.attack.solvers.kernels.newton import Program

log = logging.getLogger(__name__)

NAME = "interior point"
# How near every pair must be to its target before a point is called the centre.
CENTRING = 1e-8
# The compiled loop for each objective, as Numba names its files.
LOOPS = {Objective.L1: "path.optimise", Objective.NONE: "centre.centre"}
# What the compiled loops call their ends, by number.
ENDS = (
    Status.OPTIMAL,
    Status.FEASIBLE,
    Status.INFEASIBLE,
    Status.ITERATION_LIMIT,
    Status.TROUBLE,
)
# The objectives whose loops this process has run.
_loaded: set[Objective] = set()


@dataclass(frozen=True)
class InteriorPoint:
    """Mehrotra's predictor-corrector for (P), the analytic centre for (F), or a proof of neither.

    ``tolerance`` is the relative gap to certify. ``threads`` are for ``solve_all``; a single
    program runs on one.
    """

    tolerance: float = 1e-9
    max_iterations: int = 100
    threads: int = 1

    def __post_init__(self) -> None:
        if not self.tolerance > 0 or self.max_iterations < 1 or self.threads < 1:
            raise InputError("the tolerance must be above 0, iterations and threads at least 1")

    def solve(self, problem: Problem) -> Solution:
        """Solve (P), or find the centre of (F)."""
        return self.solve_all([problem])[0]

    def solve_all(self, problems: Sequence[Problem]) -> list[Solution]:
        """Solve many; those that share the same array ``A`` share the work of preparing it."""
        if any(problem.integer for problem in problems):
            raise InputError("the interior point does not solve over whole numbers; use Highs")
        # Importing the kernels loads Numba, which only a solve should have to wait for.
        from countleak.attack.solvers.kernels.bits import prepare

        for objective in {problem.objective for problem in problems}:
            warm_up(objective)
        begin = perf_counter()
        matrices: dict[int, Matrix] = {}
        with one_thread():
            for problem in problems:
                if id(problem.A) not in matrices:
                    matrices[id(problem.A)] = prepare(problem.A)
            shared = (perf_counter() - begin) / max(len(problems), 1)

            def one(problem: Problem) -> Solution:
                begin = perf_counter()
                solution = self._solve(problem, matrices[id(problem.A)])
                return replace(solution, seconds=shared + perf_counter() - begin)

            if self.threads == 1 or len(problems) == 1:
                return [one(problem) for problem in problems]
            with ThreadPoolExecutor(self.threads) as pool:
                return list(pool.map(one, problems))

    def _solve(self, problem: Problem, A: "Matrix") -> Solution:
        from countleak.attack.solvers.kernels.centre import centre
        from countleak.attack.solvers.kernels.path import optimise, within_bound

        if problem.bound == 0:
            # Every row an equation: a set without interior, which no interior point can enter.
            return Solution(None, None, Status.TROUBLE, 0, 0.0, NAME)
        program = _program(A, problem.b, problem.bound)
        if problem.objective is Objective.NONE:
            x, y, end, count = centre(program, CENTRING, self.max_iterations)
        else:
            # A whole number would be another type to Numba, and compiled for anew.
            tolerance = float(self.tolerance)
            x, y, end, count = optimise(program, False, tolerance, self.max_iterations)
            # The unbounded optimum mostly meets the bound; only where not is there more to do.
            if problem.bound < inf and not within_bound(program, x):
                x, y, end, more = optimise(program, True, tolerance, self.max_iterations)
                count += more
        status = ENDS[end]
        if status is Status.INFEASIBLE:
            x = None
        elif not np.isfinite(x).all():
            # A feasible set without an interior to speak of has no centre either.
            x, status = None, Status.TROUBLE
        if not np.isfinite(y).all():
            y = None
        point = Point.CENTRE if status is Status.FEASIBLE else None
        return Solution(x, y, status, count, 0.0, NAME, point)


def is_compiled(objective: Objective) -> bool:
    """Whether the loop for an objective was compiled before, here or by another process."""
    folder = cache_folder()
    return objective in _loaded or (
        folder is not None and any(folder.rglob(f"{LOOPS[objective]}-*.nbi"))
    )


def warm_up(objective: Objective) -> None:
    """Compile the loop for an objective, or load it from its cache, so that no timing has to."""
    if objective in _loaded:
        return
    from countleak.attack.solvers.kernels.bits import prepare

    if not is_compiled(objective):
        log.info("compiling the solver, once on this machine: about half a minute")
    A = np.random.default_rng(0).integers(0, 2, (60, 8), dtype=np.int8)
    bound = 9.0 if objective is Objective.NONE else inf
    InteriorPoint()._solve(Problem(A, A.sum(axis=1) / 2.0, objective, bound), prepare(A))
    _loaded.add(objective)


def _program(A: "Matrix", b: NDArray[np.float64], bound: float) -> "Program":
    from countleak.attack.solvers.kernels.newton import Program

    # Typical sizes of a reduced cost and of a residual, by which to tell what is basic.
    square = max(float(np.trace(A.gram)) / A.n, 1e-30)
    price, size = 2 * square**0.5, 0.1 * (square / A.m) ** 0.5
    # A copy, for a read-only array is another type to Numba, and would be compiled for anew.
    b = np.array(b, np.float64, order="C")
    beta = float(bound) if bound < inf else 0.0
    return Program(A, b, np.zeros(A.n), 0.0, beta, price, size)
