"""How a system turns a true count into an answer, as an attacker believes it does.

    released    a = round(s + offset + N(0, sigma_g))     with g the group of the query
                or anything at all, with probability ``wrong``
    clamped     a = floor where the above is less than ``floor``
    suppressed  where s < max(minimum, N(mean, sd))       the system's threshold, drawn per query

``Noise`` holds the parameters, ``log_released`` and its companions say how likely an answer is. A
parameter that must be estimated is ``UNKNOWN``; an effect that is absent is None.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from countleak.errors import InputError

# A grossly wrong answer lies anywhere within this many people of the truth.
WRONG_SPREAD = 200.0
# Noise smaller than this is none next to whole counts; larger than this it hides any population.
LEAST_SIGMA, LARGEST_SIGMA = 1e-3, 1e10
# The likelihood of what a threshold rules out: small, but no proof, for thresholds are guessed.
RULED_OUT = -30.0


class Unknown(Enum):
    """The type of ``UNKNOWN``, which stands for a parameter to be estimated."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown.UNKNOWN


class Shape(Enum):
    """The law of a noise."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    UNIFORM = "uniform"
    ROUNDED = "rounded"


@dataclass(frozen=True)
class Threshold:
    """Counts below ``max(minimum, N(mean, sd))`` are suppressed; Diffix's by default."""

    mean: float = 4.0
    sd: float = 0.5
    minimum: float = 2.0

    def __post_init__(self) -> None:
        if not (0 < self.sd < np.inf and np.isfinite(self.mean) and np.isfinite(self.minimum)):
            raise InputError(f"{self}: mean, SD and minimum must be finite, and the SD above 0")
        if not 0 < self.mean <= LARGEST_SIGMA:
            raise InputError(
                f"the threshold is {self.mean:g}; it must lie above 0, at most {LARGEST_SIGMA:g}"
            )

    def log_suppressed(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """log Pr(suppressed) for true counts."""
        chance = log_ndtr((self.mean - counts) / self.sd)
        return np.maximum(np.where(counts < self.minimum, 0.0, chance), RULED_OUT)

    def log_released(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """log Pr(not suppressed) for true counts."""
        chance = log_ndtr((counts - self.mean) / self.sd)
        return np.maximum(np.where(counts < self.minimum, RULED_OUT, chance), RULED_OUT)


def check_sigma(sigma: float, least: float = LEAST_SIGMA) -> None:
    """Raise unless a noise's SD can be reckoned with."""
    if not least <= sigma <= LARGEST_SIGMA:
        raise InputError(
            f"sigma is {float(sigma)}; it must lie between {least:g} and {LARGEST_SIGMA:g}"
        )


@dataclass(frozen=True, eq=False)
class Noise:
    """What is known or assumed of a system's noise; what is ``UNKNOWN`` will be estimated.

    ``sigma`` is a standard deviation in people, or one per group; ``groups`` (m,) gives the group
    of each query, 0, 1, ..., None where all share one. ``offset`` is what all answers are off by,
    ``wrong`` the share of answers that have nothing to do with their count. ``floor`` is the
    lowest answer given and ``threshold`` that of suppression, None where there is none.
    """

    sigma: float | tuple[float, ...] | Unknown = UNKNOWN
    offset: float | Unknown = 0.0
    wrong: float | Unknown = 0.0
    groups: NDArray[np.int64] | None = None
    shape: Shape = Shape.GAUSSIAN
    floor: float | None = None
    threshold: Threshold | None = None

    def __post_init__(self) -> None:
        scales = () if self.sigma is UNKNOWN else np.atleast_1d(self.sigma)
        for sigma in scales:
            check_sigma(sigma)
        if self.offset is not UNKNOWN and not np.isfinite(self.offset):
            raise InputError(f"the offset is {self.offset:g}; it must be finite")
        if self.wrong is not UNKNOWN and not 0 <= self.wrong < 1:
            raise InputError(f"the share of wrong answers is {self.wrong:g}; it lies in [0, 1)")
        if self.shape not in (Shape.GAUSSIAN, Shape.LAPLACE):
            raise InputError(
                f"{self.shape.value} noise has a bound, not a likelihood; decode it as bounded"
            )
        if self.groups is not None and len(scales) not in (0, 1, int(self.groups.max()) + 1):
            raise InputError(f"{self.groups.max() + 1} groups of queries but {len(scales)} sigmas")

    @property
    def group_count(self) -> int:
        """How many groups of queries have a noise of their own."""
        return 1 if self.groups is None else int(self.groups.max()) + 1


@dataclass(frozen=True, eq=False)
class Values:
    """Values of all that may be unknown of a Noise: ``sigma`` (g,), ``offset``, ``wrong``."""

    sigma: NDArray[np.float64]
    offset: float
    wrong: float


def log_released(
    residual: NDArray[np.float64], values: Values, shape: Shape, whole: bool
) -> NDArray[np.float64]:
    """log Pr(answer) (g, k) of answers less counts (k,), for each group.

    ``whole`` answers were rounded to whole people; for others this is a density.
    """
    away = np.abs(residual - values.offset)[None, :]
    sigma = values.sigma[:, None]
    if whole:
        log = _log_between(away - 0.5, away + 0.5, sigma, shape)
    elif shape is Shape.LAPLACE:
        log = -np.sqrt(2) * away / sigma - np.log(np.sqrt(2) * sigma)
    else:
        log = -0.5 * (away / sigma) ** 2 - np.log(np.sqrt(2 * np.pi) * sigma)
    if values.wrong > 0:
        log = np.logaddexp(
            np.log1p(-values.wrong) + log, np.log(values.wrong) - np.log(WRONG_SPREAD)
        )
    return np.asarray(log, dtype=np.float64)


def log_at_most(distance: NDArray[np.float64], values: Values, shape: Shape) -> NDArray[np.float64]:
    """log Pr(noise <= distance) (g, k): what an answer clamped from below says."""
    return _log_above(values.offset - distance[None, :], values.sigma[:, None], shape)


def _log_between(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    sigma: NDArray[np.float64],
    shape: Shape,
) -> NDArray[np.float64]:
    """log Pr(low < noise <= high), where low + high >= 0, so that tails keep their digits."""
    above_low, above_high = _log_above(low, sigma, shape), _log_above(high, sigma, shape)
    # Far out both are -inf to within rounding; their difference is bounded away from zero.
    share = -np.expm1(np.minimum(above_high - above_low, -1e-12))
    return np.asarray(above_low + np.log(share), dtype=np.float64)


def _log_above(
    away: NDArray[np.float64], sigma: NDArray[np.float64], shape: Shape
) -> NDArray[np.float64]:
    """log Pr(noise > away)."""
    if shape is Shape.LAPLACE:
        steps = np.sqrt(2) * away / sigma
        tail = -np.abs(steps) - np.log(2)
        log = np.where(steps >= 0, tail, np.log1p(-np.exp(tail)))
    else:
        log = log_ndtr(-away / sigma)
    return np.asarray(log, dtype=np.float64)
