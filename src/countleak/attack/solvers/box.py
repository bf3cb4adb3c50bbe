"""Least squares over the box by two products a step: minimise |b - c - Qx|^2 over 0 <= x <= 1.

For more people than a Gram matrix can hold. The level c is free: all answers may be off by it, and
without it no direction of the matrix stands out. Solved by accelerated projected gradients with
restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015), certified as in ``squares``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.products import Centred, Products
from countleak.attack.solvers.squares import BoxSolution
from countleak.errors import SolverError
from countleak.progress import Progress, silent

# The gap is looked at once in so many steps.
LOOKS = 5


@dataclass(frozen=True)
class BoxSquares:
    """Settings: ``tolerance`` bounds the gap relative to the squares at x = 1/2.

    What is not there after so many ``steps`` is an error, or returned as it is if that is ``rough``
    enough.
    """

    tolerance: float = 1e-5
    steps: int = 2000
    rough: bool = False
    progress: Progress = silent

    def solve(self, products: Products, b: NDArray[np.float64]) -> BoxSolution:
        """The x (n,) of the box with the least squared residuals, the level being free."""
        A = Centred(products)
        m, n = A.shape

        def residual(x: NDArray[np.float64]) -> NDArray[np.float64]:
            left = b - A.dot(x)
            centred: NDArray[np.float64] = left - left.mean()
            return centred

        # The largest eigenvalue of A'A for independent rows; too small a bound is corrected.
        bound = m * A.variance * (1 + np.sqrt(n / m)) ** 2
        x = A.arrays.full(n, 0.5)
        r = residual(x)
        enough = self.tolerance * max(float(r @ r), m * 1e-3)
        y, r_y, momentum = x, r, 1.0
        for step in range(1, self.steps + 1):
            gradient = -A.tdot(r_y)
            while True:
                new = np.clip(y - gradient / bound, 0.0, 1.0)
                r_new = residual(new)
                moved, change = new - y, r_new - r_y
                if float(change @ change) <= bound * float(moved @ moved) * (1 + 1e-9):
                    break
                bound *= 2
            if float(moved @ (new - x)) < 0:
                momentum = 1.0  # the momentum points uphill
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            pull = (momentum - 1) / next_momentum
            y, r_y = new + pull * (new - x), r_new + pull * (r_new - r)
            x, r, momentum = new, r_new, next_momentum
            self.progress(step, self.steps)
            if step % LOOKS == 0:
                slope = -2 * A.tdot(r)
                gap = float(np.maximum(slope * x, slope * (x - 1)).sum())
                if gap <= enough or (self.rough and step + LOOKS > self.steps):
                    return BoxSolution(x, float(r @ r), max(gap, 0.0), step)
        raise SolverError(
            f"box least squares did not settle in {self.steps} steps; raise `tolerance`"
        )
