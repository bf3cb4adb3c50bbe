"""(L) taken apart: what propagation settles, and the independent pieces that are left.

Whole counts solve (L) just where they have the settled ones and solve every piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, eye_array, vstack

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.bounds import Contradiction
from countleak.attack.ledger.differencing import differenced
from countleak.attack.ledger.propagation import components, propagate


@dataclass(frozen=True, eq=False)
class Piece:
    """(L) of some ``cells`` alone, given by their place in the whole, within ``limits``."""

    cells: NDArray[np.int64]
    ledger: Ledger
    limits: Limits

    def holds(self, x: NDArray[np.float64]) -> bool:
        """Whether counts of its cells solve it."""
        inside = (self.limits.low <= x) & (x <= self.limits.high)
        return bool(inside.all()) and self.ledger.holds(x)

    @property
    def bounded(self) -> Ledger:
        """The piece with its limits as rows."""
        A = vstack([self.ledger.A, eye_array(self.cells.size)], format="csr")
        low = np.append(self.ledger.low, self.limits.low)
        return Ledger(csr_array(A), low, np.append(self.ledger.high, self.limits.high))


@dataclass(frozen=True, eq=False)
class Apart:
    """The whole: the ``limits`` of all cells, and the pieces of those that are not settled."""

    limits: Limits
    pieces: tuple[Piece, ...]


def taken_apart(ledger: Ledger) -> Apart:
    """(L) in pieces; raises Contradiction where propagation leaves nothing."""
    small = differenced(ledger).ledger
    limits = propagate(small, Limits.none(small.cells))
    if limits is None:
        raise Contradiction
    fixed = np.where(limits.fixed, limits.low, 0.0)
    settled = np.asarray(small.A @ fixed, np.float64)
    pieces = []
    for rows, cells in components(small, limits):
        part = small.part(rows, cells)
        beside = Ledger(part.A, part.low - settled[rows], part.high - settled[rows])
        pieces.append(Piece(cells, beside, Limits(limits.low[cells], limits.high[cells])))
    return Apart(limits, tuple(pieces))


def joined(
    pieces: Sequence[Piece], row: NDArray[np.int64], value: float
) -> tuple[NDArray[np.int64], Ledger]:
    """The cells of some pieces, and (L) of them with a further row that adds up to ``value``.

    ``row`` are the cells of the further row, by their place in the whole.
    """
    cells = np.concatenate([piece.cells for piece in pieces])
    parts = [piece.bounded for piece in pieces]
    further = csr_array(np.isin(cells, row).astype(np.float64)[None, :])
    A = vstack([block_diag([part.A for part in parts]), further], format="csr")
    low = np.concatenate([*(part.low for part in parts), [value]])
    high = np.concatenate([*(part.high for part in parts), [value]])
    return cells, Ledger(csr_array(A), low, high)
