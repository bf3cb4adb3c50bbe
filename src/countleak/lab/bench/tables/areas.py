"""Generated areas, each with linked tables of its people, as offices publish them by the thousand.

An area has sex x age x group of origin: that is never published, but sex x age, sex x origin and
age x origin are, with all margins. In each of them a cell of one or two people is not shown, and
in a line where it would be the only one hidden, nor is the next larger cell of the line. Half of
the areas also publish all three together, in bands of ages three times as wide. Areas of several
shapes have from 88 to 480 of the finest groups; people are drawn into them from shares that are
Dirichlet in each area, so that an area's tables say nothing of another's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, eye_array, kron

from countleak.attack.ledger import Ledger

SMALL = 2
# Sexes, bands of ages, groups of origin.
SHAPES = ((2, 11, 4), (2, 18, 5), (2, 18, 8), (2, 20, 12))
# Areas of these also publish sex x age x origin, in bands of so many of the bands of ages.
COARSE_TOO, BANDS = SHAPES[2:], 3
# People per finest group, on average.
DENSITY = 2.0
# Of the finest groups, what single published numbers leave open.
OPEN_SHARE = 0.785


@dataclass(frozen=True, eq=False)
class Areas:
    """So many areas' tables as one system, and the true counts (n,) behind them."""

    ledger: Ledger
    truth: NDArray[np.int64]
    hidden: int


def areas(rng: np.random.Generator, cells: int) -> Areas:
    """As many areas of each shape, about so many of whose finest groups are left open."""
    a_turn = sum(int(np.prod(shape)) for shape in SHAPES)
    each = ceil(cells / (OPEN_SHARE * a_turn))
    parts = [_of_shape(rng, shape, each) for shape in SHAPES]
    return Areas(
        Ledger(
            csr_array(block_diag([part.ledger.A for part in parts], format="csr")),
            np.concatenate([part.ledger.low for part in parts]),
            np.concatenate([part.ledger.high for part in parts]),
        ),
        np.concatenate([part.truth for part in parts]),
        sum(part.hidden for part in parts),
    )


def _of_shape(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> Areas:
    """``count`` areas of one shape."""
    n = int(np.prod(shape))
    shares = rng.dirichlet(np.full(n, 0.7), count)
    people = rng.poisson(DENSITY * n, count)
    truth = rng.multinomial(people, shares)
    rows, low, high = [], [], []
    cube = truth.reshape(count, *shape)
    hidden = 0
    for kept in _margins(len(shape)):
        out = tuple(1 + axis for axis in range(len(shape)) if axis not in kept)
        table = cube.sum(axis=out)
        secret = _suppressed(table) if len(kept) == len(shape) - 1 else np.zeros(table.shape, bool)
        hidden += int(secret.sum())
        low.append(np.where(secret, 0.0, table).reshape(count, -1))
        high.append(np.where(secret, np.inf, table).reshape(count, -1))
        rows.append(_sums(shape, kept))
    if shape in COARSE_TOO:
        table, sums = _coarse(cube)
        secret = (table > 0) & (table <= SMALL)
        hidden += int(secret.sum())
        low.append(np.where(secret, 0.0, table).reshape(count, -1))
        high.append(np.where(secret, np.inf, table).reshape(count, -1))
        rows.append(sums)
    return Areas(
        Ledger(
            csr_array(kron(eye_array(count), csr_array(np.vstack(rows)), format="csr")),
            np.concatenate(low, axis=1).ravel(),
            np.concatenate(high, axis=1).ravel(),
        ),
        truth.ravel(),
        hidden,
    )


def _coarse(cube: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The tables (areas, sexes, bands, origins) by coarse bands, and what each number adds up."""
    starts = np.arange(0, cube.shape[2], BANDS)
    single = np.eye(int(np.prod(cube.shape[1:]))).reshape(-1, *cube.shape[1:])
    sums = np.add.reduceat(single, starts, axis=2).reshape(single.shape[0], -1).T
    return np.add.reduceat(cube, starts, axis=2), sums


def _margins(dimensions: int) -> Iterator[tuple[int, ...]]:
    for size in range(dimensions - 1, -1, -1):
        yield from combinations(range(dimensions), size)


def _sums(shape: tuple[int, ...], kept: tuple[int, ...]) -> NDArray[np.float64]:
    """A row per cell of the table by the axes ``kept``, of 1 at the groups that it adds up."""
    at = np.indices(shape).reshape(len(shape), -1)
    of, size = np.zeros(at.shape[1], np.int64), 1
    for axis in kept:
        of, size = of * shape[axis] + at[axis], size * shape[axis]
    return np.asarray(np.arange(size)[:, None] == of, np.float64)


def _suppressed(tables: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which cells of some tables (areas, r, c) are not shown."""
    hidden = (tables > 0) & (tables <= SMALL)
    while True:
        before = hidden.sum()
        for axis in (1, 2):
            alone = hidden.sum(axis=axis, keepdims=True) == 1
            others = np.where(hidden | (tables == 0), np.iinfo(np.int64).max, tables)
            next_larger = others.argmin(axis=axis)
            chosen = np.zeros_like(hidden)
            np.put_along_axis(chosen, np.expand_dims(next_larger, axis), True, axis=axis)
            some = others.min(axis=axis, keepdims=True) < np.iinfo(np.int64).max
            hidden |= chosen & alone & some
        if hidden.sum() == before:
            return hidden
