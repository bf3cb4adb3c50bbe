"""Small systems of every bounded kind, and what trying all 2^n bits says of them."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from countleak.attack.noise import Noise, Range, Shape
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.transcript import Answers, Transcript

KINDS = ("exact", "uniform", "fractions", "random", "nearest", "suppressed", "both", "floor")
SUPPRESSED = Range(1, 2)


@dataclass(frozen=True, eq=False)
class Small:
    """A transcript, the noise that made it, its secret and the prior rate of ones, if given."""

    transcript: Transcript
    noise: Noise
    secret: NDArray[np.int64]
    prior: float | None


def small_system(kind: str, seed: int, most: int = 10) -> Small:
    """Up to ``most`` people; a third of the systems has weights of -1, a third twins."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n, m = int(rng.integers(2, most + 1)), int(rng.integers(1, 15))
    matrix = (rng.random((m, n)) < rng.random()).astype(np.int8)
    if seed % 3 == 0:
        matrix = rng.integers(-1, 2, (m, n)).astype(np.int8)
    if seed % 3 == 1:
        matrix = matrix[:, rng.integers(0, n, n)]
    secret = rng.integers(0, 2, n)
    counts = matrix.astype(np.int64) @ secret
    noise, values = _answered(kind, counts, rng)
    released = np.ones(m, np.bool_)
    if noise.threshold is not None:
        released = (counts < SUPPRESSED.low) | (counts > SUPPRESSED.high)
    answers = Answers.to_all(np.where(released, values, np.nan), released)
    queries = Queries(np.arange(n), matrix, Subsets())
    prior = None if rng.random() < 0.5 else 0.3
    return Small(Transcript.of(queries, answers), noise, secret, prior)


def _answered(
    kind: str, counts: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Noise, NDArray[np.float64]]:
    whole = rng.integers(-2, 3, counts.size)
    if kind == "uniform":
        return Noise(shape=Shape.UNIFORM, bound=2), counts + 1.0 * whole
    if kind == "fractions":
        return Noise(shape=Shape.UNIFORM, bound=1.3), counts + rng.uniform(-1.3, 1.3, counts.size)
    if kind == "random":
        values = 3 * np.floor(counts / 3 + rng.random(counts.size))
        return Noise(shape=Shape.EXACT, base=3, random_rounding=True), values
    if kind == "nearest":
        # Half of a step goes up or down by chance.
        half = rng.choice([0.49, 0.51], counts.size)
        return Noise(shape=Shape.EXACT, base=4), 4 * np.floor(counts / 4 + half)
    if kind == "both":
        return Noise(shape=Shape.UNIFORM, bound=2, threshold=SUPPRESSED), counts + 1.0 * whole
    if kind == "floor":
        return Noise(shape=Shape.UNIFORM, bound=2, floor=0.0), np.maximum(counts + whole, 0.0)
    threshold = SUPPRESSED if kind == "suppressed" else None
    return Noise(shape=Shape.EXACT, threshold=threshold), 1.0 * counts


def chance(small: Small, kind: str, row: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """How likely the answer of a row is for counts (k,), up to a factor."""
    hidden = (counts >= SUPPRESSED.low) & (counts <= SUPPRESSED.high)
    if not small.transcript.released[row]:
        return 1.0 * hidden
    value = small.transcript.values[row]
    away = np.abs(value - counts)
    if kind == "random":
        return np.maximum(1 - away / 3, 0.0)
    if kind == "nearest":
        return np.where(away == 2, 0.5, 1.0 * (away < 2))
    if kind == "floor" and value == 0:
        # Any of the five values that is 0 or less.
        return np.clip(3 - counts, 0, 5) / 5
    reach = {"uniform": 2, "both": 2, "floor": 2, "fractions": 1.3}.get(kind, 0)
    return 1.0 * (away <= reach + 1e-12) * ~(hidden & (small.noise.threshold is not None))


def posterior_of(small: Small, kind: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The probability (n,) of a one, and whose bit (n,) is the same in all that fits."""
    n = small.transcript.ids.size
    every = np.array(list(product([0, 1], repeat=n)))
    counts = every @ small.transcript.queries.matrix.T.astype(np.int64)
    weight = np.ones(len(every))
    for row in range(counts.shape[1]):
        weight = weight * chance(small, kind, row, counts[:, row])
    ones = every.sum(axis=1)
    if small.prior is None:
        weight = weight * np.exp(betaln(1 + ones, 1 + n - ones))
    else:
        weight = weight * small.prior**ones * (1 - small.prior) ** (n - ones)
    fits = every[weight > 0]
    return weight @ every / weight.sum(), (fits == fits[0]).all(axis=0)
