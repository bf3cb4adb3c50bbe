import numpy as np

from countleak import Objective, Problem
from countleak.solvers.centre import analytic_centre


def test_the_centre_of_a_symmetric_set_is_its_middle():
    problem = Problem(np.eye(2), np.array([0.5, 0.5]), Objective.NONE, 0.3)
    assert np.allclose(analytic_centre(problem, np.array([0.3, 0.79])), [0.5, 0.5])


def test_the_centre_solves_its_equation_in_one_dimension():
    # Slacks x, 1 - x, 0.6 - x and x + 0.2: 1/x - 1/(1-x) - 1/(0.6-x) + 1/(x+0.2) = 0.
    problem = Problem(np.ones((1, 1)), np.array([0.2]), Objective.NONE, 0.4)
    (x,) = analytic_centre(problem, np.array([0.1]))
    assert abs(1 / x - 1 / (1 - x) - 1 / (0.6 - x) + 1 / (x + 0.2)) < 1e-6
