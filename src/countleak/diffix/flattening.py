"""Sums in which nobody stands out: the largest contributions cut to those that follow.

An outlier count and a top count are drawn from the layers. The outliers, as many largest
contributions, are replaced by the average of the top group that follows them; users who add and
users who subtract are treated apart, and a side that has not as many users is left out. The noise
of a side is as large as what one of its users can change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from countleak.diffix.noise import total

# Of the outlier count and of the top count.
MEAN, SD, LEAST, MOST = 3.0, 0.5, 2, 6
# So many largest contributions are enough for any draw.
TOPS = 2 * MOST


@dataclass(frozen=True)
class Contributions:
    """What users add to a sum: how many there are, their sum, and the largest, descending."""

    users: int = 0
    sum: float = 0.0
    largest: Sequence[float] = ()


@dataclass(frozen=True)
class Flattened:
    """A sum after flattening, what a user adds on ``average``, and one of the ``top`` group."""

    sum: float
    average: float
    top: float
    is_enough: bool

    def sd(self, least: float) -> float:
        """The SD of the noise of one layer, which is no less than ``least``."""
        return max(least, self.average, self.top / 2)


@dataclass(frozen=True)
class Noisy:
    """A noisy number and the SD of its noise; None where too few people are behind it."""

    value: float | None
    sd: float | None


NOTHING = Noisy(None, None)


def flatten(side: Contributions, seeds: Sequence[int]) -> Flattened:
    """The flattened sum of the users of one sign.

    It takes as long where they are not enough: time must not tell how many are suppressed.
    """
    outliers, top = drawn(seeds, "outliers"), drawn(seeds, "top")
    level = sum(side.largest[outliers : outliers + top]) / top
    flat = side.sum - (sum(side.largest[:outliers]) - outliers * level)
    return Flattened(flat, flat / max(side.users, 1), level, side.users >= outliers + top)


def noisy_sum(
    sides: tuple[Contributions, Contributions], seeds: Sequence[int], purpose: str, sd: float
) -> Noisy:
    """The flattened sum of what users add and subtract, each side with noise of its own."""
    value, spread, is_any = 0.0, 0.0, False
    for sign, side, mark in zip((1, -1), sides, ("", " below 0"), strict=True):
        flat = flatten(side, seeds)
        noisy = sign * flat.sum + total(seeds, purpose + mark, flat.sd(sd))
        if flat.is_enough:
            value, is_any = value + noisy, True
            spread = hypot(spread, flat.sd(sd) * sqrt(len(seeds)))
    return Noisy(value, spread) if is_any else NOTHING


def drawn(seeds: Sequence[int], purpose: str) -> int:
    """The outlier count or the top count that the layers draw."""
    return min(max(round(MEAN + total(seeds, purpose, SD)), LEAST), MOST)
