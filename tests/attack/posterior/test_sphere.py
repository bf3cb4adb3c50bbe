from itertools import product

import numpy as np
import pytest

from countleak.attack.posterior.sphere import search

ALL = np.array(list(product([0.0, 1.0], repeat=9)))


@pytest.mark.parametrize("seed", range(10))
def test_it_proves_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (25, 9)).astype(float)
    b = A @ rng.integers(0, 2, 9) + rng.normal(0, 3, 25)
    best, proven = search(A, b, np.zeros(9), 10_000)
    assert proven
    least = ((b - ALL @ A.T) ** 2).sum(axis=1).min()
    assert ((b - A @ best) ** 2).sum() == pytest.approx(least)


def test_it_says_when_it_gave_up():
    rng = np.random.default_rng(0)
    A, b = rng.integers(0, 2, (60, 40)).astype(float), rng.normal(10, 8, 60)
    x, proven = search(A, b, np.ones(40), 50)
    assert not proven and set(x) <= {0.0, 1.0}
    assert not search(A[:20], b[:20], np.ones(40), 50)[1]
