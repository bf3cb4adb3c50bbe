"""Everything ever published about the same people, as one system over unknown counts.

    low <= A x <= high,   x whole, 0 or more,   A of 0 and 1                               (L)

``x`` (n,) counts the people in each of the finest groups that the tables tell apart. A row is one
published number: the groups that it adds up, and what it may be by what was published.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from countleak.errors import ShapeError


@dataclass(frozen=True, eq=False)
class Ledger:
    """(L): ``A`` (m, n), ``low`` and ``high`` (m,) whole numbers; ``high`` may be infinite."""

    A: csr_array
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, ends in (("low", self.low), ("high", self.high)):
            if ends.shape != self.A.shape[:1]:
                raise ShapeError(f"{self.A.shape[0]} rows but {name} has the shape {ends.shape}")

    @property
    def cells(self) -> int:
        """n."""
        return int(self.A.shape[1])

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which rows (m,) can be one number only."""
        return np.equal(self.low, self.high)

    def members(self, row: int) -> NDArray[np.int64]:
        """The cells that a row adds up."""
        start, end = self.A.indptr[row : row + 2]
        return np.asarray(self.A.indices[start:end], np.int64)

    def holds(self, x: NDArray[np.float64]) -> bool:
        """Whether counts (n,) solve (L)."""
        sums = self.A @ x
        whole = np.equal(x, np.rint(x)).all() and (x >= 0).all()
        return bool(whole and (sums >= self.low).all() and (sums <= self.high).all())

    def part(self, rows: NDArray[np.int64], cells: NDArray[np.int64]) -> "Ledger":
        """(L) of some rows and cells alone."""
        return Ledger(csr_array(self.A[rows][:, cells]), self.low[rows], self.high[rows])


@dataclass(frozen=True, eq=False)
class Limits:
    """What is left of each cell's count: ``low`` <= x <= ``high``, both (n,)."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def none(cls, n: int) -> "Limits":
        """Counts of which nothing is known."""
        return cls(np.zeros(n), np.full(n, np.inf))

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Which cells (n,) have one count left."""
        return np.equal(self.low, self.high)


def rows_of(groups: Sequence[NDArray[np.int64]], n: int) -> csr_array:
    """A row per group, of 1 at each of its cells, of n."""
    starts = np.cumsum([0, *(cells.size for cells in groups)])
    cells = np.concatenate([np.zeros(0, np.int64), *groups])
    return csr_array((np.ones(cells.size), cells, starts), shape=(len(groups), n))
