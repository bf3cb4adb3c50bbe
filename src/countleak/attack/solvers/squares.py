"""Least squares over the box: minimise |b - Ax|^2 over 0 <= x <= 1.

Solved by alternating directions (ADMM; Boyd et al. 2011, section 5.2) on the Gram matrix, so that
a step costs n^2 however many answers there are, and certified by its duality gap: with the
gradient g = 2 A'(Ax - b), no point of the box is better than x by more than sum_j max over
z in {0, 1} of g_j (x_j - z) (Frank and Wolfe 1956).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.machine import one_thread
from countleak.errors import SolverError

# Chosen in trials; any rho and any relaxation in (0, 2) converge.
RELAXATION = 1.6
STEPS = 20_000


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """All that |b - Ax|^2 depends on: ``G`` = A'A (n, n), ``c`` = A'b (n,), ``bb`` = b'b.

    ``m`` is the number of answers. Several methods can share one, and its eigenvectors.
    """

    G: NDArray[np.float64]
    c: NDArray[np.float64]
    bb: float
    m: int

    @classmethod
    def of(cls, A: NDArray[np.int8] | NDArray[np.float64], b: NDArray[np.float64]) -> Self:
        """Those of rows A (m, n) and answers b (m,)."""
        dense = A.astype(np.float64, copy=False)
        return cls(dense.T @ dense, dense.T @ b, float(b @ b), b.size)

    @cached_property
    def eigen(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The eigenvalues (n,) of G, rounding below 0 removed, and its eigenvectors (n, n)."""
        with one_thread():
            values, vectors = np.linalg.eigh(self.G)
        return np.maximum(values, 0.0), vectors

    def squares(self, x: NDArray[np.float64]) -> float:
        """|b - Ax|^2 at x (n,)."""
        return max(0.0, float(x @ (self.G @ x) - 2 * self.c @ x + self.bb))


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """``x`` (n,) in the box, its ``squares``, and a bound on their ``gap`` to the least."""

    x: NDArray[np.float64]
    squares: float
    gap: float
    iterations: int


def box_least_squares(equations: NormalEquations, tolerance: float = 1e-5) -> BoxSolution:
    """The x (n,) of the box with the least squared residuals.

    ``tolerance`` bounds the gap relative to the squares at the start, x = 1/2.
    """
    G, c, n = equations.G, equations.c, equations.c.size
    # The mean curvature: the penalty then weighs as much as the squares do.
    rho = max(float(np.trace(G)) / n, 1e-12) / 2
    z, u = np.full(n, 0.5), np.zeros(n)
    enough = tolerance * max(equations.squares(z), equations.m * 1e-3)
    with one_thread():
        inverse = np.linalg.inv(G + rho * np.eye(n))
        for step in range(1, STEPS + 1):
            x = inverse @ (c + rho * (z - u))
            relaxed = RELAXATION * x + (1 - RELAXATION) * z
            z = np.clip(relaxed + u, 0.0, 1.0)
            u += relaxed - z
            if step % 10 == 0:
                gradient = 2 * (G @ z - c)
                gap = float(np.maximum(gradient * z, gradient * (z - 1)).sum())
                if gap <= enough:
                    return BoxSolution(z, equations.squares(z), max(gap, 0.0), step)
    raise SolverError(f"box least squares did not settle in {STEPS} steps; raise `tolerance`")
