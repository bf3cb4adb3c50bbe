"""Rows that a hash of a seed makes: half of the people each, never stored.

    key(v, s):   v = v 0x1E3779B1 + s; v ^= v >> 16; v *= 0x21F0AAAD; v ^= v >> 15;
                 v *= 0x735A2D97; v ^= v >> 15
    word(r, k):  h = r ^ k; h *= 0x7FEB352D; h ^= h >> 15; h *= 0x735A2D97; h ^= h >> 16
    Q[i, j]    = bit 8 (j % 4) + (i % 128) // 16 of
                 word(key(16 (i // 128) + i % 16, seed), key(j // 4, ~seed))

all modulo 2^32. So 8 rows and 4 columns share a word: it is made once, and its bytes index tables
of partial sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.rows import share_out
from countleak.errors import InputError

ALL = 2**32 - 1
ADDED, MIXED, MIXED_AGAIN = 0x1E3779B1, 0x21F0AAAD, 0x735A2D97
FIRST = 0x7FEB352D
# Columns are numbered below this, so that a quarter of the number fits into 32 bits.
MOST_COLUMNS = 2**34


def keys(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint32]:
    """The key of each number."""
    v = numbers.astype(np.uint32) * np.uint32(ADDED) + np.uint32(seed)
    v ^= v >> np.uint32(16)
    v *= np.uint32(MIXED)
    v ^= v >> np.uint32(15)
    v *= np.uint32(MIXED_AGAIN)
    return np.asarray(v ^ (v >> np.uint32(15)))


def row_keys(rows: NDArray[np.int64], seed: int) -> NDArray[np.uint32]:
    """The key of each row, which eight of them share."""
    return keys(16 * (rows // 128) + rows % 16, seed)


def parts(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of the eight each row is."""
    return np.asarray(rows % 128 // 16)


def column_keys(columns: NDArray[np.int64], seed: int) -> NDArray[np.uint32]:
    """The key of each column, which four of them share."""
    return keys(columns // 4, ~seed & ALL)


@dataclass(frozen=True, eq=False)
class HashedRows:
    """The rows numbered ``rows`` (m,) over the columns numbered ``columns`` (n,), by a seed."""

    seed: int
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= ALL:
            raise InputError(f"the seed of hashed queries is {self.seed}; give one of 32 bits")
        if self.columns.min(initial=0) < 0 or self.columns.max(initial=0) >= MOST_COLUMNS:
            raise InputError("hashed queries take whole-number ids from 0 to below 2^34")

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.size, self.columns.size

    @cached_property
    def by_row(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The keys that rows share, and where each row stands among eight to a key."""
        groups, group = np.unique(16 * (self.rows // 128) + self.rows % 16, return_inverse=True)
        return keys(groups, self.seed), 8 * group + parts(self.rows)

    @cached_property
    def by_column(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The keys that columns share, and where each column stands among four to a key."""
        quads, quad = np.unique(self.columns // 4, return_inverse=True)
        return keys(quads, ~self.seed & ALL), 4 * quad + self.columns % 4

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        from countleak.attack.queries.kernels import hashed_times

        (by_row, row_at), (by_column, column_at) = self.by_row, self.by_column
        by_column = _padded(by_column, 8)
        values, out = np.zeros(4 * by_column.size), np.empty((by_row.size, 8))
        values[column_at] = x
        each = values.reshape(-1, 4)
        share_out(
            lambda first, last: hashed_times(by_row, by_column, each, out, first, last),
            by_row.size,
            32 * by_row.size * by_column.size,
        )
        return out.ravel()[row_at]

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from countleak.attack.queries.kernels import hashed_transposed_times

        (by_row, row_at), (by_column, column_at) = self.by_row, self.by_column
        by_row = _padded(by_row, 4)
        values, out = np.zeros(8 * by_row.size), np.empty((by_column.size, 4))
        # A row may have been taken twice.
        np.add.at(values, row_at, y)
        each = values.reshape(-1, 8)
        share_out(
            lambda first, last: hashed_transposed_times(by_row, by_column, each, out, first, last),
            by_column.size,
            32 * by_row.size * by_column.size,
        )
        return out.ravel()[column_at]

    def take(self, positions: NDArray[np.int64]) -> "HashedRows":
        return HashedRows(self.seed, self.rows[positions], self.columns)

    def without(self, people: NDArray[np.bool_]) -> "HashedRows":
        return HashedRows(self.seed, self.rows, self.columns[~people])

    def dense(self) -> NDArray[np.int8]:
        from countleak.attack.queries.kernels import hashed_bits

        out = np.empty(self.shape, np.int8)
        by_row, by_column = row_keys(self.rows, self.seed), column_keys(self.columns, self.seed)
        hashed_bits(by_row, parts(self.rows), by_column, self.columns % 4, out)
        return out


def _padded(each: NDArray[np.uint32], to: int) -> NDArray[np.uint32]:
    """The keys, and any others up to a multiple of ``to``; what they are multiplied with is 0."""
    return np.append(each, np.zeros(-each.size % to, np.uint32))
