"""How a system turns a true count into an answer: as its operator states it, or as inferred.

    released    a = round(s + offset + noise)    noise normal, Laplace or a mixture, of SD sigma_g,
                                                 g the group of the query; uniform within ± bound;
                                                 or none; rounded to multiples of ``base``
                or anything at all, with probability ``wrong``
    clamped     a = floor where the above is less than ``floor``, and ceiling where it is more
    suppressed  where s lies in a ``Range``, or below a ``Threshold`` drawn per query; or ``Below``,
                where a would have been less

``Noise`` holds the parameters, ``log_released`` and its companions say how likely an answer is. A
parameter that must be estimated is ``UNKNOWN``; an effect that is absent is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from countleak.attack.covariance import Shared
from countleak.attack.mixture import Mixture
from countleak.errors import InputError

# A grossly wrong answer lies anywhere within this many people of the truth, or this many SDs.
WRONG_SPREAD, WRONG_SDS = 200.0, 20.0
# Noise smaller than this is none next to whole counts; larger than this it hides any population.
LEAST_SIGMA, LARGEST_SIGMA = 1e-3, 1e10
# Uniform noise and rounding beyond this many people are not reckoned with.
LARGEST_STEP = 2000
# The likelihood of what a threshold rules out: small, but no proof, for thresholds are guessed.
RULED_OUT = -30.0
# An answer beyond its bound is impossible; that it costs this much per person beyond, instead of
# everything, shows a sampler the way back.
BEYOND = 10.0
# Steps in which noise that is not whole is reckoned with.
FINE = 1001
# What whole answers are off by that were rounded down, next to those rounded to the nearest.
DOWN = -0.5


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
    MIXTURE = "mixed"
    UNIFORM = "uniform"
    EXACT = "exact"


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


@dataclass(frozen=True)
class Range:
    """Counts from ``low`` to ``high`` are suppressed, and no others: 1 to 2 shows the zeros."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise InputError(
                f"counts from {self.low} to {self.high} are suppressed; write the lower one first, "
                "0 or more"
            )

    def log_suppressed(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """log Pr(suppressed) for true counts."""
        beyond = np.maximum(self.low - counts, counts - self.high)
        return np.asarray(-BEYOND * np.maximum(beyond, 0.0))

    def log_released(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """log Pr(not suppressed) for true counts."""
        inside = np.minimum(counts - self.low, self.high - counts) + 1
        return np.asarray(-BEYOND * np.maximum(inside, 0.0))


@dataclass(frozen=True)
class Below:
    """Answers that would come out below ``answer``, noise included, are suppressed."""

    answer: float


Suppression = Threshold | Range | Below


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
    of each query, 0, 1, ..., None where all share one. ``offset`` is what all answers are off by;
    where it is unknown, those about each value of a secret have their own. ``wrong`` is the share
    of answers that have nothing to do with their count. ``floor`` is the lowest answer given,
    ``ceiling`` the highest, and ``threshold`` says what is suppressed, None where there is none.
    ``bound`` is that of uniform noise, ``mixture`` the parts of a mixture; answers are rounded to
    the nearest multiple of ``base``, or up or down by chance, so that the mean is right, with
    ``random_rounding``.

    ``shared`` is the noise that answers have in common, and ``per_person`` the SD of an error that
    a person brings to every count, in people; both are modelled where noise is Gaussian. Elsewhere
    ``effective``, from 0 to 1, is how much an answer says next to one with noise of its own.
    """

    sigma: float | tuple[float, ...] | Unknown = UNKNOWN
    offset: float | Unknown = 0.0
    wrong: float | Unknown = 0.0
    groups: NDArray[np.int64] | None = None
    shape: Shape = Shape.GAUSSIAN
    floor: float | None = None
    ceiling: float | None = None
    threshold: Suppression | None = None
    bound: float | None = None
    mixture: Mixture | None = None
    base: int = 1
    random_rounding: bool = False
    shared: tuple[Shared, ...] = ()
    per_person: float | Unknown = 0.0
    effective: float = 1.0

    def __post_init__(self) -> None:
        self._check_law()
        scales = () if self.sigma is UNKNOWN else np.atleast_1d(self.sigma)
        for sigma in scales:
            check_sigma(sigma)
        if self.offset is not UNKNOWN and not np.isfinite(self.offset):
            raise InputError(f"the offset is {self.offset:g}; it must be finite")
        if self.wrong is not UNKNOWN and not 0 <= self.wrong < 1:
            raise InputError(f"the share of wrong answers is {self.wrong:g}; it lies in [0, 1)")
        if self.per_person is not UNKNOWN and not 0 <= self.per_person <= LARGEST_SIGMA:
            raise InputError(f"the error per person is {self.per_person:g}; it is an SD, 0 or more")
        if not 0 < self.effective <= 1:
            raise InputError(f"answers say {self.effective:g} of their worth; it lies in (0, 1]")
        if self.groups is not None and len(scales) not in (0, 1, int(self.groups.max()) + 1):
            raise InputError(f"{self.groups.max() + 1} groups of queries but {len(scales)} sigmas")

    def _check_law(self) -> None:
        if (self.shape is Shape.UNIFORM) != (self.bound is not None):
            raise InputError("uniform noise needs a bound, and no other noise has one")
        if (self.shape is Shape.MIXTURE) != (self.mixture is not None):
            raise InputError("mixed noise needs its parts, and no other noise has any")
        if self.bound is not None and not 0 < self.bound <= LARGEST_STEP:
            raise InputError(
                f"the bound is {self.bound:g}; it must lie above 0, at most {LARGEST_STEP}"
            )
        if not 1 <= self.base <= LARGEST_STEP:
            raise InputError(
                f"answers are multiples of {self.base}; write a number from 1 to {LARGEST_STEP}"
            )
        if self.random_rounding and self.reach is None:
            raise InputError(f"{self.shape.value} noise is rounded to the nearest multiple only")
        if self.reach is not None and self.sigma is UNKNOWN:
            # A bounded law has no scale to estimate: its SD follows from the bound.
            object.__setattr__(self, "sigma", max(self.reach / np.sqrt(3), LEAST_SIGMA))

    @property
    def reach(self) -> float | None:
        """How far an answer can be from its count, in people; None where there is no bound."""
        if self.shape not in (Shape.UNIFORM, Shape.EXACT):
            return None
        bound = self.bound or 0
        if self.base == 1:
            # Answers may be rounded to whole people, or not at all.
            return max(bound, int(bound + 0.5))
        # Answers are whole, so that what lies between two multiples does not count.
        return ceil(bound + self.base) - 1 if self.random_rounding else int(bound + self.base / 2)

    @property
    def clamps(self) -> bool:
        """Whether answers are raised or lowered to a limit."""
        return self.floor is not None or self.ceiling is not None

    @property
    def group_count(self) -> int:
        """How many groups of queries have a noise of their own."""
        return 1 if self.groups is None else int(self.groups.max()) + 1


@dataclass(frozen=True, eq=False)
class Values:
    """Values of all that may be unknown of a Noise: ``sigma`` (g,), ``offsets`` (p,), ``wrong``.

    The answers about each of p values of a secret have an offset of their own; those about a bit
    have one. ``per_person`` is the SD of an error that everyone brings to every count, ``per_one``
    that of one that only whoever counts brings, and ``twice`` how many people are counted twice.
    """

    sigma: NDArray[np.float64]
    offsets: NDArray[np.float64]
    wrong: float
    per_person: float = 0.0
    per_one: float = 0.0
    twice: float = 0.0

    def __post_init__(self) -> None:
        # A single offset may be given as a number.
        object.__setattr__(self, "offsets", np.atleast_1d(np.asarray(self.offsets, np.float64)))

    @property
    def offset(self) -> float:
        """What answers are off by, on average over the values that they are about."""
        return float(self.offsets.mean())

    def about(self, v: int, groups: NDArray[np.int64]) -> "Values":
        """Those of the answers about value v in these groups."""
        return Values(self.sigma[groups], self.offsets[v : v + 1], self.wrong, self.per_person)

    @property
    def has_errors_per_person(self) -> bool:
        """Whether people bring anything to a count besides their bit."""
        return max(self.per_person, self.per_one, self.twice) > 0


def mean_values(draws: Sequence[Values]) -> Values:
    """What draws of the same noise say on average."""
    return Values(
        np.mean([v.sigma for v in draws], axis=0),
        np.mean([v.offsets for v in draws], axis=0),
        float(np.mean([v.wrong for v in draws])),
        float(np.mean([v.per_person for v in draws])),
        float(np.mean([v.per_one for v in draws])),
        float(np.mean([v.twice for v in draws])),
    )


def log_released(
    residual: NDArray[np.float64], values: Values, noise: Noise, whole: bool
) -> NDArray[np.float64]:
    """log Pr(answer) (g, k) of answers less counts (k,), for each group.

    ``whole`` answers were rounded to whole people; for others this is a density.
    """
    away, sigma = (residual - values.offset)[None, :], values.sigma[:, None]
    if noise.reach is not None:
        log = np.broadcast_to(_log_bounded(np.abs(away), noise), (sigma.size, residual.size))
    elif noise.mixture is not None:
        log = logsumexp(
            [
                np.log(part.weight)
                + _log_law(np.abs(away - part.centre * sigma), part.scale * sigma, noise, whole)
                for part in noise.mixture.parts
            ],
            axis=0,
        )
    else:
        log = _log_law(np.abs(away), sigma, noise, whole)
    if values.wrong > 0:
        # However large the noise, what is wrong lies further out than it.
        spread = np.maximum(WRONG_SPREAD, WRONG_SDS * sigma)
        log = np.logaddexp(np.log1p(-values.wrong) + log, np.log(values.wrong) - np.log(spread))
    return np.asarray(log, dtype=np.float64)


def _log_law(
    away: NDArray[np.float64], sigma: NDArray[np.float64], noise: Noise, whole: bool
) -> NDArray[np.float64]:
    """log Pr(noise = away), of one normal or Laplace law."""
    if whole:
        return _log_between(away - noise.base / 2, away + noise.base / 2, sigma, noise.shape)
    if noise.shape is Shape.LAPLACE:
        return np.asarray(-np.sqrt(2) * away / sigma - np.log(np.sqrt(2) * sigma))
    return np.asarray(-0.5 * (away / sigma) ** 2 - np.log(np.sqrt(2 * np.pi) * sigma))


def _log_bounded(away: NDArray[np.float64], noise: Noise) -> NDArray[np.float64]:
    """log Pr(noise and rounding = away); beyond the reach it falls by BEYOND per person."""
    reach, bound = noise.reach or 0.0, noise.bound or 0
    # Noise within a whole bound is whole; any other is as fine as needed.
    added = np.linspace(-bound, bound, 1 + int(2 * bound) if bound == int(bound) else FINE)
    left = np.abs(np.arange(int(reach) + 1)[:, None] - added)
    if noise.random_rounding:
        rounding = np.maximum(1 - left / noise.base, 0.0)
    else:
        # Half a base may go either way.
        rounding = np.where(left == noise.base / 2, 0.5, 1.0 * (left < noise.base / 2))
    chance = np.log(np.maximum(rounding.mean(axis=1), np.exp(RULED_OUT)))
    inside = np.minimum(np.ceil(away - 1e-9), int(reach)).astype(np.int64)
    return np.asarray(chance[inside] - BEYOND * np.maximum(away - reach, 0.0))


def log_at_most(distance: NDArray[np.float64], values: Values, noise: Noise) -> NDArray[np.float64]:
    """log Pr(noise <= distance) (g, k): what an answer clamped from below says."""
    return _log_tail(-distance[None, :], values, noise, -1)


def log_at_least(
    distance: NDArray[np.float64], values: Values, noise: Noise
) -> NDArray[np.float64]:
    """log Pr(noise >= distance) (g, k): what an answer clamped from above says."""
    return _log_tail(distance[None, :], values, noise, 1)


def _log_tail(
    away: NDArray[np.float64], values: Values, noise: Noise, side: int
) -> NDArray[np.float64]:
    """log Pr(side * noise >= away) (g, k)."""
    sigma = values.sigma[:, None]
    if noise.reach is not None:
        # Of the whole numbers within the reach, those that are no less.
        whole = np.ceil(away)
        beyond = np.maximum(whole - noise.reach, 0.0)
        share = np.clip((noise.reach + 1 - whole) / (2 * noise.reach + 1), 1e-3, 1.0)
        return np.broadcast_to(np.log(share) - BEYOND * beyond, (sigma.size, away.size))
    centred = away - side * values.offset
    if noise.mixture is None:
        return _log_above(centred, sigma, noise.shape)
    parts = [
        np.log(part.weight)
        + _log_above(centred - side * part.centre * sigma, part.scale * sigma, noise.shape)
        for part in noise.mixture.parts
    ]
    return np.asarray(logsumexp(parts, axis=0))


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
