"""The solver for those who do not want to choose; its solutions name the one that solved them."""

from dataclasses import dataclass, replace

from countleak.attack.programs import Objective, Point, Problem, Solution, Status
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint, is_compiled

# Below this many entries of A the simplex is done before the interior point has packed its bits.
SMALL = 2_000
# A program that HiGHS is expected to solve in fewer seconds does not wait for the compiler.
PATIENCE = 1.0


@dataclass(frozen=True)
class AutoSolver:
    """The interior point where it is the faster one, HiGHS where it is not or nothing else will do.

    HiGHS takes integer programs, vertices of (F), small programs, and those that it solves within
    a second as long as the interior point is not compiled on this machine. It also steps in where
    the interior point stops without a certified solution. The solution says which and why.
    """

    time_limit: float = 60.0
    point: Point = Point.VERTEX

    def solve(self, problem: Problem) -> Solution:
        """Solve with whichever is expected to be faster."""
        highs = Highs(time_limit=self.time_limit)
        vertex = problem.objective is Objective.NONE and self.point is Point.VERTEX
        if problem.integer or vertex or problem.A.size < SMALL:
            return highs.solve(problem)
        # A vertex is no substitute for the centre of (F), whatever the compiler takes.
        if problem.objective is Objective.L1 and not _worth_compiling(problem):
            solution = highs.solve(problem)
            return replace(solution, solver=f"{solution.solver}, interior point not compiled yet")
        first = InteriorPoint().solve(problem)
        if first.status in (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE):
            return first
        second = highs.solve(problem)
        name = f"{second.solver}, after {first.solver} stopped ({first.status.name.lower()})"
        return replace(second, solver=name, seconds=first.seconds + second.seconds)


def highs_seconds(m: int, n: int) -> float:
    """About how long HiGHS takes for (P), fitted at n = 50 ... 600 and m = 500 ... 20,000."""
    return n * m * (4e-7 + 3e-9 * n)


def _worth_compiling(problem: Problem) -> bool:
    """Whether the interior point is compiled already, or HiGHS would take too long."""
    return is_compiled(problem.objective) or highs_seconds(*problem.A.shape) > PATIENCE
