"""Whom m queries weigh, as rows of a matrix that need not be stored: only products are asked for.

``Dense`` rows hold a byte per entry and any weights; ``Packed`` rows hold 0 and 1 in a bit each;
those of a hash (``hashing``) hold nothing. Sums are taken in double precision, where whole numbers
are exact up to 2^53, and come out the same whatever the number of threads.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# Entries up to which rows are held in a byte each: it is quicker, and small.
SMALL = 30_000_000
# Entries that a core passes in a millisecond.
FEW = 2**24
# Entries, in bytes, that are made of bits at a time.
CHUNK = 2**24


@runtime_checkable
class Rows(Protocol):
    """m rows of weights over n people."""

    @property
    def shape(self) -> tuple[int, int]:
        """m and n."""
        ...

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums (m,) that each row makes of x (n,)."""
        ...

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums (n,) that each column makes of y (m,)."""
        ...

    def take(self, positions: NDArray[np.int64]) -> "Rows":
        """Some rows, in that order."""
        ...

    def without(self, people: NDArray[np.bool_]) -> "Rows":
        """The same rows over everyone but ``people`` (n,)."""
        ...

    def dense(self) -> NDArray[np.int8]:
        """All entries (m, n), in a byte each."""
        ...


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows as a matrix (m, n) of -1, 0 and 1, in a byte each."""

    matrix: NDArray[np.int8]

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.matrix.shape
        return m, n

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.matrix @ np.asarray(x, dtype=np.float64))

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.asarray(y, dtype=np.float64) @ self.matrix)

    def take(self, positions: NDArray[np.int64]) -> "Dense":
        return Dense(self.matrix[positions])

    def without(self, people: NDArray[np.bool_]) -> "Dense":
        return Dense(self.matrix[:, ~people])

    def dense(self) -> NDArray[np.int8]:
        return self.matrix


@dataclass(frozen=True, eq=False)
class Packed:
    """Rows of 0 and 1 over ``people``, eight to a byte: ``bits`` (m, w), w a multiple of 8.

    Bit t of byte k is person 8 k + t; bits beyond the last person are 0.
    """

    bits: NDArray[np.uint8]
    people: int

    @classmethod
    def of(cls, blocks: Iterable[NDArray[Any]], m: int, people: int) -> "Packed":
        """The rows that ``blocks``, each (some, n) of 0 and 1, hold one after the other."""
        packed, at = np.zeros((m, width_of(people)), np.uint8), 0
        for block in blocks:
            rows = np.packbits(block.astype(np.bool_, copy=False), axis=1, bitorder="little")
            packed[at : at + len(block), : rows.shape[1]] = rows
            at += len(block)
        return cls(packed, people)

    @property
    def shape(self) -> tuple[int, int]:
        return self.bits.shape[0], self.people

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        from countleak.attack.queries.kernels import packed_times

        m = self.bits.shape[0]
        out = np.empty(m)
        padded = extended(x, 8 * self.bits.shape[1])
        share_out(
            lambda first, last: packed_times(self.bits, padded, out, first, last),
            m,
            m * self.people,
        )
        return out

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from countleak.attack.queries.kernels import packed_transposed_times

        m, width = self.bits.shape
        out, padded = np.empty(8 * width), extended(y, -(-m // 32) * 32)
        share_out(
            lambda first, last: packed_transposed_times(self.bits, padded, out, first, last),
            width,
            m * self.people,
        )
        return out[: self.people]

    def take(self, positions: NDArray[np.int64]) -> "Packed":
        return Packed(self.bits[positions], self.people)

    def without(self, people: NDArray[np.bool_]) -> "Packed":
        kept = (block[:, ~people] for block in self.blocks())
        return Packed.of(kept, self.bits.shape[0], int((~people).sum()))

    def dense(self) -> NDArray[np.int8]:
        return self._unpacked(self.bits)

    def blocks(self) -> Iterator[NDArray[np.int8]]:
        """All entries, some rows at a time, in a byte each."""
        step = max(1, CHUNK // self.people)
        for at in range(0, self.bits.shape[0], step):
            yield self._unpacked(self.bits[at : at + step])

    def _unpacked(self, bits: NDArray[np.uint8]) -> NDArray[np.int8]:
        entries = np.unpackbits(bits, axis=1, count=self.people, bitorder="little")
        return entries.view(np.int8)


def held(blocks: Iterable[NDArray[Any]], m: int, people: int) -> NDArray[np.int8] | Packed:
    """m rows of 0 and 1 that ``blocks``, each (some, n), hold one after the other, as they fit."""
    if m * people > SMALL:
        return Packed.of(blocks, m, people)
    return np.concatenate([block.astype(np.int8, copy=False) for block in blocks])


def width_of(people: int) -> int:
    """The bytes of a packed row over so many people."""
    return -(-people // 64) * 8


def extended(values: NDArray[Any], size: int) -> NDArray[np.float64]:
    """``values`` in double precision with as many zeros behind them as ``size`` takes."""
    out = np.zeros(size)
    out[: values.size] = values
    return out


def share_out(task: Callable[[int, int], None], count: int, entries: int) -> None:
    """Call ``task`` for parts of 0, ..., count - 1 on all cores that this process may use.

    A product of so few ``entries`` that threads would take longer to start is left on one.
    """
    if entries < FEW:
        task(0, count)
        return
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    ends = np.linspace(0, count, min(cores, max(1, count // 64)) + 1).astype(int).tolist()
    with ThreadPoolExecutor(len(ends) - 1) as pool:
        list(pool.map(task, ends[:-1], ends[1:]))
