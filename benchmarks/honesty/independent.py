"""Systems whose noise is drawn afresh for every question, from laws of many shapes."""

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
    mixed_sizes,
    noisy,
    system,
)
from benchmarks.worlds import World


@system(held=True)
def clean(rng: np.random.Generator) -> World:
    """Rounded Gaussian noise of SD 4 and nothing else."""
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), gaussian(M, SIGMA, rng))


@system(held=True)
def student_t(rng: np.random.Generator) -> World:
    """Noise of a Student t law with 2 degrees of freedom, scale 3, rounded."""
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), np.rint(3 * rng.standard_t(2, M)))


@system(held=True)
def proportional(rng: np.random.Generator) -> World:
    """Gaussian noise whose SD is 15% of the count."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    return noisy(queries, secret, np.rint(rng.normal(0, 0.15 * counted(queries, secret))))


@system(held=True)
def bimodal(rng: np.random.Generator) -> World:
    """Every answer is about 6 too high or about 6 too low, with Gaussian noise of SD 1."""
    sides = rng.choice([-6.0, 6.0], M)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), sides + gaussian(M, 1.0, rng))


@system(held=True)
def clipped(rng: np.random.Generator) -> World:
    """10% ones; Gaussian noise of SD 4; negative answers are given as 0."""
    queries, secret = halves(N, M, rng), bits(N, 0.1, rng)
    values = counted(queries, secret) + gaussian(M, SIGMA, rng)
    return answered(queries, secret, np.maximum(values, 0))


@system()
def rare_clipped(rng: np.random.Generator) -> World:
    """2% ones; Gaussian noise of SD 4; negative answers are given as 0."""
    queries, secret = halves(N, M, rng), bits(N, 0.02, rng)
    values = counted(queries, secret) + gaussian(M, SIGMA, rng)
    return answered(queries, secret, np.maximum(values, 0))


@system()
def clipped_to_set(rng: np.random.Generator) -> World:
    """Subsets of 8 people, Gaussian noise of SD 3, and no answer below 0 or above 8."""
    queries, secret = fixed_size(N, M, 8, rng), bits(N, 0.5, rng)
    values = counted(queries, secret) + gaussian(M, 3.0, rng)
    return answered(queries, secret, np.clip(values, 0, 8))


@system(held=True)
def replaced(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 4; 10% of the answers are replaced by a random number up to 100."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    values = counted(queries, secret) + gaussian(M, SIGMA, rng)
    lost = rng.random(M) < 0.1
    return answered(queries, secret, np.where(lost, rng.integers(0, N + 1, M), values))


@system()
def complements(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 4; 10% of the answers count the people outside the set instead."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    counts = counted(queries, secret)
    swapped = rng.random(M) < 0.1
    counts = np.where(swapped, secret.sum() - counts, counts)
    return answered(queries, secret, counts + gaussian(M, SIGMA, rng))


@system()
def gross_errors(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 4; 5% of the answers are wrong by 50 in either direction."""
    gross = (rng.random(M) < 0.05) * rng.choice([-50.0, 50.0], M)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), gaussian(M, SIGMA, rng) + gross)


@system()
def heavy_mixture(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 3, of SD 15 in one answer of five."""
    sigma = np.where(rng.random(M) < 0.2, 15.0, 3.0)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), np.rint(rng.normal(0, sigma)))


@system()
def geometric(rng: np.random.Generator) -> World:
    """Discrete Laplace noise, the difference of two geometric draws, for epsilon 0.4."""
    share = 1 - np.exp(-0.4)
    noise = rng.geometric(share, M) - rng.geometric(share, M)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), noise.astype(np.float64))


@system()
def laplace_fractions(rng: np.random.Generator) -> World:
    """Laplace noise of SD 4, not rounded."""
    return noisy(halves(N, M, rng), bits(N, 0.3, rng), rng.laplace(0, SIGMA / np.sqrt(2), M))


@system()
def square_root(rng: np.random.Generator) -> World:
    """Subsets from small to large; Gaussian noise whose variance is the count."""
    queries, secret = mixed_sizes(N, M, rng), bits(N, 0.5, rng)
    return noisy(queries, secret, np.rint(rng.normal(0, np.sqrt(counted(queries, secret)))))


@system()
def sigma_by_size(rng: np.random.Generator) -> World:
    """Subsets from small to large; Gaussian noise whose SD is 8% of the set's size."""
    queries, secret = mixed_sizes(N, M, rng), bits(N, 0.5, rng)
    return noisy(queries, secret, np.rint(rng.normal(0, 0.08 * queries.matrix.sum(axis=1))))


@system()
def top_coded(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 3; answers above 28 are given as 28."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    values = counted(queries, secret) + gaussian(M, 3.0, rng)
    return answered(queries, secret, np.minimum(values, 28))


@system()
def truncated(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 3, the sum cut down to the whole number below, not rounded."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    return answered(queries, secret, np.floor(counted(queries, secret) + rng.normal(0, 3.0, M)))


@system()
def large_500(rng: np.random.Generator) -> World:
    """1000 people, 500 answers, Gaussian noise of SD 2."""
    return noisy(halves(1000, 500, rng), bits(1000, 0.5, rng), gaussian(500, 2.0, rng))


@system()
def large_600(rng: np.random.Generator) -> World:
    """1000 people, 600 answers, Gaussian noise of SD 2."""
    return noisy(halves(1000, 600, rng), bits(1000, 0.5, rng), gaussian(600, 2.0, rng))


@system()
def large_800(rng: np.random.Generator) -> World:
    """1000 people, 800 answers, Gaussian noise of SD 4."""
    return noisy(halves(1000, 800, rng), bits(1000, 0.5, rng), gaussian(800, 4.0, rng))


SYSTEMS = (
    clean,
    student_t,
    proportional,
    bimodal,
    clipped,
    rare_clipped,
    clipped_to_set,
    replaced,
    complements,
    gross_errors,
    heavy_mixture,
    geometric,
    laplace_fractions,
    square_root,
    sigma_by_size,
    top_coded,
    truncated,
    large_500,
    large_600,
    large_800,
)
