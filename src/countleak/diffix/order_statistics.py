"""Minimum, maximum and median in which nobody stands out: averages of several users' values.

Of the largest values, one per user, as many outliers as for a sum are left out, and the answer is
the average of the top group that follows them. The median is the average of as many users' values
as the top group has on each side of the middle. Where not as many others as outliers are left at
either end, there is no answer. The noise is half the spread of the averaged values per layer: where
enough people share a value, it is the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from countleak.diffix.flattening import NOTHING, Noisy, drawn
from countleak.diffix.noise import total


@dataclass(frozen=True)
class Ranked:
    """How many users there are, and some of their values, descending."""

    users: int = 0
    values: Sequence[float] = ()


def noisy_largest(ranked: Ranked, seeds: Sequence[int], purpose: str) -> Noisy:
    """The noisy maximum of users' values, of which the largest are given."""
    outliers, top = drawn(seeds, "outliers"), drawn(seeds, "top")
    values = [*ranked.values, *[0.0] * (outliers + top)][outliers : outliers + top]
    noisy = _noisy_average(values, seeds, purpose)
    return noisy if ranked.users >= 2 * outliers + top else NOTHING


def noisy_median(ranked: Ranked, seeds: Sequence[int], purpose: str) -> Noisy:
    """The noisy median of users' values, of which those around the middle are given."""
    outliers, top = drawn(seeds, "outliers"), drawn(seeds, "top")
    is_enough = ranked.users >= 2 * (outliers + top)
    values = ranked.values if is_enough else [0.0] * (2 * top)
    half = len(values) // 2
    noisy = _noisy_average(values[half - top : len(values) - half + top], seeds, purpose)
    return noisy if is_enough else NOTHING


def _noisy_average(values: Sequence[float], seeds: Sequence[int], purpose: str) -> Noisy:
    """Their noisy average; computed of zeros, too, where time must not tell that they are few."""
    sd = pstdev(values) / 2
    return Noisy(fmean(values) + total(seeds, purpose, sd), sd * len(seeds) ** 0.5)
