"""What a system of the battery is, and what most of them have in common.

A system is a function of a Generator that returns a world. Its worlds are pure in the system's
name and their number: the same two give the same secret, queries and answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.worlds import World
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.rules import Rules
from countleak.attack.transcript import Answers, Transcript

N, M, SIGMA = 100, 1000, 4.0

Draw = Callable[[np.random.Generator], World]


@dataclass(frozen=True)
class System:
    """A simulated system that ``draw`` makes worlds of.

    ``held`` says that the decoders were honest on it before anything was built for honesty: it
    must stay so, with probabilities. ``rules`` are what an auditor states of it; without them
    nothing is stated.
    """

    name: str
    description: str
    draw: Draw
    held: bool = False
    rules: Rules | None = None

    @property
    def stated(self) -> str:
        """What is stated of it, in words; empty where nothing is."""
        return "" if self.rules is None else "; ".join(self.rules.words)

    def world(self, number: int) -> World:
        """World ``number`` of this system."""
        return self.draw(np.random.default_rng([crc32(self.name.encode()), number]))


def system(*, held: bool = False, rules: Rules | None = None) -> Callable[[Draw], System]:
    """Makes the function that it decorates a System, named and described as the function is."""

    def made(draw: Draw) -> System:
        name = draw.__name__.replace("_", "-")
        return System(name, " ".join((draw.__doc__ or "").split()), draw, held, rules)

    return made


def bits(n: int, rate: float, rng: np.random.Generator) -> NDArray[np.int8]:
    """A secret (n,): independent bits, each 1 with probability ``rate``."""
    return (rng.random(n) < rate).astype(np.int8)


def halves(n: int, m: int, rng: np.random.Generator) -> Queries:
    """m random subsets of n people, each with half of them on average."""
    return random_subsets(np.arange(n), m, rng)


def fixed_size(n: int, m: int, size: int, rng: np.random.Generator) -> Queries:
    """m random subsets of n people, each of exactly ``size``."""
    order = rng.random((m, n)).argsort(axis=1)
    return of_matrix(order < size)


def mixed_sizes(n: int, m: int, rng: np.random.Generator) -> Queries:
    """m random subsets of n people, some small, some large: 5% to 95% of everyone."""
    share = rng.uniform(0.05, 0.95, size=(m, 1))
    return of_matrix(rng.random((m, n)) < share)


def random_ranges(n: int, m: int, rng: np.random.Generator) -> Queries:
    """m random ranges of n people in the order of a known attribute."""
    ends = np.sort(rng.integers(0, n + 1, size=(m, 2)), axis=1)
    place = np.arange(n)
    return of_matrix((place >= ends[:, :1]) & (place < ends[:, 1:]))


def of_matrix(matrix: NDArray[np.bool_]) -> Queries:
    """The queries with these members (m, n)."""
    return Queries(np.arange(matrix.shape[1]), matrix.astype(np.int8), Subsets())


def gaussian(m: int, sigma: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Independent whole-number noise (m,) of SD ``sigma``, in people."""
    return np.rint(rng.normal(0.0, sigma, m))


def counted(queries: Queries, secret: NDArray[Any]) -> NDArray[np.float64]:
    """The exact counts (m,) of a secret (n,) of numbers."""
    return queries.dot(secret.astype(np.float64))


def answered(
    queries: Queries,
    secret: NDArray[np.int8],
    values: NDArray[np.float64],
    released: NDArray[np.bool_] | None = None,
) -> World:
    """The world in which ``values`` (m,) were answered, all of them unless ``released`` says."""
    return World(Transcript.of(queries, Answers.to_all(values, released)), secret)


def noisy(queries: Queries, secret: NDArray[np.int8], noise: NDArray[np.float64]) -> World:
    """The world in which ``noise`` (m,) was added to every count."""
    return answered(queries, secret, counted(queries, secret) + noise)


def matching(queries: Queries, secret: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Who (m, n) is counted by each query: its members with a 1."""
    return np.asarray((queries.matrix == 1) & (secret == 1))
