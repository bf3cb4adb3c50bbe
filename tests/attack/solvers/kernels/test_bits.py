"""Bits against plain matrices: products, rows, selections, and the counted Gram matrix."""

import numpy as np
import pytest
from numba import njit

from countleak.attack.solvers.kernels.bits import (
    prepare,
    scaled_row,
    select,
    times,
    transposed_times,
)
from countleak.errors import InputError


@njit
def products(Q, x, y):
    Ax, Ay = np.empty(Q.m), np.empty(Q.n)
    times(Q, x, Ax)
    transposed_times(Q, y, Ay)
    return Ax, Ay


@njit
def row(Q, i, scale):
    out = np.empty(Q.n)
    scaled_row(Q, i, scale, out)
    return out


@njit
def part(Q, rows, columns):
    return select(Q, rows, columns)


def matrices():
    rng = np.random.default_rng(0)
    for m, n in ((1, 1), (3, 70), (65, 8), (130, 33)):
        bits = rng.integers(0, 2, (m, n))
        yield bits.astype(np.int8)
        yield (2 * bits - 1).astype(np.int8)
        yield np.where(bits == 1, 2.5, -0.5)
        yield rng.normal(size=(m, n))
    yield np.ones((9, 5), dtype=np.int8)
    yield np.zeros((9, 5), dtype=np.int8)
    yield rng.integers(0, 2, (40, 20)).astype(bool)
    yield np.asfortranarray(rng.integers(0, 2, (40, 20), dtype=np.int8))[::2]


@pytest.mark.parametrize("A", list(matrices()), ids=lambda A: f"{A.dtype}{A.shape}")
def test_every_matrix_gives_the_products_of_numpy(A):
    rng = np.random.default_rng(1)
    Q, dense = prepare(A), A.astype(np.float64)
    x, y = rng.normal(size=A.shape[1]), rng.normal(size=A.shape[0])
    Ax, Ay = products(Q, x, y)
    assert np.allclose(Ax, dense @ x)
    assert np.allclose(Ay, dense.T @ y)
    assert np.allclose(row(Q, A.shape[0] - 1, 2.0), 2 * dense[-1])
    assert np.allclose(Q.gram, dense.T @ dense, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("A", list(matrices()), ids=lambda A: f"{A.dtype}{A.shape}")
def test_a_selection_is_the_smaller_matrix(A):
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(A.shape[0], (A.shape[0] + 1) // 2, replace=False))
    columns = np.sort(rng.choice(A.shape[1], (A.shape[1] + 1) // 2, replace=False))
    x, y = rng.normal(size=columns.size), rng.normal(size=rows.size)
    Ax, Ay = products(part(prepare(A), rows, columns), x, y)
    small = A.astype(np.float64)[np.ix_(rows, columns)]
    assert np.allclose(Ax, small @ x)
    assert np.allclose(Ay, small.T @ y)


def test_entries_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match="not finite"):
        prepare(np.array([[0.0, np.inf]]))
