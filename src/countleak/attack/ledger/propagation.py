"""What single rows say of single cells, again and again, and which cells hang together."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
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
    least, most = ledger.A @ limits.low, _sums(ledger, limits.high)
    telling = (least < ledger.low) | (most > ledger.high)
    entries = ledger.A.tocoo()
    rows, cells = entries.coords
    kept = telling[rows] & free[cells]
    rows, cells = rows[kept], cells[kept]
    m, n = ledger.A.shape
    graph = coo_array((np.ones(rows.size, np.int8), (rows, m + cells)), shape=(m + n, m + n))
    _, label = connected_components(graph, directed=False)
    in_rows, in_cells = np.unique(rows), np.unique(cells)
    if not in_cells.size:
        return []
    order = np.unique(label[m + in_cells])
    rows_of = _split(in_rows, label[in_rows], order)
    return list(zip(rows_of, _split(in_cells, label[m + in_cells], order), strict=True))


def _sums(ledger: Ledger, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A x, where x may be infinite."""
    infinite = np.isinf(x)
    sums = np.asarray(ledger.A @ np.where(infinite, 0.0, x), np.float64)
    sums[np.asarray(ledger.A @ infinite.astype(np.float64)) > 0] = np.inf
    return sums


def _split(
    what: NDArray[np.int64], label: NDArray[np.int32], order: NDArray[np.int32]
) -> list[NDArray[np.int64]]:
    by_label = what[np.argsort(label, kind="stable")].astype(np.int64)
    ends = np.searchsorted(np.sort(label), order, side="right")
    return np.split(by_label, ends[:-1])
