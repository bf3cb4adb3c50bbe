"""Intervals at 95% for what was measured in worlds: people of one world are not independent.

mean    Student's interval for the mean of one figure per world
rate    Korn and Graubard (Survey Methodology 24, 1998): the exact binomial interval of
Clopper and Pearson, for as many claims as are worth independent ones. With k_w right
of c_w claims in W worlds, r = sum k / sum c and the linearised variance
v = W/(W - 1) sum (k_w - r c_w)^2 / (sum c)^2, they are r (1 - r)/v, at most sum c,
times (z/t)^2 for a variance that is estimated from W worlds
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, t

LEVEL = 0.95
UPPER = (1 + LEVEL) / 2


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it."""

    estimate: float
    low: float
    high: float

    def reaches(self, low: float, high: float) -> bool:
        """Whether some of it lies between ``low`` and ``high``, to within rounding errors."""
        return self.low <= high + 1e-9 and self.high >= low - 1e-9

    def __str__(self) -> str:
        return f"{self.estimate:.3f} (95% interval {self.low:.3f} to {self.high:.3f})"


def mean_interval(values: NDArray[np.float64]) -> Interval | None:
    """The mean of a figure per world (W,), with its interval; missing for fewer than two worlds."""
    if values.size < 2:
        return None
    mean = float(values.mean())
    half = float(t.ppf(UPPER, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    return Interval(mean, mean - half, mean + half)


def rate_interval(right: NDArray[np.int64], claims: NDArray[np.int64]) -> Interval | None:
    """The share of claims that are right, from ``right`` of ``claims`` per world, both (W,).

    Missing where nothing was claimed. Where all claims are right, or all wrong, nothing says how
    alike those of a world are: they are then worth one claim per world.
    """
    made = claims > 0
    k, c = right[made].astype(np.float64), claims[made].astype(np.float64)
    if not c.size:
        return None
    rate = float(k.sum() / c.sum())
    size = _independent_claims(rate, k, c)
    low = float(beta.ppf(1 - UPPER, rate * size, (1 - rate) * size + 1)) if rate > 0 else 0.0
    high = float(beta.ppf(UPPER, rate * size + 1, (1 - rate) * size)) if rate < 1 else 1.0
    return Interval(rate, low, high)


def _independent_claims(rate: float, k: NDArray[np.float64], c: NDArray[np.float64]) -> float:
    """How many independent claims tell as much about their rate as these do."""
    total, worlds = float(c.sum()), c.size
    if rate in (0.0, 1.0):
        # As many worlds as there are, fewer where a few of them make most of the claims (Kish).
        return total**2 / float((c**2).sum())
    if worlds == 1:
        return total
    variance = worlds / (worlds - 1) * float(((k - rate * c) ** 2).sum()) / total**2
    widened = float((norm.ppf(UPPER) / t.ppf(UPPER, worlds - 1)) ** 2)
    # Worlds that scatter less than independent claims would do so by chance.
    return min(total, rate * (1 - rate) / variance if variance else total) * widened
