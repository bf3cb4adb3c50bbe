"""Systems that count other people than the attacker thinks, and people unlike each other.

The noise is Gaussian and drawn afresh, of SD 4 unless said.
"""

import numpy as np

from benchmarks.honesty.system import (
    SIGMA,
    M,
    N,
    answered,
    bits,
    counted,
    fixed_size,
    gaussian,
    halves,
    noisy,
    random_ranges,
    system,
)
from benchmarks.worlds import World


def missing(people: int, rng: np.random.Generator) -> World:
    """The system also counts ``people`` who are not in the list, each in half of the sets."""
    others = rng.binomial(int(rng.binomial(people, 0.5)), 0.5, M)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), others + gaussian(M, SIGMA, rng))


@system(held=True)
def ghosts(rng: np.random.Generator) -> World:
    """20 of the 100 people in the list are not in the system, so nothing counts them."""
    secret = bits(N, 0.5, rng)
    secret[rng.choice(N, size=20, replace=False)] = 0
    return noisy(halves(N, M, rng), secret, gaussian(M, SIGMA, rng))


@system(held=True)
def missing_5(rng: np.random.Generator) -> World:
    """The system holds 5 people who are not in the list and fall into half of the sets."""
    return missing(5, rng)


@system(held=True)
def missing_20(rng: np.random.Generator) -> World:
    """The system holds 20 people who are not in the list and fall into half of the sets."""
    return missing(20, rng)


@system()
def duplicates(rng: np.random.Generator) -> World:
    """10 of the 100 people are in the system twice, so that they count double."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    weight = np.where(rng.permutation(N) < 10, 2.0, 1.0)
    return answered(queries, secret, counted(queries, secret * weight) + gaussian(M, SIGMA, rng))


@system()
def households(rng: np.random.Generator) -> World:
    """25 households of 4; nine people of ten have the bit of their household; 500 answers."""
    shared = np.repeat(bits(N // 4, 0.5, rng), 4)
    secret = np.where(rng.random(N) < 0.9, shared, bits(N, 0.5, rng)).astype(np.int8)
    return noisy(halves(N, 500, rng), secret, gaussian(500, SIGMA, rng))


@system()
def two_rates(rng: np.random.Generator) -> World:
    """Half of the people have a 1 with probability 5%, the other half with 60%; 500 answers."""
    secret = np.concatenate([bits(N // 2, 0.05, rng), bits(N // 2, 0.6, rng)])
    return noisy(halves(N, 500, rng), secret, gaussian(500, SIGMA, rng))


@system()
def small_subsets(rng: np.random.Generator) -> World:
    """Subsets of 10 of 100 people; SD 2."""
    return noisy(fixed_size(N, M, 10, rng), bits(N, 0.5, rng), gaussian(M, 2.0, rng))


@system()
def large_subsets(rng: np.random.Generator) -> World:
    """Subsets of 90 of 100 people; SD 2."""
    return noisy(fixed_size(N, M, 90, rng), bits(N, 0.5, rng), gaussian(M, 2.0, rng))


@system()
def ranges(rng: np.random.Generator) -> World:
    """Ranges of a sorted attribute instead of random subsets; SD 1."""
    return noisy(random_ranges(N, M, rng), bits(N, 0.5, rng), gaussian(M, 1.0, rng))


SYSTEMS = (
    ghosts,
    missing_5,
    missing_20,
    duplicates,
    households,
    two_rates,
    small_subsets,
    large_subsets,
    ranges,
)
