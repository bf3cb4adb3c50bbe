"""Systems that are asked about each value of a secret of four: 100 people, SD 4."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.honesty.system import (
    SIGMA,
    N,
    counted,
    gaussian,
    halves,
    of_matrix,
    system,
)
from benchmarks.worlds import World
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import STATUS_SHARES
from countleak.audit.targets.simulated import SimulatedDiffix

NAMES = tuple(STATUS_SHARES)
# Questions about each value.
PER_VALUE = 352
REPEATS = 4


def names(rng: np.random.Generator) -> NDArray[np.str_]:
    """A secret (n,): the loan statuses of a bank, by their shares."""
    return rng.choice(np.array(NAMES), size=N, p=list(STATUS_SHARES.values()))


def counts_of_each(queries: Queries, secret: NDArray[np.str_]) -> NDArray[np.float64]:
    """The exact counts (k, m) of each of k values."""
    return np.array([counted(queries, secret == name) for name in NAMES])


def asked_about_each(
    queries: Queries, secret: NDArray[np.str_], noise: NDArray[np.float64]
) -> World:
    """The world in which ``noise`` (k, m) was added to the counts of each of k values."""
    return answered_each(queries, secret, counts_of_each(queries, secret) + noise)


def answered_each(
    queries: Queries,
    secret: NDArray[np.str_],
    values: NDArray[np.float64],
    released: NDArray[np.bool_] | None = None,
) -> World:
    """The world in which ``values`` (k, m) were answered, all of them unless ``released`` says."""
    shown = None if released is None else released.ravel()
    return World(Transcript.of(queries, Answers.to_all(values.ravel(), shown), NAMES), secret)


def noise_per_value(m: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Independent noise (k, m) for the answers about each value."""
    return np.array([gaussian(m, SIGMA, rng) for _ in NAMES])


@system()
def categories(rng: np.random.Generator) -> World:
    """A secret of four values, 352 questions about each, nothing wrong."""
    return asked_about_each(halves(N, PER_VALUE, rng), names(rng), noise_per_value(PER_VALUE, rng))


@system()
def categories_repeated(rng: np.random.Generator) -> World:
    """A secret of four values; 88 questions about each, asked four times with the same answer."""
    distinct = halves(N, PER_VALUE // REPEATS, rng)
    queries = of_matrix(np.tile(distinct.matrix == 1, (REPEATS, 1)))
    noise = np.tile(noise_per_value(len(distinct), rng), (1, REPEATS))
    return asked_about_each(queries, names(rng), noise)


@system()
def categories_gross_errors(rng: np.random.Generator) -> World:
    """A secret of four values; 5% of the answers are wrong by 50 in either direction."""
    shape = (len(NAMES), PER_VALUE)
    gross = (rng.random(shape) < 0.05) * rng.choice([-50.0, 50.0], shape)
    noise = noise_per_value(PER_VALUE, rng) + gross
    return asked_about_each(halves(N, PER_VALUE, rng), names(rng), noise)


@system()
def categories_offset(rng: np.random.Generator) -> World:
    """A secret of four values; the answers about each are off by a constant of its own, SD 3."""
    offset = np.rint(rng.normal(0.0, 3.0, (len(NAMES), 1)))
    noise = noise_per_value(PER_VALUE, rng) + offset
    return asked_about_each(halves(N, PER_VALUE, rng), names(rng), noise)


@system()
def categories_unequal_noise(rng: np.random.Generator) -> World:
    """A secret of four values; the noise of the answers about each has SD 2, 4, 6 or 8."""
    noise = np.array([gaussian(PER_VALUE, sigma, rng) for sigma in rng.permutation([2, 4, 6, 8])])
    return asked_about_each(halves(N, PER_VALUE, rng), names(rng), noise)


@system()
def categories_suppressed(rng: np.random.Generator) -> World:
    """A secret of four values, SD 4; counts below about 4 suppressed, no answer below 0."""
    queries, secret = halves(N, PER_VALUE, rng), names(rng)
    seed = np.random.SeedSequence(int(rng.integers(2**62)))
    answers = SimulatedDiffix(SIGMA).release(counts_of_each(queries, secret).ravel(), seed)
    return answered_each(queries, secret, answers.values, answers.released)


@system()
def categories_exact(rng: np.random.Generator) -> World:
    """A secret of four values in a plain database: exact counts, 45 questions about each."""
    return asked_about_each(halves(N, 45, rng), names(rng), np.zeros((len(NAMES), 45)))


@system()
def categories_rounding_5(rng: np.random.Generator) -> World:
    """A secret of four values; counts rounded to the nearest multiple of 5, 200 about each."""
    queries, secret = halves(N, 200, rng), names(rng)
    return answered_each(queries, secret, 5 * np.rint(counts_of_each(queries, secret) / 5))


SYSTEMS = (
    categories,
    categories_repeated,
    categories_gross_errors,
    categories_offset,
    categories_unequal_noise,
    categories_suppressed,
    categories_exact,
    categories_rounding_5,
)
