"""The paper's decoder: solve a program, certify it, round x to the nearest bit."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.guess import Basis, Guess
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
from countleak.attack.solvers import Solver
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.pdhg import FirstOrder, bracket
from countleak.attack.transcript import Transcript
from countleak.errors import SolverError

# More people than this are solved for by a first-order method, to this relative gap.
MOST_PEOPLE, GAP_OF_MANY = 5000, 1e-4


@dataclass(frozen=True)
class Rounding:
    """Round the solution of ``program``; raises SolverError above a relative gap of ``gap``."""

    program: Program = field(default_factory=Dmt)
    solver: Solver = field(default_factory=AutoSolver)
    gap: float = 1e-6

    def decode(self, transcript: Transcript) -> Guess:
        """Build, solve, certify, round."""
        plain = isinstance(self.program, Dmt) and not self.program.integer
        if plain and isinstance(self.solver, AutoSolver) and transcript.ids.size > MOST_PEOPLE:
            return _by_products(transcript.where(transcript.released))
        problem = self.program.problem(transcript)
        return round_solution(transcript.ids, problem, self.solver.solve(problem), self.gap)


def _by_products(released: Transcript) -> Guess:
    """The guess of the least total residual, to a gap that products alone reach in time."""
    rows, b = released.queries.rows, released.b
    solution = FirstOrder(GAP_OF_MANY).solve(rows, b)
    certificate = bracket(rows, b, solution)
    if solution.x is None or certificate.gap > 1.1 * GAP_OF_MANY:
        raise SolverError(
            f"{solution.solver} left a gap of {certificate.gap:.1e}, above {GAP_OF_MANY:.0e} "
            f"({solution.status.value}); decode with `messages` or `ls`"
        )
    return Guess(
        released.ids,
        (solution.x >= 0.5).astype(np.int8),
        np.ones(released.ids.size, dtype=np.bool_),
        Basis(decoder="lp", solution=solution, certificate=certificate),
        margin=np.clip(2 * np.abs(solution.x - 0.5), 0.0, 1.0),
    )


def round_solution(
    ids: NDArray[Any], problem: Problem, solution: Solution, gap: float = 1e-6
) -> Guess:
    """The guess about ``ids`` that a solution leads to, certified; nobody where there is no x."""
    if solution.x is None and solution.status in (Status.TROUBLE, Status.ITERATION_LIMIT):
        raise SolverError(f"{solution.solver}: {solution.status.value}")
    undecided = solution.x is None and solution.status is Status.TIME_LIMIT
    certificate = None if undecided else certify(problem, solution)
    basis = Basis(decoder="lp", solution=solution, certificate=certificate)
    if isinstance(certificate, Infeasible) or solution.x is None:
        nobody = np.zeros(ids.size, dtype=np.bool_)
        return Guess(ids, nobody.astype(np.int8), nobody, basis, margin=np.zeros(ids.size))
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
        basis,
        margin=np.clip(2 * np.abs(solution.x - 0.5), 0.0, 1.0),
    )
