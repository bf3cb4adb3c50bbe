import os

import numpy as np
import pytest

from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.rows import Dense, Packed, held

RNG = np.random.default_rng(3)


def kinds():
    matrix = RNG.integers(0, 2, (300, 131), dtype=np.int8)
    yield "dense", Dense(matrix)
    yield "packed", Packed.of([matrix[:77], matrix[77:]], 300, 131)
    columns = np.sort(RNG.choice(2**34, 131, replace=False))
    yield "hashed by ids", HashedRows(5, RNG.integers(0, 5000, 300), columns)
    yield "hashed in order", HashedRows(2**32 - 1, np.arange(300), np.arange(131))


@pytest.mark.parametrize(("name", "rows"), list(kinds()), ids=[name for name, _ in kinds()])
def test_products_are_those_of_the_matrix(name, rows):
    matrix = rows.dense().astype(np.float64)
    some, people = RNG.integers(0, 300, 40), RNG.random(131) < 0.3
    for part, dense in (
        (rows, matrix),
        (rows.take(some), matrix[some]),
        (rows.without(people), matrix[:, ~people]),
    ):
        assert part.shape == dense.shape
        assert (part.dense() == dense).all()
        x, y = RNG.normal(size=dense.shape[1]), RNG.normal(size=dense.shape[0])
        np.testing.assert_allclose(part.dot(x), dense @ x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(part.tdot(y), dense.T @ y, rtol=0, atol=1e-12)
        bits = x > 0
        assert (part.dot(bits.astype(np.float64)) == dense @ bits).all()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs to choose cores")
def test_sums_are_the_same_on_any_number_of_cores():
    rows, x = HashedRows(9, np.arange(9000), np.arange(2000)), RNG.normal(size=2000)
    cores = os.sched_getaffinity(0)
    several = rows.dot(x), rows.tdot(rows.dot(x))
    os.sched_setaffinity(0, {min(cores)})
    try:
        one = rows.dot(x), rows.tdot(rows.dot(x))
    finally:
        os.sched_setaffinity(0, cores)
    assert all((a == b).all() for a, b in zip(one, several, strict=True))


def test_many_rows_are_held_as_bits(monkeypatch):
    matrix = RNG.integers(0, 2, (300, 131), dtype=np.int8)
    assert (held([matrix], 300, 131) == matrix).all()
    monkeypatch.setattr("countleak.attack.queries.rows.SMALL", 1000)
    packed = held(iter(matrix[:, None, :]), 300, 131)
    assert isinstance(packed, Packed)
    assert packed.bits.nbytes < matrix.nbytes / 5
    assert (packed.dense() == matrix).all()
