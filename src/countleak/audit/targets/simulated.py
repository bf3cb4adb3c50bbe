"""Simulated targets: true counts through a mechanism that adds noise and suppresses.

Every draw for a query depends on the seed and on the query's position alone, so a run replays
bit for bit, whole or resumed. Each part of a mechanism draws from a stream of its own: switching
one off leaves the others as they were.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Shape, Threshold
from countleak.attack.queries import Queries
from countleak.attack.queries.ids import positions_of
from countleak.attack.queries.signs import Signs, two_subsets
from countleak.attack.queries.tables import Tables, merged_in
from countleak.attack.rules import Rules
from countleak.attack.secrets import Bit, Number, Secret
from countleak.attack.transcript import Answers
from countleak.audit.people import People
from countleak.errors import InputError


class Mechanism(Protocol):
    """What turns true counts into released answers, and says by what ``rules``."""

    @property
    def rules(self) -> Rules:
        """What could be stated of the system."""
        ...

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        """The answers to counts (m,), each drawn by its position."""
        ...


# Noise or rounding beyond this hides any population that can be counted.
LARGEST = 10**9


def _positive(name: str, value: float) -> None:
    if not 0 < value <= LARGEST:
        raise InputError(f"{name} is {value:g}; it must lie above 0 and be at most {LARGEST:g}")


@dataclass(frozen=True)
class SimulatedDiffix:
    """The authors' simulation of Diffix, each part with a switch.

    A count below a threshold ``max(2, N(4, 0.5))``, drawn per query, is suppressed; any other is
    answered ``max(0, count + round(N(0, sigma)))``.
    """

    sigma: float = 4.0
    rounded: bool = True
    suppressing: bool = True
    clamped: bool = True
    threshold: Threshold = field(default_factory=Threshold)

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    @property
    def rules(self) -> Rules:
        """Normal noise, with a threshold and a lowest answer where those are switched on."""
        return Rules(
            Shape.GAUSSIAN,
            self.sigma,
            suppressed=self.threshold if self.suppressing else None,
            floor=0.0 if self.clamped else None,
            sticky=False,
        )

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        noise_seed, threshold_seed = seed.spawn(2)
        noise = np.random.default_rng(noise_seed).normal(0.0, self.sigma, counts.shape)
        values = counts + (np.round(noise) if self.rounded else noise)
        limit = np.random.default_rng(threshold_seed).normal(
            self.threshold.mean, self.threshold.sd, counts.shape
        )
        low = counts < np.maximum(self.threshold.minimum, limit)
        released = ~low if self.suppressing else np.ones_like(low)
        return Answers.to_all(np.maximum(0.0, values) if self.clamped else values, released)


@dataclass(frozen=True)
class Gaussian:
    """Counts with independent noise N(0, sigma), nothing rounded, nothing suppressed."""

    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)

    @property
    def rules(self) -> Rules:
        """Normal noise."""
        return Rules(Shape.GAUSSIAN, self.sigma, sticky=False)

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

    @property
    def rules(self) -> Rules:
        """Laplace noise."""
        return Rules(Shape.LAPLACE, self.sigma, sticky=False)

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        rng = np.random.default_rng(seed)
        return Answers.to_all(counts + rng.laplace(0.0, self.sigma / np.sqrt(2), counts.shape))


@dataclass(frozen=True)
class Uniform:
    """Counts with independent whole-number noise, uniform on [-bound, bound]."""

    bound: int

    def __post_init__(self) -> None:
        if not 1 <= self.bound <= LARGEST:
            raise InputError(
                f"bound is {self.bound}; uniform noise needs one from 1 to {LARGEST:,}"
            )

    @property
    def rules(self) -> Rules:
        """Noise within the bound."""
        return Rules(Shape.UNIFORM, bound=self.bound, sticky=False)

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
        if not 2 <= self.base <= LARGEST:
            raise InputError(f"base is {self.base}; rounding needs one from 2 to {LARGEST:,}")

    @property
    def rules(self) -> Rules:
        """Rounding and nothing else, the same each time unless chance decides."""
        return Rules(
            Shape.EXACT, base=self.base, random_rounding=self.random, sticky=not self.random
        )

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        draws = np.random.default_rng(seed).random(counts.shape) if self.random else 0.5
        return Answers.to_all(self.base * np.floor(counts / self.base + draws))


@dataclass(frozen=True)
class Exactly:
    """Counts as they are."""

    @property
    def rules(self) -> Rules:
        """Nothing is done to a count."""
        return Rules(Shape.EXACT, sticky=True)

    def release(self, counts: NDArray[np.float64], seed: np.random.SeedSequence) -> Answers:
        return Answers.to_all(counts)


@dataclass(frozen=True)
class TwoSubsets:
    """A system that only counts subsets: a sign query costs it two answers, q - q^c.

    The difference carries the noise of both; it is suppressed when either half is.
    """

    mechanism: Mechanism

    def release_signs(
        self, queries: Queries, secret: NDArray[np.float64], seed: np.random.SeedSequence
    ) -> Answers:
        """The answers to sign queries about a secret (n,)."""
        if not isinstance(queries.family, Signs):
            raise InputError(
                f"{queries.family.name} queries are counts already; only ±1 queries are two"
            )
        plus, minus = (
            self.mechanism.release(part.dot(secret), half)
            for part, half in zip(two_subsets(queries), seed.spawn(2), strict=True)
        )
        return Answers.to_all(plus.values - minus.values, plus.released & minus.released)


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated system over ``people`` that counts or sums a ``secret``.

    Of a number the mechanism's noise is in its units. Without a secret it counts who is there at
    all. An id it does not hold counts as nobody.
    """

    people: People
    secret: Secret | None
    mechanism: Mechanism | TwoSubsets
    seed: int | tuple[int, ...] = 0

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Answer everything in one batch."""
        if isinstance(queries.family, Tables) and merged_in(queries).any():
            raise InputError("a simulated system merges no cells; plan tables without them")
        parts = [
            self._release(queries, held, np.random.SeedSequence(seed))
            for held, seed in zip(self._held(queries), self._seeds(), strict=True)
        ]
        values = np.concatenate([part.values for part in parts])
        released = np.concatenate([part.released for part in parts])
        yield Answers(positions, values[positions], released[positions])

    def _release(
        self, queries: Queries, held: NDArray[np.float64], seed: np.random.SeedSequence
    ) -> Answers:
        if isinstance(self.mechanism, TwoSubsets):
            return self.mechanism.release_signs(queries, held, seed)
        return self.mechanism.release(queries.dot(held), seed)

    def _seeds(self) -> Iterator[int | tuple[int, ...]]:
        """A seed per condition that is asked about; one condition alone takes the seed itself."""
        count = 1 if self.secret is None else len(self.secret.conditions)
        base = (self.seed,) if isinstance(self.seed, int) else self.seed
        yield self.seed
        yield from ((*base, value) for value in range(1, count))

    def _held(self, queries: Queries) -> Iterator[NDArray[np.float64]]:
        """What each person asked about adds to a count or sum (n,), per condition."""
        place = positions_of(queries.ids, self.people.ids)
        for condition in (None,) if self.secret is None else self.secret.conditions:
            each = np.ones(len(self.people))
            if isinstance(condition, Bit):
                each = self.people.holds(condition).astype(np.float64)
            elif isinstance(self.secret, Number):
                each = self.people.truth(self.secret)
            yield np.where(place >= 0, each[place], 0.0)
