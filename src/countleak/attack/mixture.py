"""Noise of any shape as a mixture of normal laws: two humps, one long tail, now and then exact.

    noise = offset + sigma (centre_k + scale_k z),   z normal, part k with probability weight_k

The parts have mean 0 and variance 1 together, so that offset and sigma mean what they mean
elsewhere. They are fitted to residuals by expectation-maximisation (Dempster, Laird and Rubin
1977), and as many are kept as pay for themselves (Schwarz 1978).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from countleak.errors import InputError

MOST_PARTS = 4
ROUNDS = 200
# No part is narrower, in people: a density of more than 1 would promise whole residuals more than
# there is.
NARROWEST = 0.4
# No part is rarer: a handful of answers is no law.
RAREST = 0.02


@dataclass(frozen=True)
class Part:
    """One normal law of a mixture; ``centre`` and ``scale`` in units of the SD of the whole."""

    weight: float
    centre: float
    scale: float


@dataclass(frozen=True)
class Mixture:
    """Parts that have mean 0 and variance 1 together."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if abs(sum(part.weight for part in self.parts) - 1) > 1e-6:
            raise InputError(f"{self}: the weights of the parts must add up to 1")

    def __str__(self) -> str:
        return " and ".join(
            f"{part.weight:.0%} around {part.centre:+.1f} (SD {part.scale:.1f})"
            for part in self.parts
        )


@dataclass(frozen=True)
class FittedMixture:
    """A mixture and how well it explains the residuals it was fitted to.

    ``gain`` is the log-likelihood that it adds to one normal law, less the ``price`` of its
    parameters.
    """

    mixture: Mixture
    gain: float
    price: float


def fit_mixture(distance: NDArray[np.float64], often: NDArray[np.float64]) -> FittedMixture:
    """The mixture that residuals ``distance`` (k,), in people, met so ``often`` (k,), speak for."""
    there = often > 0
    x, w = distance[there], often[there]
    total = float(w.sum())
    mean = float(w @ x) / total
    sigma = max(float(np.sqrt(w @ (x - mean) ** 2 / total)), NARROWEST)
    alone = _Parts(np.ones(1), np.array([mean]), np.array([sigma]))
    plain = alone.likelihood(x, w)
    best = FittedMixture(alone.standardised(mean, sigma), 0.0, 0.0)
    for start in _starts(x, w, mean, sigma):
        parts = _climb(start, x, w)
        # Each part beyond the first has a weight, a centre and a scale.
        price = 1.5 * (parts.weight.size - 1) * float(np.log(max(total, 2.0)))
        gain = parts.likelihood(x, w) - plain - price
        if gain > best.gain:
            best = FittedMixture(parts.standardised(mean, sigma), gain, price)
    return best


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts in people: weights, centres and scales, each (p,)."""

    weight: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]

    def logs(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log-density (p, k) of each part, with its weight."""
        away = (x - self.centre[:, None]) / self.scale[:, None]
        height = np.log(self.weight / (np.sqrt(2 * np.pi) * self.scale))
        return np.asarray(height[:, None] - 0.5 * away**2)

    def likelihood(self, x: NDArray[np.float64], w: NDArray[np.float64]) -> float:
        return float(w @ logsumexp(self.logs(x), axis=0))

    def standardised(self, mean: float, sigma: float) -> Mixture:
        """The same with mean 0 and variance 1, up to the narrowest scale."""
        order = np.argsort(self.centre, kind="stable")
        return Mixture(
            tuple(
                Part(float(w), float((c - mean) / sigma), float(s / sigma))
                for w, c, s in zip(
                    self.weight[order], self.centre[order], self.scale[order], strict=True
                )
            )
        )


def _starts(
    x: NDArray[np.float64], w: NDArray[np.float64], mean: float, sigma: float
) -> Iterator[_Parts]:
    """Parts of unequal scales around one centre, and parts side by side."""
    order = np.argsort(x, kind="stable")
    share = np.cumsum(w[order]) / w.sum()
    for count in range(2, MOST_PARTS + 1):
        even = np.full(count, 1 / count)
        yield _Parts(even, np.full(count, mean), sigma * np.geomspace(0.3, 1.6, count))
        quantiles = np.searchsorted(share, (np.arange(count) + 0.5) / count)
        yield _Parts(even, x[order][quantiles], np.full(count, max(sigma / count, NARROWEST)))


def _climb(parts: _Parts, x: NDArray[np.float64], w: NDArray[np.float64]) -> _Parts:
    """Parts that explain x better and better, until no more."""
    total, before = float(w.sum()), -np.inf
    for _ in range(ROUNDS):
        logs = parts.logs(x)
        whole = logsumexp(logs, axis=0)
        now = float(w @ whole)
        if now - before < 1e-3:
            break
        before = now
        shares = np.exp(logs - whole) * w
        held = shares.sum(axis=1)
        kept = held > RAREST * total
        if not kept.any():
            break
        shares, held = shares[kept], held[kept]
        centre = shares @ x / held
        spread = (shares * (x - centre[:, None]) ** 2).sum(axis=1) / held
        scale = np.maximum(np.sqrt(spread), NARROWEST)
        parts = _Parts(held / held.sum(), centre, scale)
    return parts
