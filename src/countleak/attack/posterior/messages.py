"""Message passing: probabilities of all bits in a few dozen matrix products.

Vector approximate message passing (Rangan, Schniter and Fletcher 2019) alternates between the
Gaussian answers, seen through the eigenvectors of the Gram matrix, and the Bernoulli prior. It
reaches where sampling from a random start would freeze, with fewer answers than people, but may
fail to settle: ``settled`` says so, and whoever uses it compares its fit with another's.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

DAMPING = 0.7
ROUNDS = 300
LEAST_VARIANCE = 1e-5


def pass_messages(
    A: NDArray[np.int8] | NDArray[np.float64],
    b: NDArray[np.float64],
    *,
    sigma: float | None = None,
    prior: float | None = None,
) -> NDArray[np.float64]:
    """The probability (n,) of a one, from answers b (m,) of Gaussian noise.

    ``sigma`` and ``prior`` are estimated unless given.
    """
    m, n = A.shape
    dense = A.astype(np.float64)
    eigenvalues, vectors = np.linalg.eigh(dense.T @ dense)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    projected = vectors.T @ (dense.T @ b)
    pi = 0.5 if prior is None else prior
    # Before anything is learned the noise may be all that the answers vary by.
    variance = sigma**2 if sigma is not None else float(b.var()) / 2 + 1e-3
    gamma2, r2 = 1 / (pi * (1 - pi)), np.full(n, pi)
    p = np.full(n, pi)
    for _ in range(ROUNDS):
        spread = 1 / (eigenvalues / variance + gamma2)
        mean = vectors @ (spread * (projected / variance + gamma2 * (vectors.T @ r2)))
        alpha = float(spread.mean())
        if sigma is None:
            # Expectation-maximisation: the misfit of the mean, and what its own doubt adds.
            misfit = float(((b - dense @ mean) ** 2).sum())
            found = (misfit + float((eigenvalues * spread).sum())) / m
            variance = max((1 - DAMPING) * variance + DAMPING * found, 1e-3)
        gamma1 = max(1 / alpha - gamma2, 1e-9)
        r1 = (mean / alpha - gamma2 * r2) / gamma1
        new = expit(logit(pi) + (r1 - 0.5) * gamma1)
        change = float(np.abs(new - p).mean())
        p = (1 - DAMPING) * p + DAMPING * new
        if prior is None:
            pi = float(np.clip(p.mean(), 0.5 / n, 1 - 0.5 / n))
        v = max(float((p * (1 - p)).mean()), LEAST_VARIANCE)
        extrinsic = 1 / v - gamma1
        floor = 1 / (pi * (1 - pi))
        if extrinsic >= floor:
            goal, r_goal = extrinsic, (p / v - gamma1 * r1) / extrinsic
        else:
            goal, r_goal = floor, p
        gamma2 = (1 - DAMPING) * gamma2 + DAMPING * goal
        r2 = (1 - DAMPING) * r2 + DAMPING * r_goal
        if change < 1e-5:
            break
    return np.asarray(p)
