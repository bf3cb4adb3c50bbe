import numpy as np
import pytest
from scipy.optimize import lsq_linear

from countleak.attack.queries.rows import Dense
from countleak.attack.solvers.box import BoxSquares
from countleak.errors import SolverError


@pytest.mark.parametrize(("m", "n"), [(400, 150), (120, 150)])
def test_it_finds_the_least_squares(m, n):
    rng = np.random.default_rng(m)
    Q = rng.integers(0, 2, (m, n), dtype=np.int8)
    b = Q @ rng.integers(0, 2, n).astype(np.float64) + rng.normal(0, 5, m) + 30
    found = BoxSquares(1e-9).solve(Dense(Q), b)
    # scipy's own method, with the level as one more column.
    columns = np.column_stack([Q, np.ones(m)])
    bounds = (np.append(np.zeros(n), -np.inf), np.append(np.ones(n), np.inf))
    best = 2 * lsq_linear(columns, b, bounds, tol=1e-12).cost
    assert found.squares == pytest.approx(best, rel=1e-6)
    assert best >= found.squares - found.gap - 1e-6
    assert ((found.x >= 0) & (found.x <= 1)).all()


def test_too_few_steps_are_an_error():
    rng = np.random.default_rng(0)
    Q = rng.integers(0, 2, (80, 60), dtype=np.int8)
    with pytest.raises(SolverError, match="did not settle in 3 steps"):
        BoxSquares(1e-12, 3).solve(Dense(Q), rng.normal(30, 5, 80))
    rough = BoxSquares(1e-12, 7, rough=True).solve(Dense(Q), rng.normal(30, 5, 80))
    assert (rough.iterations, rough.gap > 0) == (5, True)
