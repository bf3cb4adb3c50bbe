"""Systems whose noise is not drawn afresh: it repeats, overlaps, drifts, or sticks to people."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from benchmarks.honesty.system import (
    SIGMA,
    M,
    N,
    bits,
    gaussian,
    halves,
    matching,
    noisy,
    of_matrix,
    system,
)
from benchmarks.worlds import World
from countleak.attack.queries.digits import digit_queries
from countleak.attack.secrets import Bit
from countleak.audit.people import generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.diffix import Diffix
from countleak.diffix.salt import Salt


def noise_per_row(
    rows: NDArray[np.bool_], sigma: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Noise (m,) of SD ``sigma`` that equal ``rows`` (m, n) share."""
    which = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return np.asarray(rng.normal(0.0, sigma, which.max() + 1)[which])


@system()
def repeated(rng: np.random.Generator) -> World:
    """250 questions, each asked four times and answered the same every time; SD 4."""
    queries = halves(N, M // 4, rng)
    asked = of_matrix(np.tile(queries.matrix == 1, (4, 1)))
    return noisy(asked, bits(N, 0.5, rng), np.tile(gaussian(M // 4, SIGMA, rng), 4))


@system()
def near_repeated(rng: np.random.Generator) -> World:
    """250 sets, each asked again with 1, 1 and 2 people changed; noise of SD 4 per matching set."""
    base = np.repeat(halves(N, M // 4, rng).matrix == 1, 4, axis=0)
    for row in range(M):
        changed = rng.choice(N, size=(0, 1, 1, 2)[row % 4], replace=False)
        base[row, changed] ^= True
    queries, secret = of_matrix(base), bits(N, 0.5, rng)
    return noisy(queries, secret, np.rint(noise_per_row(matching(queries, secret), SIGMA, rng)))


@system()
def overlapping_sets(rng: np.random.Generator) -> World:
    """Noise of SD 4 summed over 8 blocks of people, drawn once per set that matches in a block."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    matched = matching(queries, secret)
    blocks = np.array_split(rng.permutation(N), 8)
    layers = [noise_per_row(matched[:, block], SIGMA / np.sqrt(8), rng) for block in blocks]
    return noisy(queries, secret, np.rint(np.sum(layers, axis=0)))


@system()
def error_per_person(rng: np.random.Generator) -> World:
    """A fixed error of SD 0.3 per person counts along with the bit; Gaussian noise of SD 4 too."""
    queries, secret = halves(N, M, rng), bits(N, 0.5, rng)
    errors = queries.dot(rng.normal(0.0, 0.3, N))
    return noisy(queries, secret, np.rint(errors + rng.normal(0.0, SIGMA, M)))


@system()
def layer_per_condition(rng: np.random.Generator) -> World:
    """Every question joins two of 45 conditions; each condition has one noise of SD 2 for all."""
    conditions = halves(N, 45, rng).matrix == 1
    first, second = np.triu_indices(45, 1)
    layers = rng.normal(0.0, 2.0, 45)
    queries, secret = of_matrix(conditions[first] & conditions[second]), bits(N, 0.5, rng)
    return noisy(queries, secret, np.rint(layers[first] + layers[second]))


@system()
def autoregressive(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 4 that is correlated by 0.8 from one answer to the next."""
    innovations = rng.normal(0.0, SIGMA * np.sqrt(1 - 0.8**2), M)
    innovations[0] = rng.normal(0.0, SIGMA)
    noise = np.rint(lfilter([1.0], [1.0, -0.8], innovations))
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), noise)


@system()
def drifting(rng: np.random.Generator) -> World:
    """Gaussian noise of SD 3 around an offset that grows from 0 to 8 while questions are asked."""
    offset = np.linspace(0.0, 8.0, M)
    return noisy(halves(N, M, rng), bits(N, 0.5, rng), np.rint(offset + rng.normal(0, 3.0, M)))


@system()
def diffix(rng: np.random.Generator) -> World:
    """The rebuilt Diffix 18.1 with a fresh salt: 1000 digit queries about clients of a bank."""
    bank = generated_bank(int(rng.integers(2**31)))
    people, secret = bank.between(2000, 2999), Bit("status = 'C'")
    every = digit_queries(people.ids)
    queries = every.take(np.sort(rng.choice(len(every), size=M, replace=False)))
    target = Diffix(bank, secret, "18.1", Salt(rng.bytes(16)))
    return World(ask(queries, target), people.truth(secret))


SYSTEMS = (
    repeated,
    near_repeated,
    overlapping_sets,
    error_per_person,
    layer_per_condition,
    autoregressive,
    drifting,
    diffix,
)
