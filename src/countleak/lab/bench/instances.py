"""Random instances of the reconstruction program, as the paper's simulations draw them."""

import numpy as np

from countleak.attack.programs import Problem
from countleak.attack.queries.digits import CONSTANTS, SWEEP_EXPONENTS, digit_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.audit.people import generated_census
from countleak.errors import InputError

SIGMA = 4.0


def instance(rows: str, n: int, m: int, seed: tuple[int, ...]) -> Problem:
    """n bits, m queries with rounded noise of SD 4; ``rows`` are `random` or `digits`."""
    rng = np.random.default_rng(seed)
    ids = generated_census(max(n, 2)).ids[:n]
    if rows == "random":
        matrix = random_subsets(ids, m, rng).matrix
    elif rows == "digits":
        primes = -(-m // (len(CONSTANTS) * len(SWEEP_EXPONENTS)))
        matrix = digit_queries(ids, primes=primes, exponents=SWEEP_EXPONENTS).matrix[:m]
    else:
        raise InputError(f"there are no rows {rows!r}; choose random or digits")
    noise = np.round(rng.normal(0.0, SIGMA, m))
    return Problem(matrix, matrix @ rng.integers(0, 2, n) + noise)
