"""The decoder for noise with a hard bound: whatever breaks the bound is impossible.

Uniform noise within ± e, and rounding to a base, say of every count that it lies in an interval.
That is worth more than any loss: the intervals are constraints of (F), and of the points that
satisfy them all the centre is rounded. Someone is *forced* where the
constraints alone leave no choice: with x_i as small as they allow still above 0, the bit is 1.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Guess
from countleak.attack.decoders.rounding import round_solution
from countleak.attack.programs import Objective, Point, Problem, bound_below
from countleak.attack.queries import Queries
from countleak.attack.solvers import Solver
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.highs import extremes
from countleak.attack.transcript import Answers
from countleak.errors import InputError


@dataclass(frozen=True)
class Bounded:
    """The centre of the x whose residuals keep to ``bound``, in people.

    A suppressed count is at most ``suppressed_at_most``, where that is known. ``prove`` looks for
    forced values, a linear program a person.
    """

    bound: float
    suppressed_at_most: float | None = None
    prove: bool = True
    solver: Solver = field(default_factory=lambda: AutoSolver(point=Point.CENTRE))

    def __post_init__(self) -> None:
        for name, value in (("bound", self.bound), ("most", self.suppressed_at_most)):
            if value is not None and not value > 0:
                raise InputError(f"the {name} is {value:g}; it must be above 0")

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Solve, certify, round; then prove what can be proven."""
        problem = self.problem(queries, answers)
        guess = round_solution(queries.ids, problem, self.solver.solve(problem))
        forced = np.zeros(queries.ids.size, np.bool_)
        if self.prove and guess.claimed.all():
            forced = forced_values(problem, guess.values)
        basis = {"decoder": "bounded", "bound": self.bound, "forced": int(forced.sum())}
        return Guess(
            guess.ids, guess.values, guess.claimed, guess.margin, guess.solution,
            guess.certificate, forced=forced, basis=basis,
        )  # fmt: skip

    def problem(self, queries: Queries, answers: Answers) -> Problem:
        """(F); a suppressed count lies in [0, at most], an interval as any other."""
        released, most = answers.released, self.suppressed_at_most
        kept = released if most is None else np.ones_like(released)
        if not kept.any():
            raise InputError("no answer was released, so there is nothing to solve")
        A, b = queries.matrix[answers.query[kept]], answers.values[kept]
        if most is None or released.all():
            return Problem(A, b, Objective.NONE, self.bound)
        # A row multiplied by bound/half keeps to the bound where the count keeps to its interval.
        scale = np.where(released, 1.0, 2 * self.bound / most)
        middle = np.where(released, b, most / 2)
        return Problem(A * scale[:, None], middle * scale, Objective.NONE, self.bound)


def forced_values(problem: Problem, values: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Who (n,) can have no other bit than that of ``values`` (n,), each with a proof checked.

    Moving x_i as far as the constraints allow towards the other bit, it never gets there.
    """
    towards = np.where(values == 1, 1.0, -1.0)
    forced = np.zeros(values.size, np.bool_)
    for i, y in enumerate(extremes(problem, towards)):
        if y is not None:
            c = np.zeros(values.size)
            c[i] = towards[i]
            # Least x_i above 0, or least -x_i above -1.
            forced[i] = bound_below(problem, c, y) > (0.0 if values[i] == 1 else -1.0) + 1e-7
    return forced
