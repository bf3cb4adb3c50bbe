"""The noise of one answer as a mixture of normal laws.

A decoder that looks for one person's bit meets, in every answer, the noise and what it does not
know yet of all others. The latter is normal, with some variance V: adding it to a mixture of
normal laws gives another. With r = noise + N(0, V):

    within(b)     Pr(|r| <= b)
    clipped(b)    E clip(r, -b, b)^2
    information   E (d/dr log p(r))^2, Fisher's information about a shift; 1 / variance if normal
"""

from dataclasses import dataclass
from functools import singledispatch
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from countleak.audit.budget.bisection import turning_point
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.errors import InputError, NoPrediction

# Points at which a density is integrated, and normal laws that make up a Laplace law.
POINTS, LAYERS = 301, 32
# Values that a bounded error can take: the cost of the integral grows with them.
MOST_VALUES = 501
# The least V a density is looked at with: from less, nothing comes but certainty.
LEAST = 1e-2
# Standard deviations beyond which no normal law has anything left.
TAIL = 8.5


@dataclass(frozen=True, eq=False)
class Law:
    """A mixture of normal laws: ``weights``, ``means`` and ``variances``, each (k,)."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]

    @property
    def normal(self) -> bool:
        """Whether it is a single normal law."""
        return self.weights.size == 1

    @property
    def variance(self) -> float:
        """The variance of the whole; every mixture here has mean 0."""
        return float(self.weights @ (self.variances + self.means**2))

    def within(self, b: float, V: float) -> float:
        """Pr(|r| <= b)."""
        sd = np.sqrt(self.variances + V)
        return float(self.weights @ (ndtr((b - self.means) / sd) - ndtr((-b - self.means) / sd)))

    def quantile(self, share: float, V: float) -> float:
        """The b with Pr(|r| <= b) = share, for a share in (0, 1)."""
        wide = float(ndtri((1 + share) / 2)) * sqrt(self.variance + V)
        if self.normal:
            return wide
        while self.within(wide, V) < share:
            wide = 2 * wide
        return turning_point(lambda b: self.within(b, V) < share, 0.0, wide, halvings=60)

    @property
    def usual(self) -> float:
        """The error that 19 of 20 answers stay within."""
        # Noise of a few values needs some width to have a quantile.
        return self.quantile(0.95, 0.0 if self.variances.all() else LEAST)

    def clipped(self, b: float, V: float) -> float:
        """E clip(r, -b, b)^2."""
        sd = np.sqrt(self.variances + V)
        low, high = (-b - self.means) / sd, (b - self.means) / sd
        inside = ndtr(high) - ndtr(low)
        square = (
            (self.means**2 + sd**2) * inside
            + 2 * self.means * sd * (_phi(low) - _phi(high))
            + sd**2 * (low * _phi(low) - high * _phi(high))
        )
        return float(self.weights @ (square + b * b * (1 - inside)))

    def information(self, V: float) -> float:
        """Fisher's information about a shift of r."""
        if self.normal:
            return 1 / (float(self.variances[0]) + V)
        sd = np.sqrt(self.variances + max(V, LEAST))
        reach, narrow = float((np.abs(self.means) + TAIL * sd).max()), float(sd.min())
        if self.means.any():
            r = np.arange(-reach, reach, narrow / 3)
            density, slope = self._local(r, sd)
        else:
            # Laws about one place: dense where the narrowest lies, and out to the widest's end.
            r = narrow * np.sinh(np.linspace(-1, 1, POINTS) * np.arcsinh(reach / narrow))
            heights = self.weights * _phi(r[:, None] / sd) / sd
            density, slope = heights.sum(axis=1), (heights * r[:, None] / sd**2).sum(axis=1)
        some = density > 1e-300
        return float(np.trapezoid(slope[some] ** 2 / density[some], r[some]))

    def _local(
        self, r: NDArray[np.float64], sd: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The density at r (g,) and its slope downwards, of laws side by side.

        Each place meets only the laws within the tail: a band of them, not all.
        """
        order = np.argsort(self.means)
        means, weights, sd = self.means[order], self.weights[order], sd[order]
        first = np.searchsorted(means, r - TAIL * sd.max())
        last = np.searchsorted(means, r + TAIL * sd.max())
        at = first[:, None] + np.arange(int((last - first).max()))
        held = at < last[:, None]
        at = np.minimum(at, means.size - 1)
        z = (r[:, None] - means[at]) / sd[at]
        heights = np.where(held, weights[at] * _phi(z) / sd[at], 0.0)
        return heights.sum(axis=1), (heights * z / sd[at]).sum(axis=1)


def _phi(z: NDArray[np.float64]) -> NDArray[np.float64]:
    height: NDArray[np.float64] = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return height


@singledispatch
def law_of(mechanism: Mechanism) -> Law:
    """The law of what a mechanism adds to one count."""
    raise InputError(f"the noise of {type(mechanism).__name__} has no closed form here")


@law_of.register
def _(mechanism: Gaussian) -> Law:
    return _normal(mechanism.sigma**2)


@law_of.register
def _(mechanism: SimulatedDiffix) -> Law:
    # Rounding to whole people adds the variance of a uniform law on [-1/2, 1/2] (Sheppard).
    return _normal(mechanism.sigma**2 + (1 / 12 if mechanism.rounded else 0.0))


@law_of.register
def _(mechanism: Laplace) -> Law:
    # A normal law whose variance is exponential with mean sigma^2; the square root of that
    # variance is smooth at 0, so the nodes are chosen for it.
    nodes, weights = np.polynomial.legendre.leggauss(LAYERS)
    root = 3.5 * (nodes + 1)
    mass = weights * root * np.exp(-(root**2) / 2)
    mass /= mass.sum()
    return Law(mass, np.zeros(LAYERS), mechanism.sigma**2 * root**2 / 2)


@law_of.register
def _(mechanism: Uniform) -> Law:
    _check_values(2 * mechanism.bound + 1)
    return _steps(np.arange(-mechanism.bound, mechanism.bound + 1), None)


@law_of.register
def _(mechanism: RoundedToBase) -> Law:
    base = mechanism.base
    _check_values(base)
    if not mechanism.random:
        # Half of an even base goes up: a constant that all answers share, and nobody gains by.
        return _steps(np.arange(base) - (base - 1) / 2, None)
    # A remainder is 0 .. base - 1 alike; it goes up to the next multiple with chance r/base.
    remainders = np.arange(base)
    moves = np.concatenate([-remainders, base - remainders])
    chances = np.concatenate([1 - remainders / base, remainders / base]) / base
    return _steps(moves[chances > 0], chances[chances > 0])


def _check_values(values: int) -> None:
    if values > MOST_VALUES:
        raise NoPrediction(
            f"an error of {values} values is too wide for the closed form; plan with one of at "
            f"most {MOST_VALUES}, or with normal noise of the same variance"
        )


def _normal(variance: float) -> Law:
    return Law(np.ones(1), np.zeros(1), np.array([variance]))


def _steps(places: NDArray[Any], chances: NDArray[np.float64] | None) -> Law:
    weights = np.full(places.size, 1 / places.size) if chances is None else chances
    return Law(weights, places.astype(np.float64), np.zeros(places.size))
