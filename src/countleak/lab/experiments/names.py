"""What the names in a trial stand for: worlds, query families, mechanisms and decoders.

Trials are stored as text, so their parts have names; these tables are the one place where a name
becomes an object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countleak.attack.programs import DiNi, Dmt, Program
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import (
    ATTACK_EXPONENTS,
    CONSTANTS,
    SWEEP_EXPONENTS,
    Digits,
    digit_queries,
)
from countleak.attack.queries.signs import Signs, random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Bit
from countleak.audit.people import People, generated_census
from countleak.audit.targets.recorded import read_census, read_presence
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)

CANDIDATES = np.arange(2500, 2601)
PRESENT = 12
CENSUS = 5000


@dataclass(frozen=True, eq=False)
class World:
    """People, the secret about them, and the ``ids`` (n,) that queries are about.

    Without a secret the question is who of ``ids`` is there at all. Digit queries have these
    ``exponents``.
    """

    people: People
    secret: Bit | None
    ids: NDArray[np.int64]
    exponents: tuple[float, ...]

    @property
    def truth(self) -> NDArray[np.int64]:
        """The true bits (n,) of ``ids``."""
        if self.secret is None:
            return np.isin(self.ids, self.people.ids).astype(np.int64)
        bits: NDArray[np.int64] = self.people.truth(self.secret)
        return bits


def _census(n: int, seed: int, data: Path | None) -> World:
    # One census for all n, so that a smaller one is the beginning of a larger one.
    everyone = read_census(data, n) if data else generated_census(CENSUS, seed)
    people = everyone.between(1000, 999 + n)
    return World(people, Bit("sex = 1"), people.ids, SWEEP_EXPONENTS)


def _presence(n: int, seed: int, data: Path | None) -> World:
    if data:
        people = read_presence(data)
    else:
        rng = np.random.default_rng([seed, 2500])
        people = People(np.sort(rng.choice(CANDIDATES, size=PRESENT, replace=False)), {})
    return World(people, None, CANDIDATES, ATTACK_EXPONENTS)


def _digits(world: World, m: int, rng: np.random.Generator) -> Queries:
    """m digit queries, drawn from those of as many primes as it takes."""
    primes = -(-m // (len(CONSTANTS) * len(world.exponents)))
    pool = digit_queries(world.ids, primes=primes, exponents=world.exponents)
    if len(pool) == m:
        return pool
    return pool.take(np.sort(rng.choice(len(pool), size=m, replace=False)))


# The people and their secret, from n, the seed and the authors' folder, if there is one.
WORLDS: dict[str, Callable[[int, int, Path | None], World]] = {
    "census": _census,
    "presence": _presence,
}
# m queries about a world.
FAMILIES: dict[str, Callable[[World, int, np.random.Generator], Queries]] = {
    Digits().name: _digits,
    Subsets().name: lambda world, m, rng: random_subsets(world.ids, m, rng),
    Signs().name: lambda world, m, rng: random_signs(world.ids, m, rng),
}
# A mechanism, from sigma and, for Diffix's, whether low counts are suppressed and answers clamped.
MECHANISMS: dict[str, Callable[[float, bool, bool], Mechanism]] = {
    "diffix": lambda sigma, suppressing, clamped: SimulatedDiffix(
        sigma, suppressing=suppressing, clamped=clamped
    ),
    "gaussian": lambda sigma, *_: Gaussian(sigma),
    "laplace": lambda sigma, *_: Laplace(sigma),
    "uniform": lambda sigma, *_: Uniform(int(sigma)),
    "round": lambda sigma, *_: RoundedToBase(int(sigma)),
}
# A program, from B and sigma.
DECODERS: dict[str, Callable[[float, float], Program]] = {
    "dmt": lambda B, sigma: Dmt(),
    "dini-vertex": DiNi,
    "dini-centre": DiNi,
    "dmt-integer": lambda B, sigma: Dmt(integer=True),
}
# How ±1 queries are answered: with SD sigma, by two counts, or with SD 2 sigma.
SIGN_NOISES = ("direct", "two-subsets", "double")
# Every field of a trial that holds a name, and the names it may hold.
NAMES: dict[str, tuple[str, ...]] = {
    "family": tuple(FAMILIES),
    "mechanism": tuple(MECHANISMS),
    "sign_noise": SIGN_NOISES,
    "decoder": tuple(DECODERS),
    "world": tuple(WORLDS),
}
