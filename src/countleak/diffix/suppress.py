"""Buckets of too few people are held back, by a threshold that is itself noisy."""

from collections.abc import Iterable
from dataclasses import dataclass

from countleak.diffix.noise import total


@dataclass(frozen=True)
class Threshold:
    """``max(round(mean + sd * sum of the layers' gaussians), least)`` users pass."""

    mean: float = 4.0
    sd: float = 0.5
    least: int = 2

    def draw(self, seeds: Iterable[int]) -> int:
        """The threshold of a bucket with these layers."""
        return max(round(self.mean + total(seeds, "threshold", self.sd)), self.least)
