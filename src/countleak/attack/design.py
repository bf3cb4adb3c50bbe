"""Which questions to ask next: those whose answers are expected to tell most about the unsure.

Bits and a common offset of all answers, ``z`` (n + 1,), are believed to be Gaussian with covariance
``S``, and the answer to a query ``q`` is ``q'z`` with noise of variance ``s^2``. It would change

    S   into   S - uu' / (s^2 + q'u)        u = Sq

whatever the answer is, so a whole batch is chosen before any of it is asked, one query after the
other (Fedorov 1972; MacKay 1992). ``Information`` looks for the largest fall of ``log det S``,
``Variance`` for the largest fall of the variance of the bits in sum.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError, ShapeError

# A bit whose variance is below this, p = .001, is sure: nobody needs to ask about it any more.
SURE = 1e-3
# A bit's own precision is at least this: no belief about it is vaguer than a fair coin's.
VAGUE = 4.0
# What all answers are off by is believed to be about half of their noise.
OFFSET = 0.5
MATCHING_ROUNDS = 30
MATCHING_PACE = 0.7


@dataclass(frozen=True, eq=False)
class Belief:
    """What answers so far say of n bits: ``probability`` (n,) of a one, and ``covariance``.

    The latter (k + 1, k + 1) is that of those ``unsure`` (k,), positions among the n, and of the
    offset; ``sigma`` is the SD of an answer's noise, in people.
    """

    probability: NDArray[np.float64]
    unsure: NDArray[np.int64]
    covariance: NDArray[np.float64]
    sigma: float


def believe(asked: NDArray[np.int8], probability: NDArray[np.float64], sigma: float) -> Belief:
    """The Gaussian belief after answers to the queries ``asked`` (m, n), with noise ``sigma``.

    A decoder knows the bits' probabilities (n,) better than a Gaussian could, the questions how
    they depend on one another: precisions of the single bits are added to those of the answers
    until every variance is the p(1 - p) that the decoder found (Opper and Winther 2005).
    """
    if asked.shape[1] != probability.size:
        raise ShapeError(f"queries over {asked.shape[1]} people, but {probability.size} known")
    if not (np.isfinite(sigma) and sigma > 0):
        raise InputError(f"sigma is {sigma:g}; it must be above 0")
    variance = probability * (1 - probability)
    unsure = np.flatnonzero(variance > SURE)
    wanted = 1 / variance[unsure]
    rows = _weights(asked, unsure)
    answers = rows.T @ rows / sigma**2
    own = np.append(wanted, 1 / (OFFSET * sigma) ** 2)
    for _ in range(MATCHING_ROUNDS):
        spread = np.diag(np.linalg.inv(answers + np.diag(own)))[:-1]
        own[:-1] = np.maximum(own[:-1] + MATCHING_PACE * (wanted - 1 / spread), VAGUE)
    covariance = np.linalg.inv(answers + np.diag(own)).astype(np.float64)
    return Belief(probability, unsure, covariance, sigma)


class Goal(Protocol):
    """What a question should achieve."""

    def gains(
        self, expected: NDArray[np.float64], falls: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How good (m,) the queries are.

        ``expected`` (m,) is the variance of their answers over that of the noise, ``falls`` (m,)
        the bits' variance that each would take away.
        """
        ...


@dataclass(frozen=True)
class Information:
    """Learn as many nats as possible about all bits together (D-optimal)."""

    def gains(
        self, expected: NDArray[np.float64], falls: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(np.log1p(expected) / 2)


@dataclass(frozen=True)
class Variance:
    """Make the sum of the bits' variances as small as possible (A-optimal)."""

    def gains(
        self, expected: NDArray[np.float64], falls: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return falls


def choose(
    pool: Queries,
    candidates: NDArray[np.int64],
    belief: Belief,
    batch: int,
    goal: Goal | None = None,
) -> NDArray[np.int64]:
    """The best ``batch`` of the ``candidates``, positions in the ``pool``, in order of choice.

    All of them where they are fewer.
    """
    if batch < 1:
        raise InputError(f"a batch of {batch} questions; ask at least one")
    if pool.ids.size != belief.probability.size:
        raise ShapeError(f"a pool over {pool.ids.size} people, but {belief.probability.size} known")
    goal = goal or Information()
    Q = _weights(pool.matrix[candidates], belief.unsure)
    noise, S = belief.sigma**2, belief.covariance.copy()
    QS = Q @ S
    variance = np.einsum("ij,ij->i", QS, Q)
    # Of SQ' only the bits' part counts: nobody's secret is the offset.
    squares = np.einsum("ij,ij->i", QS[:, :-1], QS[:, :-1])
    left = np.ones(candidates.size, dtype=np.bool_)
    chosen = []
    for _ in range(min(batch, candidates.size)):
        gains = goal.gains(variance / noise, squares / (noise + variance))
        best = int(np.argmax(np.where(left, gains, -np.inf)))
        chosen.append(best)
        left[best] = False
        u, total = S @ Q[best], noise + variance[best]
        along = Q @ u
        bits = u[:-1]
        squares += (
            along**2 * (bits @ bits) / total**2 - 2 * along * (Q @ (S[:, :-1] @ bits)) / total
        )
        variance -= along**2 / total
        S -= np.outer(u, u) / total
    return candidates[np.array(chosen, dtype=np.int64)]


def _weights(matrix: NDArray[np.int8], unsure: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights (m, k + 1) of the unsure bits and, 1 in every query, of the offset."""
    return np.hstack([matrix[:, unsure], np.ones((len(matrix), 1))]).astype(np.float64)
