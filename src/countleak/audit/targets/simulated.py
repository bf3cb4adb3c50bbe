"""Simulated targets: true counts through a mechanism that adds noise and suppresses.

Every draw for a query depends on the seed and on the query's position alone, so a run replays
bit for bit, whole or resumed. Each part of a mechanism draws from a stream of its own: switching
one off leaves the others as they were.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.signs import two_subsets
from countleak.attack.transcript import Answers
from countleak.audit.people import Condition, People, Total
from countleak.errors import InputError


class Mechanism(Protocol):
    """What turns true counts into released answers."""

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        """The answers to counts (m,), each drawn by its position."""
        ...


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise InputError(f"{name} is {value:g}; it must be a number above 0")


@dataclass(frozen=True)
class SimulatedDiffix:
    """The authors' simulation of Diffix, each part with a switch.

    A count below a threshold ``max(2, N(4, 0.5))``, drawn a query, is suppressed; any other is
    answered ``max(0, count + round(N(0, sigma)))``.
    """

    sigma: float = 4.0
    rounded: bool = True
    suppressing: bool = True
    clamped: bool = True
    threshold_mean: float = 4.0
    threshold_sd: float = 0.5
    threshold_minimum: float = 2.0

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        noise_seed, threshold_seed = seed.spawn(2)
        noise = np.random.default_rng(noise_seed).normal(0.0, self.sigma, counts.shape)
        values = counts + (np.round(noise) if self.rounded else noise)
        drawn = np.random.default_rng(threshold_seed).normal(
            self.threshold_mean, self.threshold_sd, counts.shape
        )
        low = counts < np.maximum(self.threshold_minimum, drawn)
        released = ~low if self.suppressing else np.ones_like(low)
        return Answers.to_all(np.maximum(0.0, values) if self.clamped else values, released)


@dataclass(frozen=True)
class Gaussian:
    """Counts with independent noise N(0, sigma), nothing rounded, nothing suppressed."""

    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        rng = np.random.default_rng(seed)
        return Answers.to_all(counts + rng.normal(0.0, self.sigma, counts.shape))


@dataclass(frozen=True)
class Laplace:
    """Counts with independent Laplace noise of standard deviation sigma (scale sigma/sqrt 2).

    An epsilon-differentially private count has sigma = sqrt(2)/epsilon.
    """

    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        rng = np.random.default_rng(seed)
        return Answers.to_all(counts + rng.laplace(0.0, self.sigma / np.sqrt(2), counts.shape))


@dataclass(frozen=True)
class BoundedUniform:
    """Counts with independent whole-number noise, uniform on [-bound, bound]."""

    bound: int

    def __post_init__(self) -> None:
        if self.bound < 1:
            raise InputError(f"bound is {self.bound}; uniform noise needs a bound of at least 1")

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        rng = np.random.default_rng(seed)
        return Answers.to_all(counts + rng.integers(-self.bound, self.bound + 1, counts.shape))


@dataclass(frozen=True)
class RoundedToBase:
    """Counts rounded to the nearest multiple of ``base``, as statistical offices do (3, 5, 10).

    ``random`` rounds up or down by chance so that the expectation is the true count.
    """

    base: int
    random: bool = False

    def __post_init__(self) -> None:
        if self.base < 2:
            raise InputError(f"base is {self.base}; rounding needs a base of at least 2")

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        draws = np.random.default_rng(seed).random(counts.shape) if self.random else 0.5
        return Answers.to_all(self.base * np.floor(counts / self.base + draws))


@dataclass(frozen=True)
class TwoSubsets:
    """A system that only counts subsets: a sign query costs it two answers, q - q^c.

    The difference carries the noise of both; it is suppressed when either half is.
    """

    mechanism: Mechanism

    def answer(
        self, queries: Queries, secret: NDArray[np.float64], seed: np.random.SeedSequence
    ) -> Answers:
        """The answers to sign queries about a secret (n,)."""
        if queries.family != "signs":
            raise InputError(
                f"{queries.family} queries are counts already; only ±1 queries are two"
            )
        plus, minus = (
            self.mechanism.release(part.dot(secret), half)
            for part, half in zip(two_subsets(queries), seed.spawn(2), strict=True)
        )
        return Answers.to_all(plus.values - minus.values, plus.released & minus.released)


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated system over ``people``, counting those for whom ``condition`` holds.

    Given a Total in its place it adds up numbers, and the mechanism's noise is in their units.
    Without either it counts who is there at all. An id it does not hold counts as nobody.
    """

    people: People
    condition: Condition | Total | None
    mechanism: Mechanism | TwoSubsets
    seed: int | tuple[int, ...] = 0

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Answer everything in one batch."""
        secret = self._secret(queries.ids)
        seed = np.random.SeedSequence(self.seed)
        if isinstance(self.mechanism, TwoSubsets):
            answers = self.mechanism.answer(queries, secret, seed)
        else:
            answers = self.mechanism.release(queries.dot(secret), seed)
        yield Answers(positions, answers.values[positions], answers.released[positions])

    def _secret(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        if isinstance(self.condition, Total):
            numbers = self.people.numbers(self.condition)
            place = np.searchsorted(self.people.ids, ids).clip(max=len(self.people) - 1)
            return np.where(self.people.ids[place] == ids, numbers[place], 0.0)
        matching = self.people.ids
        if self.condition is not None:
            matching = matching[self.people.secret(self.condition) == 1]
        return np.isin(ids, matching).astype(np.float64)
