"""(P) by two products a step, for more people than an LP solver can take in, with its certificate.

A primal-dual hybrid gradient method (Chambolle and Pock 2011) on

    min over 0 <= x <= 1  max over |y| <= 1   y'(b - Qx)

with the means of PDLP (Applegate et al. 2021): it starts again from the average of its steps
whenever that has become clearly better, and weighs primal against dual steps anew each time. Counts
have a mean, so one direction of Q is longer than all others by a factor of sqrt(n): dual steps are
shorter along it, by a metric I + k 11'/m whose proximal step is a search for one number.
"""

from dataclasses import dataclass
from math import inf, sqrt
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from countleak.attack.programs import Bracket, Solution, Status
from countleak.attack.solvers.products import Centred, Products
from countleak.progress import Progress, silent

# Halvings of the search for the one number; its error is below that of the step by then.
HALVINGS = 60
# A restart needs an average whose gap has fallen to so much of that at the last; or so many steps,
# as a share of all, have passed.
CLEARLY, LONG = 0.3, 0.4
# The steps fit under 1 over the norm with this to spare.
SPARE = 0.95
# Steps between looks at the gap.
LOOKS = 10
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class FirstOrder:
    """Settings: stop at a relative ``gap``, or after so many ``steps``."""

    gap: float = 1e-4
    steps: int = 20_000
    progress: Progress = silent

    def solve(self, products: Products, b: Vector, start: Vector | None = None) -> Solution:
        """The x (n,) of least total residual and the y (m,) that bounds it from below."""
        begin = perf_counter()
        run = _Run(products, b, start)
        status = Status.ITERATION_LIMIT
        for step in range(1, self.steps + 1):
            run.step()
            if step % LOOKS == 0:
                self.progress(step, self.steps)
                if run.look(step) <= self.gap:
                    status = Status.OPTIMAL
                    break
        seconds = perf_counter() - begin
        return Solution(run.best[0], run.best[1], status, step, seconds, "first-order")


def bracket(products: Products, b: Vector, solution: Solution) -> Bracket:
    """What a solution proves, recomputed from its x and y alone with products of their own."""
    assert solution.x is not None and solution.y is not None
    x, y = np.clip(solution.x, 0.0, 1.0), np.clip(solution.y, -1.0, 1.0)
    upper = float(np.abs(b - products.dot(x)).sum())
    return Bracket(_dual(b, y, products.tdot(y)), upper)


def _dual(b: Vector, y: Vector, back: Vector) -> float:
    """The objective of (D) at y, with ``back`` = Q'y."""
    return float(b @ y - np.maximum(0.0, back).sum())


class _Run:
    """The iterates: x, y, their products, and sums of all since the last restart."""

    def __init__(self, products: Products, b: Vector, start: Vector | None):
        """Begin at ``start`` or the middle of the box."""
        self.Q, self.b = products, b
        m, n = products.shape
        centred = Centred(products)
        # The longest direction of the centred matrix, and of what is left along the mean.
        across = sqrt(m * centred.variance) * (1 + sqrt(n / m))
        self.k = max((centred.density**2 * m * n) / across**2 - 1, 0.0)
        arrays = centred.arrays
        self.x = arrays.full(n, 0.5) if start is None else start
        self.y = arrays.zeros(m)
        self.Qx, self.Qty = products.dot(self.x), arrays.zeros(n)
        self.norm = self._norm(arrays.asarray(np.random.default_rng(0).normal(size=n)))
        self.weight = sqrt(m / n)
        self.best: tuple[Vector, Vector] = (self.x, self.y)
        self.lower, self.upper = -inf, inf
        self.gap_at_restart = inf
        self._restart(self.x, self.y, self.Qx, self.Qty)

    def _norm(self, v: Vector) -> float:
        """The norm of the matrix in the metric of the steps, by the power method."""
        for _ in range(12):
            v = v / sqrt(float(v @ v))
            u = self.Q.dot(v)
            # The inverse of the metric, I + k 11'/m.
            v = self.Q.tdot(u - self.k / (1 + self.k) * u.mean())
        return sqrt(sqrt(float(v @ v))) * 1.02

    def _restart(self, x: Vector, y: Vector, Qx: Vector, Qty: Vector) -> None:
        self.x, self.y, self.Qx, self.Qty = x, y, Qx, Qty
        self.from_x, self.from_y, self.count = x, y, 0
        self.sums = [np.zeros_like(each) for each in (x, y, Qx, Qty)]

    def step(self) -> None:
        """One step in x, then one in y at the point beyond it."""
        tau, sigma = SPARE / (self.norm * self.weight), SPARE * self.weight / self.norm
        x = np.clip(self.x + tau * self.Qty, 0.0, 1.0)
        Qx = self.Q.dot(x)
        target = sigma * (self.b - (2 * Qx - self.Qx))
        self.y = self._dual_step(target)
        self.x, self.Qx, self.Qty = x, Qx, self.Q.tdot(self.y)
        self.count += 1
        for total, each in zip(self.sums, (self.x, self.y, self.Qx, self.Qty), strict=True):
            total += each

    def _dual_step(self, move: Vector) -> Vector:
        """The y in [-1, 1] nearest to y + move, in the metric that shortens common moves."""
        goal, now, share = self.y + move, float(self.y.sum()), self.k / self.b.size
        low, high = -2.0 * self.b.size, 2.0 * self.b.size
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if float(np.clip(goal - share * middle, -1.0, 1.0).sum()) - now > middle:
                low = middle
            else:
                high = middle
        y: Vector = np.clip(goal - share * (low + high) / 2, -1.0, 1.0)
        return y

    def look(self, step: int) -> float:
        """The relative gap of the best so far; starts again where the average is clearly better."""
        average = [total / self.count for total in self.sums]
        gaps = []
        for x, y, Qx, Qty in ((self.x, self.y, self.Qx, self.Qty), average):
            upper, lower = float(np.abs(self.b - Qx).sum()), _dual(self.b, y, Qty)
            if upper < self.upper:
                self.upper, self.best = upper, (x, self.best[1])
            if lower > self.lower:
                self.lower, self.best = lower, (self.best[0], y)
            gaps.append(upper - lower)
        if gaps[1] <= CLEARLY * self.gap_at_restart or self.count >= LONG * step:
            self._weigh(average[0], average[1])
            self.gap_at_restart = gaps[1]
            self._restart(*average)
        return max(0.0, self.upper - self.lower) / max(1.0, self.upper)

    def _weigh(self, x: Vector, y: Vector) -> None:
        """Weigh the steps by how far x and y have come since the last restart."""
        far_x, far_y = x - self.from_x, y - self.from_y
        moved = sqrt(float(far_x @ far_x)), sqrt(float(far_y @ far_y))
        if min(moved) > 1e-10:
            self.weight = sqrt(self.weight * moved[1] / moved[0])
