"""The paper's decoder: solve a program, certify it, round x to the nearest bit."""

from dataclasses import dataclass, field

import numpy as np

from countleak.answers import Answers
from countleak.decoders import Guess
from countleak.errors import SolverError
from countleak.problems import Bracket, Dmt, Infeasible, Program, Status, certify
from countleak.queries import Queries
from countleak.solvers import Solver
from countleak.solvers.highs import Highs


@dataclass(frozen=True)
class Rounding:
    """Round the solution of ``program``; raises SolverError above a relative gap of ``gap``."""

    program: Program = field(default_factory=Dmt)
    solver: Solver = field(default_factory=Highs)
    gap: float = 1e-6

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Build, solve, certify, round."""
        problem = self.program.problem(queries, answers)
        solution = self.solver.solve(problem)
        certificate = certify(problem, solution)
        n = queries.ids.size
        if isinstance(certificate, Infeasible) or solution.x is None:
            nobody = np.zeros(n, dtype=np.bool_)
            return Guess(
                queries.ids, np.zeros(n, np.int8), nobody, np.zeros(n), solution, certificate
            )
        # A tree that ran out of time stands by its gap; an LP has no such excuse.
        if isinstance(certificate, Bracket) and not problem.integer and certificate.gap > self.gap:
            raise SolverError(
                f"{type(self.solver).__name__} left a gap of {certificate.gap:.1e}, above "
                f"{self.gap:.0e} ({solution.status.value}); raise `gap` or try another solver"
            )
        if solution.status is Status.TROUBLE:
            raise SolverError(f"{type(self.solver).__name__}: {solution.status.value}")
        return Guess(
            queries.ids,
            (solution.x >= 0.5).astype(np.int8),
            np.ones(n, dtype=np.bool_),
            np.clip(2 * np.abs(solution.x - 0.5), 0.0, 1.0),
            solution,
            certificate,
        )
