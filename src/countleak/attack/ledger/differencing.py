"""Published sums less those that they contain: the same system in smaller pieces.

Where one row adds up some cells of another and is exact, the other less it is a row of the cells
that are left. Nothing is lost, and what hung together by its totals falls apart: most of what
several tables pin together is seen by this alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from countleak.attack.ledger import Ledger

# The pairs of rows that have a cell in common are looked at; more would take too long.
MOST_PAIRS = 500_000_000
# So many of them at a time, for memory.
PAIRS_AT_A_TIME = 5_000_000


@dataclass(frozen=True, eq=False)
class Differenced:
    """(L) in smaller rows, each the sum of ``origin`` (k, m) of whole times the published rows."""

    ledger: Ledger
    origin: csr_array


def differenced(ledger: Ledger) -> Differenced:
    """The same system, in which no exact row contains cells of just another."""
    A = csr_array(ledger.A, dtype=np.float64)
    origin = csr_array(eye_array(A.shape[0], dtype=np.float64))
    low, high = ledger.low.copy(), ledger.high.copy()
    while True:
        rows, parts = _contained(A, low == high)
        if not rows.size:
            break
        less = csr_array((np.ones(rows.size), (rows, parts)), shape=(A.shape[0], A.shape[0]))
        value = np.zeros(A.shape[0])
        value[rows] = low[parts]
        A, origin = csr_array(A - less @ A), csr_array(origin - less @ origin)
        A.eliminate_zeros()
        low, high = low - value, high - value
    kept = _distinct(A, low, high)
    return Differenced(Ledger(A[kept], low[kept], high[kept]), csr_array(origin[kept]))


def _contained(
    A: csr_array, exact: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that contain all cells of an exact row and more, each with the largest of those."""
    sizes = np.asarray(A.sum(axis=1)).ravel()
    candidates = np.flatnonzero(exact)
    by_cell = np.asarray(A.sum(axis=0)).ravel()
    if float((by_cell**2).sum()) > MOST_PAIRS:
        # Rows of many cells have something in common with nearly all others.
        candidates = candidates[sizes[candidates] <= np.median(sizes)]
    pairs = np.cumsum(A[candidates] @ by_cell)
    cuts = np.flatnonzero(np.diff(pairs // PAIRS_AT_A_TIME)) + 1
    found = [_inside(A, some, sizes) for some in np.split(candidates, cuts)]
    part, row = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((part, -sizes[part], row))
    row, part = row[order], part[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return row[first].astype(np.int64), part[first].astype(np.int64)


def _inside(
    A: csr_array, candidates: NDArray[np.int64], sizes: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of one of the candidates and a larger row that has all of its cells."""
    common = (A[candidates] @ A.T).tocoo()
    part, row = candidates[common.coords[0]], common.coords[1].astype(np.int64)
    inside = (common.data == sizes[part]) & (sizes[row] > sizes[part])
    return part[inside], row[inside]


def _distinct(
    A: csr_array, low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The rows but for those that say the same of the same cells."""
    A.sort_indices()
    seen: dict[tuple[bytes, float, float], int] = {}
    for row in range(A.shape[0]):
        members = A.indices[A.indptr[row] : A.indptr[row + 1]].tobytes()
        seen.setdefault((members, low[row], high[row]), row)
    return np.array(sorted(seen.values()), dtype=np.int64)
