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

    def sd(self, least: float) -> float:
        """The SD of the noise of one layer, which is no less than ``least``."""
        return max(least, self.average, self.top / 2)


@dataclass(frozen=True)
class Noisy:
    """A noisy number and the SD of its noise; None where too few people are behind it."""

    value: float | None
    sd: float | None


NOTHING = Noisy(None, None)


def flatten(side: Contributions, seeds: Sequence[int]) -> Flattened | None:
    """The flattened sum of the users of one sign; None where there are too few of them."""
    outliers, top = drawn(seeds, "outliers"), drawn(seeds, "top")
    if side.users < outliers + top:
        return None
    level = sum(side.largest[outliers : outliers + top]) / top
    flat = side.sum - (sum(side.largest[:outliers]) - outliers * level)
    return Flattened(flat, flat / side.users, level)


def noisy_sum(
    sides: tuple[Contributions, Contributions], seeds: Sequence[int], purpose: str, sd: float
) -> Noisy:
    """The flattened sum of what users add and subtract, each side with noise of its own."""
    value, spread = 0.0, 0.0
    flattened = [flatten(side, seeds) for side in sides]
    for sign, side, mark in zip((1, -1), flattened, ("", " below 0"), strict=True):
        if side is not None:
            value += sign * side.sum + total(seeds, purpose + mark, side.sd(sd))
            spread = hypot(spread, side.sd(sd) * sqrt(len(seeds)))
    return NOTHING if flattened == [None, None] else Noisy(value, spread)


def drawn(seeds: Sequence[int], purpose: str) -> int:
    """The outlier count or the top count that the layers draw."""
    return min(max(round(MEAN + total(seeds, purpose, SD)), LEAST), MOST)
