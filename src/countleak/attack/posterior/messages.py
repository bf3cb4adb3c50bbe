"""Message passing: probabilities of all bits in a few dozen matrix products.

Vector approximate message passing (Rangan, Schniter and Fletcher 2019) alternates between the
Gaussian answers, seen through the eigenvectors of the Gram matrix, and the Bernoulli prior. It
reaches where sampling from a random start would freeze, with fewer answers than people, but may
not settle: compare its fit with that of another method.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from countleak.attack.solvers.machine import one_thread
from countleak.attack.solvers.squares import NormalEquations

DAMPING = 0.7
ROUNDS = 300
LEAST_VARIANCE = 1e-5


def pass_messages(equations: NormalEquations) -> NDArray[np.float64]:
    """The probability (n,) of a one given answers with Gaussian noise.

    The SD of the noise and the rate of ones are estimated on the way.
    """
    with one_thread():
        return _pass_messages(equations)


def _pass_messages(equations: NormalEquations) -> NDArray[np.float64]:
    m, n = equations.m, equations.c.size
    eigenvalues, vectors = equations.eigen
    projected = vectors.T @ equations.c
    p = np.full(n, 0.5)
    rate, r2 = 0.5, p
    # Before anything is learned the residuals may be nothing but noise.
    variance = equations.squares(p) / m + 1e-3
    gamma2 = 1 / (rate * (1 - rate))
    for _ in range(ROUNDS):
        spread = 1 / (eigenvalues / variance + gamma2)
        coordinates = spread * (projected / variance + gamma2 * (vectors.T @ r2))
        mean = vectors @ coordinates
        alpha = float(spread.mean())
        # Expectation-maximisation: the misfit of the mean, and what its own doubt adds.
        misfit = equations.bb + float(coordinates @ (eigenvalues * coordinates - 2 * projected))
        estimate = (max(misfit, 0.0) + float((eigenvalues * spread).sum())) / m
        variance = max((1 - DAMPING) * variance + DAMPING * estimate, 1e-3)
        gamma1 = max(1 / alpha - gamma2, 1e-9)
        r1 = (mean / alpha - gamma2 * r2) / gamma1
        new = expit(logit(rate) + (r1 - 0.5) * gamma1)
        change = float(np.abs(new - p).mean())
        p = (1 - DAMPING) * p + DAMPING * new
        rate = float(np.clip(p.mean(), 0.5 / n, 1 - 0.5 / n))
        v = max(float((p * (1 - p)).mean()), LEAST_VARIANCE)
        extrinsic = 1 / v - gamma1
        floor = 1 / (rate * (1 - rate))
        if extrinsic >= floor:
            goal, r_goal = extrinsic, (p / v - gamma1 * r1) / extrinsic
        else:
            goal, r_goal = floor, p
        gamma2 = (1 - DAMPING) * gamma2 + DAMPING * goal
        r2 = (1 - DAMPING) * r2 + DAMPING * r_goal
        if change < 1e-5:
            break
    return p
