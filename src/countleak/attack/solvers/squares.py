"""Least squares over the box: minimise sum_i w_i (b - Ax)_i^2 over 0 <= x <= 1.

Solved by alternating directions (ADMM; Boyd et al. 2011, section 5.2) on the Gram matrix, so that
a step costs n^2 however many answers there are, and certified by its duality gap: with the
gradient g = 2 A'W(Ax - b), no point of the box is better than x by more than sum_j max over
z in {0, 1} of g_j (x_j - z) (Frank and Wolfe 1956).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.errors import SolverError

# Chosen in trials; any rho and any relaxation in (0, 2) converge.
RELAXATION = 1.6
STEPS = 20_000


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """``x`` (n,) in the box, its weighted ``squares``, and their ``gap`` to the least at most."""

    x: NDArray[np.float64]
    squares: float
    gap: float
    iterations: int


def box_least_squares(
    A: NDArray[np.int8] | NDArray[np.float64],
    b: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    tolerance: float = 1e-5,
) -> BoxSolution:
    """The x (n,) of the box with the least weighted squared residuals.

    ``tolerance`` bounds the gap relative to the squares at the start, x = 1/2.
    """
    m, n = A.shape
    dense = A.astype(np.float64)
    w = np.ones(m) if weights is None else weights
    scaled = dense * w[:, None]
    G, c, bb = dense.T @ scaled, scaled.T @ b, float(b @ (w * b))
    # The mean curvature: the penalty then weighs as much as the squares do.
    rho = max(float(np.trace(G)) / n, 1e-12) / 2
    inverse = np.linalg.inv(G + rho * np.eye(n))
    z, u = np.full(n, 0.5), np.zeros(n)
    enough = tolerance * max(_squares(G, c, bb, z), float(w.sum()) * 1e-3)
    for step in range(1, STEPS + 1):
        x = inverse @ (c + rho * (z - u))
        relaxed = RELAXATION * x + (1 - RELAXATION) * z
        z = np.clip(relaxed + u, 0.0, 1.0)
        u += relaxed - z
        if step % 10 == 0:
            gradient = 2 * (G @ z - c)
            gap = float(np.maximum(gradient * z, gradient * (z - 1)).sum())
            if gap <= enough:
                return BoxSolution(z, _squares(G, c, bb, z), max(gap, 0.0), step)
    raise SolverError(f"box least squares did not settle in {STEPS} steps; raise `tolerance`")


def _squares(
    G: NDArray[np.float64], c: NDArray[np.float64], bb: float, x: NDArray[np.float64]
) -> float:
    return max(0.0, float(x @ (G @ x) - 2 * c @ x + bb))
