"""The compiled search for every whole number of ones per group that fits all rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.machine import compiled

kernel = compiled()


def every_fit(
    U: NDArray[np.int64],
    sizes: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    most: int,
    steps: int,
) -> NDArray[np.int64] | None:
    """All z (k, g) with 0 <= z <= sizes (g,) and low <= Uz <= high, for U (r, g) of -1, 0 and 1.

    None where there are more than ``most``, or finding them takes more than ``steps`` rows looked
    at.
    """
    order = _order(U)
    rows, ends = _by_group(U[:, order])
    found = np.empty((most, sizes.size), np.int64)
    count = _search(U[:, order], sizes[order], low, high, rows, ends, found, steps)
    if count < 0:
        return None
    fits = np.empty((count, sizes.size), np.int64)
    fits[:, order] = found[:count]
    return fits


def _order(U: NDArray[np.int64]) -> NDArray[np.int64]:
    """The groups in the order to be set: next the one whose rows have least left open."""
    members = U != 0
    left = members.sum(axis=1).astype(np.float64)
    order = np.empty(U.shape[1], np.int64)
    waiting = np.ones(U.shape[1], np.bool_)
    for at in range(order.size):
        # A row that is nearly complete says most.
        score = members.T.astype(np.float64) @ (1 / np.maximum(left, 1.0) ** 2)
        chosen = int(np.argmax(np.where(waiting, score, -1.0)))
        order[at], waiting[chosen] = chosen, False
        left -= members[:, chosen]
    return order


def _by_group(U: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of each group, one group after the other, and where each group ends."""
    group, row = np.nonzero(U.T)
    return row.astype(np.int64), np.cumsum(np.bincount(group, minlength=U.shape[1]))


@kernel
def _search(
    U: Any, sizes: Any, low: Any, high: Any, rows: Any, ends: Any, found: Any, steps: int
) -> int:
    """How many fits were written to ``found``; -1: there are more, or it takes too long."""
    r, g = U.shape
    # What the groups from j on can still add to each row, at least and at most.
    least, most = np.zeros((g + 1, r), np.int64), np.zeros((g + 1, r), np.int64)
    for j in range(g - 1, -1, -1):
        for i in range(r):
            least[j, i] = least[j + 1, i] + min(0, U[i, j] * sizes[j])
            most[j, i] = most[j + 1, i] + max(0, U[i, j] * sizes[j])
    total = np.zeros(r, np.int64)
    for i in range(r):
        if least[0, i] > high[i] or most[0, i] < low[i]:
            return 0
    z = np.full(g, -1, np.int64)
    count, looked, j = 0, 0, 0
    while j >= 0:
        begin = 0 if j == 0 else ends[j - 1]
        if z[j] == sizes[j]:
            for t in range(begin, ends[j]):
                total[rows[t]] -= U[rows[t], j] * z[j]
            z[j] = -1
            j -= 1
            continue
        first = z[j] < 0
        z[j] += 1
        looked += ends[j] - begin + 1
        if looked > steps:
            return -1
        fits = True
        for t in range(begin, ends[j]):
            i = rows[t]
            if not first:
                total[i] += U[i, j]
            if total[i] + least[j + 1, i] > high[i] or total[i] + most[j + 1, i] < low[i]:
                fits = False
        if not fits:
            continue
        if j + 1 < g:
            j += 1
            continue
        if count == found.shape[0]:
            return -1
        for t in range(g):
            found[count, t] = z[t]
        count += 1
    return count
