"""Random programs of every kind that a solver must survive, drawn from a seed."""

import numpy as np

from countleak.attack.programs import Problem


def random_case(seed: int) -> Problem:
    """n 1-150, m 1-3500, sigma 0-20, and one of the troubles of the list, or several."""
    rng = np.random.default_rng([seed, 77])
    n = int(rng.integers(1, 151))
    m = int(np.exp(rng.uniform(0, np.log(3500))))
    if rng.random() < 0.15:
        m = int(rng.integers(1, max(2, n)))
    kind = rng.choice(["bits", "signs", "real", "whole"], p=[0.7, 0.1, 0.1, 0.1])
    if kind == "bits":
        A = (rng.random((m, n)) < rng.choice([0.5, 0.5, 0.5, 0.1, 0.9])).astype(np.int8)
    elif kind == "signs":
        A = (2 * rng.integers(0, 2, (m, n)) - 1).astype(np.int8)
    elif kind == "whole":
        A = rng.integers(-2, 4, (m, n)).astype(np.int8)
    else:
        A = rng.normal(0, 1, (m, n))
    if rng.random() < 0.15:
        A[:, rng.integers(0, n, 1 + n // 5)] = rng.integers(0, 2)
    if rng.random() < 0.15 and m > 1:
        A[m // 2 :] = A[: m - m // 2]
    sigma = rng.choice([0.0, 0.5, 4.0, 20.0])
    b = A @ rng.integers(0, 2, n) + rng.normal(0, 1, m) * sigma
    if rng.random() < 0.7:
        b = np.round(b)
    trouble = rng.random()
    if trouble < 0.05:
        b = np.zeros(m)
    elif trouble < 0.10:
        b = b + rng.choice([-1, 1]) * 10 * n
    elif trouble < 0.15:
        b[rng.random(m) < 0.05] += 1000
    return Problem(A, b.astype(np.float64))
