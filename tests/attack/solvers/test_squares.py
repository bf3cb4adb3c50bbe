import numpy as np
import pytest
from scipy.optimize import lsq_linear

from countleak.attack.solvers.squares import box_least_squares


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_scipy_and_its_gap_is_true(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(5, 200)), int(rng.integers(2, 40))
    A = rng.integers(0, 2, (m, n)).astype(np.int8)
    b = A @ rng.integers(0, 2, n) + rng.normal(0, 3, m)
    w = rng.uniform(0.2, 3, m)
    found = box_least_squares(A, b, w, tolerance=1e-9)
    root = np.sqrt(w)
    exact = lsq_linear(A * root[:, None], b * root, (0, 1), tol=1e-14)
    assert ((found.x >= 0) & (found.x <= 1)).all()
    assert found.squares == pytest.approx(w @ (b - A @ found.x) ** 2, rel=1e-9)
    assert found.squares - found.gap <= 2 * exact.cost + 1e-6
    assert found.squares == pytest.approx(2 * exact.cost, rel=1e-6, abs=1e-6)


def test_weights_stand_for_repeated_answers():
    rng = np.random.default_rng(3)
    A, b = rng.integers(0, 2, (30, 8)).astype(np.int8), rng.normal(4, 2, 30)
    times = rng.integers(1, 4, 30)
    weighted = box_least_squares(A, b, times.astype(float), tolerance=1e-10)
    repeated = box_least_squares(np.repeat(A, times, 0), np.repeat(b, times), tolerance=1e-10)
    assert weighted.x == pytest.approx(repeated.x, abs=1e-4)
