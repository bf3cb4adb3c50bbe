"""Small attacks decoded by other means than countleak's own, to hold the predictions against."""

import numpy as np
from scipy.optimize import linprog, lsq_linear
from scipy.special import expit


def draw(rng, n, m, prior, noise, family):
    """Queries A (m, n), a secret with the share ``prior`` of ones, and answers."""
    low, density = (-1, 0.5) if family.name == "signs" else (0, family.mean)
    A = np.where(rng.random((m, n)) < density, 1, low).astype(float)
    x = (rng.permutation(n) < round(prior * n)).astype(float)
    return A, x, A @ x + noise(rng, m)


def ls(A, b):
    # The triangle of A has the same least squares and far fewer rows.
    Q, R = np.linalg.qr(A)
    return lsq_linear(R, Q.T @ b, bounds=(0, 1), method="bvls").x >= 0.5


def lp(A, b):
    m, n = A.shape
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    rows = np.hstack([A, np.eye(m), -np.eye(m)])
    bounds = [(0, 1)] * n + [(0, None)] * (2 * m)
    return linprog(cost, A_eq=rows, b_eq=b, bounds=bounds, method="highs").x[:n] >= 0.5


def bayes(A, b, loss, prior, rng, sweeps=150):
    """The likelier bits by a plain Gibbs sampler; ``loss`` is -log of the noise's density."""
    n = A.shape[1]
    odds = np.log(prior / (1 - prior))
    x = ls(A, b).astype(float)
    r, p = b - A @ x, np.zeros(n)
    for sweep in range(sweeps):
        for i in range(n):
            without = r + A[:, i] * x[i]
            chance = expit(odds + (loss(without) - loss(without - A[:, i])).sum())
            x[i] = rng.random() < chance
            r = without - A[:, i] * x[i]
            if sweep >= sweeps // 3:
                p[i] += chance
    return p / (sweeps - sweeps // 3) >= 0.5


def messages(A, b, bound, steps=300, damping=0.8):
    """The likelier bits under whole-number noise within ± ``bound``, by message passing.

    Rangan's generalised approximate message passing, for queries of mean 0.
    """
    m, n = A.shape
    w, square = np.arange(-bound, bound + 1), A**2
    x, spread, s = np.full(n, 0.5), np.full(n, 0.25), np.zeros(m)
    for _ in range(steps):
        V = square @ spread
        off = (b - A @ x + V * s)[:, None] - w
        weight = np.exp(-((off**2) - (off**2).min(axis=1, keepdims=True)) / (2 * V[:, None]))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = (weight * off).sum(axis=1)
        left = (weight * off**2).sum(axis=1) - mean**2
        s = damping * mean / V + (1 - damping) * s
        tau2 = 1 / (square.T @ np.maximum((1 - left / V) / V, 1e-9))
        p = expit((x + tau2 * (A.T @ s) - 0.5) / tau2)
        x, spread = damping * p + (1 - damping) * x, np.maximum(p * (1 - p), 1e-6)
    return x >= 0.5
