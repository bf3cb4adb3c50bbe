"""The solver for those who do not want to choose; its solutions say who solved them."""

from dataclasses import dataclass, replace

from countleak.attack.programs import Objective, Point, Problem, Solution, Status
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint

# Below this many entries of A the simplex is done before the interior point has packed its bits.
SMALL = 2_000


@dataclass(frozen=True)
class AutoSolver:
    """The interior point where it is the faster one, HiGHS where it is not or nothing else will do.

    HiGHS takes integer programs, vertices of (F) and small programs, and steps in, saying so,
    where the interior point stops without a certified solution.
    """

    time_limit: float = 60.0
    point: Point = Point.VERTEX

    def solve(self, problem: Problem) -> Solution:
        """Solve with whichever is expected to be faster."""
        highs = Highs(time_limit=self.time_limit)
        vertex = problem.objective is Objective.NONE and self.point is Point.VERTEX
        if problem.integer or vertex or problem.A.size < SMALL:
            return highs.solve(problem)
        solution = InteriorPoint().solve(problem)
        if solution.status in (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE):
            return solution
        second = highs.solve(problem)
        name = f"{second.solver}, after {solution.solver} stopped ({solution.status.name.lower()})"
        return replace(second, solver=name, seconds=solution.seconds + second.seconds)
