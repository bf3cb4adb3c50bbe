"""Message passing: probabilities of all bits in a few dozen matrix products.

Vector approximate message passing (Rangan, Schniter and Fletcher 2019) alternates between the
Gaussian answers, seen through the eigenvectors of the Gram matrix, and the Bernoulli prior. It
reaches where sampling from a random start would freeze, with fewer answers than people, and its
probabilities are calibrated on the way, since each round's estimate is a bit in Gaussian noise of
known size. But it may not settle: ``Messages`` says whether it did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from countleak.attack.solvers.machine import one_thread
from countleak.attack.solvers.squares import NormalEquations

DAMPING = 0.7
ROUNDS = 300
# Steps towards the likeliest noise per round.
NOISE_STEPS = 5
LEAST_VARIANCE, LEAST_NOISE = 1e-5, 1e-3
# Probabilities that move by less per round, on average, have stopped; by less than the second
# number they have settled for all purposes.
STOPPED, STILL = 1e-5, 1e-3
# Estimates of a bit that are so far off will not come back.
RUNAWAY = 1e6


@dataclass(frozen=True, eq=False)
class Messages:
    """What message passing ends with: the ``probability`` (n,) of a one.

    ``variance`` is that of the noise, in people squared, and ``rate`` the share of ones, both as
    estimated. ``settled`` says whether the probabilities stopped moving, and fit the answers better
    than the rate alone does.
    """

    probability: NDArray[np.float64]
    variance: float
    rate: float
    settled: bool

    @property
    def expected_right(self) -> float:
        """The share of right bits to expect, by the probabilities."""
        return float(np.maximum(self.probability, 1 - self.probability).mean())


def pass_messages(equations: NormalEquations) -> Messages:
    """Probabilities of all bits given answers with Gaussian noise.

    The SD of the noise and the rate of ones are estimated on the way.
    """
    with one_thread():
        return _pass_messages(equations)


def _pass_messages(equations: NormalEquations) -> Messages:
    m, n = equations.m, equations.c.size
    eigenvalues, vectors = equations.eigen
    p = np.full(n, 0.5)
    rate, r2 = 0.5, p
    # Before anything is learned the residuals may be nothing but noise.
    variance = equations.squares(p) / m + LEAST_NOISE
    gamma2 = 1 / (rate * (1 - rate))
    for _ in range(ROUNDS):
        # What the answers say beyond r2, seen through the eigenvectors.
        beyond = vectors.T @ (equations.c - equations.G @ r2)
        goal = _noise(eigenvalues, beyond, equations.squares(r2), m, (variance, gamma2))
        spread = 1 / (eigenvalues / variance + gamma2)
        alpha = float(spread.mean())
        gamma1 = max(1 / alpha - gamma2, 1e-9)
        r1 = r2 + vectors @ (spread * beyond) / (variance * alpha * gamma1)
        variance = max((1 - DAMPING) * variance + DAMPING * goal, LEAST_NOISE)
        new = expit(logit(rate) + (r1 - 0.5) * gamma1)
        change = float(np.abs(new - p).mean())
        p = (1 - DAMPING) * p + DAMPING * new
        rate = float(np.clip(p.mean(), 0.5 / n, 1 - 0.5 / n))
        # Bits leave no more open than Gaussian values of the same variance would.
        most = 1 / (gamma1 + 1 / (rate * (1 - rate)))
        v = min(max(float((p * (1 - p)).mean()), LEAST_VARIANCE), most)
        extrinsic = 1 / v - gamma1
        gamma2 = (1 - DAMPING) * gamma2 + DAMPING * extrinsic
        r2 = (1 - DAMPING) * r2 + DAMPING * (p / v - gamma1 * r1) / extrinsic
        if np.abs(r2).max() > RUNAWAY:
            change = np.inf
        if change < STOPPED or change == np.inf:
            break
    learned = equations.squares(p) <= equations.squares(np.full(n, rate))
    return Messages(p, variance, rate, change < STILL and learned)


def _noise(
    eigenvalues: NDArray[np.float64],
    beyond: NDArray[np.float64],
    squares: float,
    m: int,
    now: tuple[float, float],
) -> float:
    """The variance of the noise that makes the answers likelier, by expectation-maximisation.

    Bits are Gaussian with precision ``now[1]`` around a mean at which the residuals have so many
    ``squares``; the search begins at ``now[0]``.
    """
    variance, precision = now
    for _ in range(NOISE_STEPS):
        spread = 1 / (eigenvalues / variance + precision)
        shift = spread * beyond / variance
        # The misfit of the mean, and what its own doubt adds.
        misfit = squares + float(shift @ (eigenvalues * shift - 2 * beyond))
        variance = (max(misfit, 0.0) + float((eigenvalues * spread).sum())) / m
        variance = max(variance, LEAST_NOISE)
    return variance
