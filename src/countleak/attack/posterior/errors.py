"""What people add to every count besides their bit: an error of their own, or a second count.

Whoever is in the system may bring an error, or only whoever counts, where noise sticks to the set
of people that match. A bit 1 counts twice where someone is in the table twice or a join repeats
them. How large errors are, and how many are counted twice, is drawn along with the bits, under
priors with most of their weight at none (spike and slab: Mitchell and Beauchamp 1988).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The SDs that errors may have, in people.
SPREADS = np.geomspace(0.03, 2.0, 20)
# How likely there are none beforehand; half of the rest is for errors of everyone.
NO_ERRORS = 0.9
# What share of the ones may be counted twice: most likely none.
SHARES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
LOG_SHARES = np.log(np.concatenate([[0.9], np.full(SHARES.size - 1, 0.1 / (SHARES.size - 1))]))


@dataclass(frozen=True, eq=False)
class Score:
    """How answers pull at people's errors: ``pull`` q along axes of precision ``width`` w.

    An error u along an axis changes the log-likelihood by q u - w u^2 / 2.
    """

    width: NDArray[np.float64]
    pull: NDArray[np.float64]

    def evidence(self) -> NDArray[np.float64]:
        """Log-likelihood of each of SPREADS, next to that of no errors, these integrated out."""
        variance = SPREADS[:, None] ** 2
        w, q = self.width.ravel(), self.pull.ravel()
        spread = 1 + variance * w
        return np.asarray(-0.5 * (np.log(spread) - variance * q**2 / spread).sum(axis=1))

    def draw(self, sd: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Errors of SD ``sd`` along the axes."""
        spread = sd**2 / (1 + sd**2 * self.width)
        noise = rng.normal(size=self.pull.shape)
        return np.asarray(spread * self.pull + np.sqrt(spread) * noise)


def draw_spreads(
    everyone: Score, ones: Score | None, rng: np.random.Generator
) -> tuple[float, float]:
    """The SD of the error of everyone, and that of the error of ones; at most one is not 0."""
    kinds = [everyone] if ones is None else [everyone, ones]
    prior = np.log((1 - NO_ERRORS) / (len(kinds) * SPREADS.size))
    log = np.concatenate([[np.log(NO_ERRORS)], *(prior + kind.evidence() for kind in kinds)])
    chosen = int(np.argmax(log + rng.gumbel(size=log.size)))
    kind, at = divmod(chosen - 1, SPREADS.size)
    sd = float(SPREADS[at])
    return (0.0, 0.0) if chosen == 0 else (sd, 0.0) if kind == 0 else (0.0, sd)


def draw_share(twice: int, once: int, rng: np.random.Generator) -> float:
    """The share of ones that are counted twice, one of SHARES, where so many are and are not."""
    with np.errstate(divide="ignore"):
        log = LOG_SHARES + once * np.log1p(-SHARES)
        log += twice * np.log(SHARES) if twice else 0.0
    return float(SHARES[np.argmax(log + rng.gumbel(size=log.size))])
