"""Sums in which nobody stands out: the largest contributions cut to those that follow.

An outlier count and a top count are drawn from the layers. The outliers, as many largest
contributions, are replaced by the average of the top group that follows them; users who add and
users who subtract are treated apart. Noise is scaled to what one user can change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from countleak.diffix.noise import total

# Of the outlier count and of the top count.
MEAN, SD, LEAST, MOST = 3.0, 0.5, 2, 6
# So many largest contributions are enough for any draw.
TOPS = 2 * MOST


@dataclass(frozen=True)
class Contributions:
    """What users add to a sum: how many add something, their sum, and the largest, descending."""

    users: int
    sum: float
    largest: Sequence[float]


@dataclass(frozen=True)
class Flattened:
    """A sum after flattening, and the ``scale`` of its noise."""

    sum: float
    scale: float


def flatten(side: Contributions, seeds: Sequence[int]) -> Flattened:
    """The flattened sum of the users of one sign."""
    outliers, top = _drawn(seeds, "outliers"), _drawn(seeds, "top")
    if side.users < outliers + top:
        # Too few to tell who stands out: they shrink in proportion, at least one of each.
        outliers = min(outliers, max(side.users // 2, 0))
        top = side.users - outliers
    if top <= 0:
        return Flattened(0.0, 0.0)
    group = side.largest[outliers : outliers + top]
    level = sum(group) / len(group)
    cut = sum(side.largest[:outliers]) - outliers * level
    flat = side.sum - cut
    return Flattened(flat, max(flat / side.users, level / 2))


def _drawn(seeds: Sequence[int], purpose: str) -> int:
    return min(max(round(MEAN + total(seeds, purpose, SD)), LEAST), MOST)
