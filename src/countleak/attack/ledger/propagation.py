"""What single rows say of single cells, again and again, and which cells hang together."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from countleak.attack.ledger import Ledger, Limits

# Bounds move by whole numbers, but may take as many steps as there are people: the linear program
# settles what so many sweeps leave open.
SWEEPS = 50


def propagate(ledger: Ledger, limits: Limits) -> Limits | None:
    """The limits as far as rows taken one by one shrink them; None: they leave nothing."""
    # Loaded here: compiled code takes a third of a second to load.
    from countleak.attack.ledger.kernels import sweep

    low, high = limits.low.copy(), limits.high.copy()
    starts, members = ledger.A.indptr.astype(np.int64), ledger.A.indices.astype(np.int64)
    possible = sweep(starts, members, ledger.low, ledger.high, low, high, SWEEPS)
    return Limits(low, high) if possible else None


def components(ledger: Ledger, limits: Limits) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The rows and the cells that still say something of each other, a pair per component.

    Cells that are settled, and rows that say nothing more of theirs, belong to none.
    """
    free = ~limits.fixed
    least, most = ledger.A @ limits.low, sums_of(ledger.A, limits.high)
    telling = (least < ledger.low) | (most > ledger.high)
    entries = ledger.A.tocoo()
    rows, cells = entries.coords
    kept = telling[rows] & free[cells]
    rows, cells = rows[kept], cells[kept]
    label = _labels(rows, cells, ledger.A.shape)
    m = ledger.A.shape[0]
    in_rows, in_cells = np.unique(rows), np.unique(cells)
    if not in_cells.size:
        return []
    order = np.unique(label[m + in_cells])
    rows_of = _split(in_rows, label[in_rows], order)
    return list(zip(rows_of, _split(in_cells, label[m + in_cells], order), strict=True))


def connected(A: csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which component each row and each cell of a system is in, by number."""
    rows, cells = A.tocoo().coords
    label = _labels(rows, cells, A.shape)
    return label[: A.shape[0]].astype(np.int64), label[A.shape[0] :].astype(np.int64)


def _labels(
    rows: NDArray[np.int64], cells: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.int32]:
    """The component of every row, and then of every cell, by the entries that join them."""
    m, n = shape
    graph = coo_array((np.ones(rows.size, np.int8), (rows, m + cells)), shape=(m + n, m + n))
    _, label = connected_components(graph, directed=False)
    return np.asarray(label, np.int32)


def sums_of(rows: csr_array, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of some x that may be infinite, where 0 times infinity is 0."""
    infinite = np.isinf(x)
    sums = np.asarray(rows @ np.where(infinite, 0.0, x), np.float64)
    sums[np.asarray(rows @ infinite.astype(np.float64)) > 0] = np.inf
    return sums


def beside(
    ledger: Ledger, limits: Limits, rows: NDArray[np.int64], cells: NDArray[np.int64]
) -> Ledger:
    """The rows of a component, over its cells alone: less what their settled cells add."""
    A = csr_array(ledger.A[rows])
    settled = np.asarray(A @ np.where(limits.fixed, limits.low, 0.0), np.float64)
    return Ledger(csr_array(A[:, cells]), ledger.low[rows] - settled, ledger.high[rows] - settled)


def _split(
    what: NDArray[np.int64], label: NDArray[np.int32], order: NDArray[np.int32]
) -> list[NDArray[np.int64]]:
    by_label = what[np.argsort(label, kind="stable")].astype(np.int64)
    ends = np.searchsorted(np.sort(label), order, side="right")
    return np.split(by_label, ends[:-1])
