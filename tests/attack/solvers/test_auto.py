import numpy as np
import pytest

from countleak.attack.decoders.bounded import Bounded
from countleak.attack.programs import Objective, Point, Problem, Solution, Status, certify
from countleak.attack.solvers import auto
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.highs import Highs
from countleak.lab.bench.worlds import Setting
from tests.attack.decoders.worlds import transcript_of
from tests.attack.solvers.cases import random_case


def test_small_integer_and_vertex_programs_go_to_highs():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (300, 40), dtype=np.int8)
    b = A @ rng.integers(0, 2, 40) + np.round(rng.normal(0, 1, 300))
    for problem in (
        Problem(A[:20], b[:20]),
        Problem(A[:40, :10], b[:40], integer=True),
        Problem(A, b, Objective.NONE, 8.0),
    ):
        assert AutoSolver().solve(problem).solver == "HiGHS"
    assert AutoSolver().solve(Problem(A, b)).solver == "interior point"
    centre = AutoSolver(point=Point.CENTRE).solve(Problem(A, b, Objective.NONE, 8.0))
    assert (centre.solver, centre.point) == ("interior point", Point.CENTRE)


def test_highs_steps_in_and_says_so(monkeypatch):
    class Stuck:
        def solve(self, problem):
            return Solution(None, None, Status.ITERATION_LIMIT, 9, 1.0, "interior point")

    monkeypatch.setattr(auto, "InteriorPoint", Stuck)
    problem = random_case(12)
    assert problem.A.size > auto.SMALL
    solution = AutoSolver().solve(problem)
    assert solution.solver == "HiGHS, after interior point stopped (iteration_limit)"
    assert solution.seconds > 1.0
    assert solution.x == pytest.approx(Highs().solve(problem).x)


def test_a_set_without_interior_has_no_centre_and_gets_a_vertex():
    A = np.eye(50, dtype=np.int8)
    problem = Problem(A, np.full(50, 0.5), Objective.NONE, 0.0)
    solution = AutoSolver(point=Point.CENTRE).solve(problem)
    assert solution.solver == "HiGHS, after interior point stopped (trouble)"
    assert solution.point is Point.VERTEX
    assert solution.x == pytest.approx(np.full(50, 0.5))


def test_a_set_without_an_interior_to_speak_of_is_left_to_highs():
    """Cells of tables with bounded noise can pin nearly everyone."""
    world = Setting(80, 60, 4.0, 0.4, "cells").world(1)
    problem = Bounded(4.0).problem(transcript_of(world))
    solution = AutoSolver(point=Point.CENTRE).solve(problem)
    assert solution.status is Status.FEASIBLE
    assert solution.x is not None
    assert certify(problem, solution).violation < 1e-6
