"""Sphere decoding: the bits of least squared error, proven by exhausting all that could be better.

With A = QR the error is |Q'b - Rx|^2 plus a constant, a sum that grows with every bit fixed from
the last to the first; a branch is given up as soon as it exceeds the best complete sum.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from countleak.attack.solvers.machine import compiled


def search(
    A: NDArray[np.float64], b: NDArray[np.float64], x: NDArray[np.float64], nodes: int
) -> tuple[NDArray[np.float64], bool]:
    """The best bits (n,) reached from x (n,), and whether they are proven to be the best.

    The proof is given up after ``nodes`` partial sums.
    """
    # Pivoting leaves the columns that decide most to the first levels of the tree.
    Q, R, order = qr(A, mode="economic", pivoting=True)
    n = x.size
    if R.shape[0] < n:
        return x, False
    pivoted = x[order].astype(np.int64)
    finished = _search(np.ascontiguousarray(R), Q.T @ b, pivoted, nodes)
    best = np.empty(n)
    best[order] = pivoted
    return best, bool(finished)


@compiled()
def _search(R, z, best, nodes):
    """Whether the search was exhausted: depth first, the nearer bit first, ``best`` improved."""
    n = best.size
    limit = 0.0
    for i in range(n):
        r = z[i]
        for j in range(i, n):
            r -= R[i, j] * best[j]
        limit += r * r
    x = np.zeros(n, np.int64)
    tried = np.zeros(n, np.int64)
    rest = np.zeros(n)
    below = np.zeros(n + 1)
    level = n - 1
    rest[level] = z[level]
    for _ in range(nodes):
        if tried[level] == 2:
            tried[level] = 0
            level += 1
            if level == n:
                return True
            continue
        near = 1 if rest[level] / R[level, level] >= 0.5 else 0
        x[level] = near if tried[level] == 0 else 1 - near
        tried[level] += 1
        r = rest[level] - R[level, level] * x[level]
        total = below[level + 1] + r * r
        if total >= limit - 1e-9:
            # The other bit is further still.
            tried[level] = 2
            continue
        if level == 0:
            limit = total
            best[:] = x
            continue
        below[level] = total
        level -= 1
        rest[level] = z[level]
        for j in range(level + 1, n):
            rest[level] -= R[level, j] * x[j]
    return False
