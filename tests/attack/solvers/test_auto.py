import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.programs import Objective, Point, Problem, Solution, Status, certify
from countleak.attack.solvers import auto
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import warm_up
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
    warm_up(Objective.L1)
    assert AutoSolver().solve(Problem(A, b)).solver == "interior point"
    centre = AutoSolver(point=Point.CENTRE).solve(Problem(A, b, Objective.NONE, 8.0))
    assert (centre.solver, centre.point) == ("interior point", Point.CENTRE)


def test_a_program_that_highs_solves_soon_does_not_wait_for_the_compiler(monkeypatch):
    class Compiling(Exception):
        pass

    class Uncompiled:
        def solve(self, problem):
            raise Compiling

    monkeypatch.setattr(auto, "InteriorPoint", Uncompiled)
    monkeypatch.setattr(auto, "is_compiled", lambda objective: False)
    problem = random_case(12)
    solution = AutoSolver().solve(problem)
    assert solution.solver == "HiGHS, interior point not compiled yet"
    assert certify(problem, solution).gap <= 1e-9
    large = Problem(np.eye(1000, dtype=np.int8), np.zeros(1000))
    assert auto.highs_seconds(*large.A.shape) > auto.PATIENCE
    with pytest.raises(Compiling):
        AutoSolver().solve(large)
    # HiGHS has no centre to offer.
    with pytest.raises(Compiling):
        AutoSolver(point=Point.CENTRE).solve(replace(problem, objective=Objective.NONE, bound=9.0))


def test_what_was_compiled_is_known_without_loading_the_compiler():
    warm_up(Objective.L1)
    code = (
        "import sys\n"
        "from countleak.attack.programs import Objective\n"
        "from countleak.attack.solvers.interior import is_compiled\n"
        "assert is_compiled(Objective.L1) and 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_highs_steps_in_and_says_so(monkeypatch):
    class Stuck:
        def solve(self, problem):
            return Solution(None, None, Status.ITERATION_LIMIT, 9, 1.0, "interior point")

    monkeypatch.setattr(auto, "InteriorPoint", Stuck)
    monkeypatch.setattr(auto, "is_compiled", lambda objective: True)
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
    problem = Problem(world.transcript.A, world.transcript.b, Objective.NONE, 4.0)
    solution = AutoSolver(point=Point.CENTRE).solve(problem)
    assert solution.status is Status.FEASIBLE
    assert solution.x is not None
    assert certify(problem, solution).violation < 1e-6
