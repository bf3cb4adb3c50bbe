"""The paper's decoder: solve a program, certify it, round x to the nearest bit."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Guess
from countleak.attack.programs import (
    Bracket,
    Dmt,
    Infeasible,
    Problem,
    Program,
    Solution,
    Status,
    certify,
)
from countleak.attack.queries import Queries
from countleak.attack.solvers import Solver
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.transcript import Answers
from countleak.errors import SolverError


@dataclass(frozen=True)
class Rounding:
    """Round the solution of ``program``; raises SolverError above a relative gap of ``gap``."""

    program: Program = field(default_factory=Dmt)
    solver: Solver = field(default_factory=AutoSolver)
    gap: float = 1e-6

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Build, solve, certify, round."""
        problem = self.program.problem(queries, answers)
        return round_solution(queries.ids, problem, self.solver.solve(problem), self.gap)


def round_solution(
    ids: NDArray[np.int64], problem: Problem, solution: Solution, gap: float = 1e-6
) -> Guess:
    """The guess about ``ids`` that a solution leads to, certified; nobody where there is no x."""
    if solution.x is None and solution.status in (Status.TROUBLE, Status.ITERATION_LIMIT):
        raise SolverError(f"{solution.solver}: {solution.status.value}")
    undecided = solution.x is None and solution.status is Status.TIME_LIMIT
    certificate = None if undecided else certify(problem, solution)
    if isinstance(certificate, Infeasible) or solution.x is None:
        nobody = np.zeros(ids.size, dtype=np.bool_)
        values, margin = np.zeros(ids.size, np.int8), np.zeros(ids.size)
        return Guess(ids, values, nobody, margin, solution, certificate)
    # A tree that ran out of time stands by its gap; an LP has no such excuse.
    if isinstance(certificate, Bracket) and not problem.integer and certificate.gap > gap:
        raise SolverError(
            f"{solution.solver} left a gap of {certificate.gap:.1e}, above {gap:.0e} "
            f"({solution.status.value}); raise `gap` or try another solver"
        )
    if solution.status is Status.TROUBLE:
        raise SolverError(f"{solution.solver}: {solution.status.value}")
    return Guess(
        ids,
        (solution.x >= 0.5).astype(np.int8),
        np.ones(ids.size, dtype=np.bool_),
        np.clip(2 * np.abs(solution.x - 0.5), 0.0, 1.0),
        solution,
        certificate,
    )
