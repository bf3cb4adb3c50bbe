"""People whom a system counts twice: they are in its table twice, or a join repeats them.

A bit 1 that is counted twice adds 2 to every count. Which bits are is drawn along with the bits,
and the share of them under a prior with most of its weight at none (spike and slab: Mitchell and
Beauchamp 1988).
"""

import numpy as np
from numpy.typing import NDArray

# What share of the bits may be counted twice: most likely none.
SHARES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
LOG_PRIOR = np.log(np.concatenate([[0.9], np.full(SHARES.size - 1, 0.1 / (SHARES.size - 1))]))


def draw_twice(
    twice: NDArray[np.bool_],
    x: NDArray[np.int64],
    c: NDArray[np.float64],
    G: NDArray[np.float64],
    rng: np.random.Generator,
) -> bool:
    """Draw which bits (kn,) would be counted twice, in place; whether any changed.

    c (kn,) is A'C^-1 (b - Av) at the values v that now count, and follows them, and G (k, n, n) is
    A'C^-1 A, C the covariance of the answers. Bits 0 say nothing about it: theirs are of the prior.
    """
    ones, before, n = np.flatnonzero(x == 1), twice.copy(), G.shape[1]
    many = int(twice[ones].sum())
    with np.errstate(divide="ignore"):
        log = LOG_PRIOR + (ones.size - many) * np.log1p(-SHARES)
        log += many * np.log(SHARES) if many else 0.0
    share = SHARES[np.argmax(log + rng.gumbel(size=log.size))]
    if share == 0.0:
        twice[:] = False
        return bool(before.any())
    odds = np.log(share / (1 - share))
    twice[:] = np.where(x == 1, twice, rng.random(x.size) < share)
    for j, chance in zip(ones.tolist(), rng.logistic(size=ones.size), strict=True):
        block, at = divmod(j, n)
        # How much likelier the answers are if it is counted twice.
        gain = c[j] + G[block, at, at] * (float(twice[j]) - 0.5)
        now = gain + odds > chance
        if now != twice[j]:
            step = 1.0 if now else -1.0
            c[block * n : (block + 1) * n] -= step * G[block, at]
            twice[j] = now
    return bool((before != twice).any())
