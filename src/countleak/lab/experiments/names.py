"""What the names in a trial stand for: worlds, query families, mechanisms and decoders.

Trials are stored as text, so their parts have names; these tables are the one place where a name
becomes an object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.robust import Robust
from countleak.attack.noise import Noise
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
from countleak.attack.rules import Rules
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
from countleak.errors import CountleakError, InputError
from countleak.foreign import clean, first_line
from countleak.own_code import load

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
# A program, from B and sigma; many are solved in one call.
PROGRAMS: dict[str, Callable[[float, float], Program]] = {
    "dmt": lambda B, sigma: Dmt(),
    "lp": lambda B, sigma: Dmt(),
    "dini-vertex": DiNi,
    "dini-centre": DiNi,
    "dmt-integer": lambda B, sigma: Dmt(integer=True),
}
# A decoder, from what could be stated of the system and a seed. Only `bounded` is told of the
# system, and only its bound. None proves anything, for proofs would depend on the clock.
DECODERS: dict[str, Callable[[Rules, int], Decoder]] = {
    "auto": lambda rules, seed: AutoDecoder(time_limit=0.0, seed=seed),
    "ls": lambda rules, seed: LeastSquares(),
    "bayes": lambda rules, seed: Bayes(seed=seed),
    "robust": lambda rules, seed: Robust(seed=seed),
    "bounded": lambda rules, seed: Bounded(_limits(rules), time_limit=0.0, seed=seed),
}
# How ±1 queries are answered: with SD sigma, by two counts, or with SD 2 sigma.
SIGN_NOISES = ("direct", "two-subsets", "double")
# Every field of a trial that holds a name, and the names it may hold besides `module:Class`.
NAMES: dict[str, tuple[str, ...]] = {
    "family": tuple(FAMILIES),
    "mechanism": tuple(MECHANISMS),
    "sign_noise": SIGN_NOISES,
    "decoder": (*PROGRAMS, *DECODERS),
    "world": tuple(WORLDS),
}
# The fields that may also name a class of one's own, and the method it must have.
OWN = {"mechanism": "release", "decoder": "decode"}


def mechanism_of(name: str, sigma: float, suppressing: bool, clamped: bool) -> Mechanism:
    """The mechanism of that name; one of one's own is made from sigma."""
    if ":" not in name:
        return MECHANISMS[name](sigma, suppressing, clamped)
    own: Mechanism = _made("mechanism", name, sigma)
    return own


def decoder_of(name: str, rules: Rules, seed: int) -> Decoder:
    """The decoder of that name, not a program's; one of one's own is made from nothing."""
    if ":" not in name:
        return DECODERS[name](rules, seed)
    own: Decoder = _made("decoder", name)
    return own


def own_class(field: str, name: str) -> type:
    """The class in the current folder that a field of a trial names, with the method it needs."""
    found: type = load(name, "class")
    if not callable(getattr(found, OWN[field], None)):
        raise InputError(f"{clean(name)} is no {field}: it has no method `{OWN[field]}`")
    return found


def _made(field: str, name: str, *given: float) -> Any:
    try:
        return own_class(field, name)(*given)
    except CountleakError:
        raise
    except Exception as error:
        takes = "sigma alone" if given else "nothing"
        words = first_line(f"{type(error).__name__}: {error}")
        raise InputError(f"{clean(name)} cannot be made from {takes} ({words})") from None


def _limits(rules: Rules) -> Noise:
    noise = rules.limits()
    assert noise is not None, "a trial refuses noise without a bound"
    return noise
