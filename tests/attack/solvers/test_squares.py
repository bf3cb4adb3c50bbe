import numpy as np
import pytest
from scipy.optimize import lsq_linear

from countleak.attack.solvers.squares import NormalEquations, box_least_squares


def case(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(5, 200)), int(rng.integers(2, 40))
    A = rng.integers(0, 2, (m, n)).astype(np.int8)
    return A, A @ rng.integers(0, 2, n) + rng.normal(0, 3, m)


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_scipy_and_its_gap_is_true(seed):
    A, b = case(seed)
    solution = box_least_squares(NormalEquations.of(A, b), tolerance=1e-9)
    exact = lsq_linear(A.astype(float), b, (0, 1), tol=1e-14)
    assert ((solution.x >= 0) & (solution.x <= 1)).all()
    assert solution.squares == pytest.approx(((b - A @ solution.x) ** 2).sum(), rel=1e-9)
    assert solution.squares - solution.gap <= 2 * exact.cost + 1e-6
    assert solution.squares == pytest.approx(2 * exact.cost, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_normal_equations_give_the_squares_and_the_singular_values(seed):
    A, b = case(seed)
    equations = NormalEquations.of(A, b)
    x = np.random.default_rng(seed).random(A.shape[1])
    assert equations.squares(x) == pytest.approx(((b - A @ x) ** 2).sum())
    values, vectors = equations.eigen
    singular = np.zeros(x.size)
    singular[: min(A.shape)] = np.linalg.svd(A.astype(float), compute_uv=False)
    assert values[::-1] == pytest.approx(singular**2, abs=1e-8)
    assert vectors @ (values * (vectors.T @ x)) == pytest.approx(A.T @ (A @ x), abs=1e-8)
