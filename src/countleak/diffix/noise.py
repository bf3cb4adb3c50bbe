"""The Gaussian of a seed: the same seed draws the same number, here and anywhere."""

import hashlib
from collections.abc import Iterable
from statistics import NormalDist

UNIT = NormalDist()
BITS = 53


def gaussian(seed: int, purpose: str) -> float:
    """A number of mean 0 and SD 1, one of its own for every ``purpose``."""
    drawn = hashlib.sha256(f"{purpose}:{seed:016x}".encode()).digest()
    # The middle of one of 2^53 equal slices: never 0 or 1, where the inverse ends.
    uniform = (int.from_bytes(drawn[:8], "big") >> (64 - BITS)) + 0.5
    return UNIT.inv_cdf(min(uniform / 2**BITS, 1 - 2.0**-BITS))


def total(seeds: Iterable[int], purpose: str, sd: float) -> float:
    """The noise of all layers together, each of SD ``sd``."""
    return sd * sum(gaussian(seed, purpose) for seed in seeds)
