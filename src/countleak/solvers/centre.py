"""The analytic centre of the feasible set of (F): the point that makes the least of the bounds."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from countleak.problems import Problem


def analytic_centre(
    problem: Problem, start: NDArray[np.float64], *, tolerance: float = 1e-9, max_steps: int = 100
) -> NDArray[np.float64]:
    """The x that maximises the sum of logarithms of all slacks of (F), by Newton's method.

    ``start`` must be feasible; where it touches a bound the set has no interior and ``start``
    itself is the answer.
    """
    A = problem.A.astype(np.float64)
    x = start
    if _slacks(problem, x).min() <= 1e-12:
        return x
    for _ in range(max_steps):
        r = problem.residual(x)
        over, under = 1 / (problem.bound - r), 1 / (problem.bound + r)
        low, high = 1 / x, 1 / (1 - x)
        gradient = A.T @ (over - under) + low - high
        hessian = (A.T * (over**2 + under**2)) @ A + np.diag(low**2 + high**2)
        step = cho_solve(cho_factor(hessian), gradient)
        decrement = float(gradient @ step)
        # A step of this length keeps a self-concordant barrier inside its domain.
        x = x + step / (1 + np.sqrt(decrement)) if decrement > 0.25 else x + step
        if decrement < tolerance:
            break
    return x


def _slacks(problem: Problem, x: NDArray[np.float64]) -> NDArray[np.float64]:
    r = problem.residual(x)
    return np.concatenate([problem.bound - r, problem.bound + r, x, 1 - x])
