"""Systems that are exact, or whose answers lie within a bound of the count."""

import numpy as np

from benchmarks.honesty.system import (
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
from countleak.attack.noise import Shape
from countleak.attack.rules import Rules


def exact(n: int, m: int, rng: np.random.Generator) -> World:
    """Exact counts of m random subsets of n people."""
    return noisy(halves(n, m, rng), bits(n, 0.5, rng), np.zeros(m))


def uniform(n: int, m: int, bound: int, rng: np.random.Generator) -> World:
    """Whole-number noise, uniform from -bound to bound."""
    noise = rng.integers(-bound, bound + 1, m).astype(np.float64)
    return noisy(halves(n, m, rng), bits(n, 0.5, rng), noise)


def rounded(n: int, m: int, base: int, rng: np.random.Generator) -> World:
    """Counts rounded to the nearest multiple of ``base``, half a step up."""
    queries, secret = halves(n, m, rng), bits(n, 0.5, rng)
    return answered(queries, secret, base * np.floor(counted(queries, secret) / base + 0.5))


def rounded_at_random(n: int, m: int, base: int, rng: np.random.Generator) -> World:
    """Counts rounded up or down to a multiple of ``base`` so that they are right on average."""
    queries, secret = halves(n, m, rng), bits(n, 0.5, rng)
    steps = np.floor(counted(queries, secret) / base + rng.random(m))
    return answered(queries, secret, base * steps)


@system()
def exact_60_400(rng: np.random.Generator) -> World:
    """A plain database: exact counts, 60 people, 400 answers."""
    return exact(60, 400, rng)


@system()
def exact_60_24(rng: np.random.Generator) -> World:
    """Exact counts, fewer than people: 60 people, 24 answers."""
    return exact(60, 24, rng)


@system()
def exact_100_45(rng: np.random.Generator) -> World:
    """Exact counts, fewer than people: 100 people, 45 answers."""
    return exact(100, 45, rng)


@system()
def exact_200_100(rng: np.random.Generator) -> World:
    """Exact counts, fewer than people: 200 people, 100 answers."""
    return exact(200, 100, rng)


@system(rules=Rules(Shape.EXACT))
def exact_told(rng: np.random.Generator) -> World:
    """Exact counts of 300 people, 400 answers, and the auditor says that they are exact."""
    return exact(300, 400, rng)


@system(rules=Rules(Shape.EXACT))
def exact_ranges_told(rng: np.random.Generator) -> World:
    """Exact counts of 600 ranges of 300 people in a known order, and the auditor says so."""
    return noisy(random_ranges(300, 600, rng), bits(300, 0.5, rng), np.zeros(600))


@system()
def uniform_6_300(rng: np.random.Generator) -> World:
    """Whole-number noise, uniform within 6, 300 answers."""
    return uniform(N, 300, 6, rng)


@system()
def uniform_6_250(rng: np.random.Generator) -> World:
    """Whole-number noise, uniform within 6, 250 answers."""
    return uniform(N, 250, 6, rng)


@system(rules=Rules(bound=3))
def uniform_told(rng: np.random.Generator) -> World:
    """Whole-number noise, uniform within 3, 500 answers, and the auditor states the bound."""
    return uniform(N, 500, 3, rng)


@system()
def random_rounding_3(rng: np.random.Generator) -> World:
    """Counts rounded at random to a multiple of 3, 200 answers."""
    return rounded_at_random(N, 200, 3, rng)


@system(rules=Rules(Shape.EXACT, base=3, random_rounding=True))
def random_rounding_told(rng: np.random.Generator) -> World:
    """Counts rounded at random to a multiple of 3, 400 answers; the auditor says so."""
    return rounded_at_random(N, 400, 3, rng)


@system()
def rounding_7(rng: np.random.Generator) -> World:
    """Counts rounded to the nearest multiple of 7, 200 people, 400 answers."""
    return rounded(200, 400, 7, rng)


@system(rules=Rules(Shape.EXACT, base=5))
def rounding_5_told(rng: np.random.Generator) -> World:
    """Counts rounded to a multiple of 5, 200 people, 500 answers; the auditor says so."""
    return rounded(200, 500, 5, rng)


@system()
def noise_then_rounding_5(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 3, then rounding to a multiple of 5, 130 answers."""
    queries, secret = halves(N, 130, rng), bits(N, 0.5, rng)
    values = counted(queries, secret) + rng.normal(0.0, 3.0, 130)
    return answered(queries, secret, 5 * np.rint(values / 5))


@system()
def noise_then_rounding_10(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 4, then rounding to a multiple of 10."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    values = counted(queries, secret) + gaussian(M, 4.0, rng)
    return answered(queries, secret, 10 * np.rint(values / 10))


@system()
def random_rounding_suppressed(rng: np.random.Generator) -> World:
    """Subsets of 20, 30% ones; counts below 5 suppressed, others rounded at random to a 5."""
    queries, secret = fixed_size(N, 400, 20, rng), bits(N, 0.3, rng)
    counts = counted(queries, secret)
    values = 5 * np.floor(counts / 5 + rng.random(400))
    return answered(queries, secret, values, counts >= 5)


SYSTEMS = (
    exact_60_400,
    exact_60_24,
    exact_100_45,
    exact_200_100,
    exact_told,
    exact_ranges_told,
    uniform_6_300,
    uniform_6_250,
    uniform_told,
    random_rounding_3,
    random_rounding_told,
    rounding_7,
    rounding_5_told,
    noise_then_rounding_5,
    noise_then_rounding_10,
    random_rounding_suppressed,
)
