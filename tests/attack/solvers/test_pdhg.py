import numpy as np
import pytest

from countleak.attack.programs import Problem, Status, certify
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.pdhg import FirstOrder, bracket


def program(n, m):
    rng = np.random.default_rng(n)
    rows = HashedRows(3, np.arange(m), np.arange(n))
    b = rows.dot(rng.integers(0, 2, n).astype(np.float64)) + np.round(rng.normal(0, 4, m))
    wild = rng.random(m) < 0.01
    return rows, b + wild * rng.normal(0, 100, m).round()


# More answers than people, and fewer.
@pytest.mark.parametrize(("n", "m"), [(100, 500), (100, 80)])
def test_its_bounds_hold_the_optimum(n, m):
    rows, b = program(n, m)
    solution = FirstOrder(1e-4).solve(rows, b)
    bounds = bracket(rows, b, solution)
    problem = Problem(rows.dense(), b)
    exact = certify(problem, Highs().solve(problem))
    assert solution.status is Status.OPTIMAL
    assert bounds.gap <= 1e-4 * 1.001 or bounds.upper < 1
    assert bounds.lower - 1e-6 <= exact.upper
    assert exact.lower <= bounds.upper + 1e-6


def test_too_few_steps_say_so():
    rows, b = program(100, 500)
    solution = FirstOrder(1e-9, steps=20).solve(rows, b)
    assert solution.status is Status.ITERATION_LIMIT
    # What was reached is bounded all the same.
    assert 0 < bracket(rows, b, solution).gap < 1
