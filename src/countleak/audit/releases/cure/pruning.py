"""Whether a hidden number can be shown again, judged in the pieces that it touches."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from countleak.attack.ledger.bounds import Bounder, Interval
from countleak.attack.ledger.pieces import Piece, joined, taken_apart
from countleak.audit.releases.findings import Group, groups_of, tells
from countleak.audit.releases.model import Model


class Opening:
    """Tables of which nothing is pinned, and which of their hidden numbers may be shown."""

    def __init__(self, model: Model, small: int):
        self._model, self._small = model, small
        self._groups = list(groups_of(model, small))
        self._within = _incidence(self._groups, model.ledger.cells)
        hidden = [row for row, number in enumerate(model.numbers) if number.value is None]
        self._of_row = dict(zip(hidden, range(len(hidden)), strict=True))
        self._shown: set[int] = set()
        apart = taken_apart(model.ledger)
        self._low = apart.limits.low.copy()
        self._piece = np.full(model.ledger.cells, -1)
        self._place = np.zeros(model.ledger.cells, np.int64)
        self._pieces: list[Piece] = []
        self._bounders: dict[int, Bounder] = {}
        self._replace(apart.pieces)

    def show(self, row: int, value: int, time_limit: float) -> bool:
        """Show a hidden number again, and say so, if nothing is pinned by it."""
        cells = self._model.ledger.members(row)
        touched = np.unique(self._piece[cells])
        own = self._of_row[row]
        pieces = [self._pieces[k] for k in touched[touched >= 0].tolist()]
        if not pieces:
            self._shown.add(own)
            return True
        settled = self._low[cells[self._piece[cells] < 0]].sum()
        where, ledger = joined(pieces, cells, value - settled)
        bounder = Bounder(ledger, time_limit)
        around = np.unique(self._within[where].indices)
        for at in around.tolist():
            if at != own and at not in self._shown and self._pinned(at, where, bounder):
                return False
        self._shown.add(own)
        apart = taken_apart(ledger)
        self._low[where] = apart.limits.low
        self._piece[where] = -1
        self._replace(
            [Piece(where[piece.cells], piece.ledger, piece.limits) for piece in apart.pieces]
        )
        return True

    def _pinned(self, at: int, where: NDArray[np.int64], bounder: Bounder) -> bool:
        """Whether a group is given away, or may be, where some cells are bounded anew."""
        group = self._groups[at]
        inside = np.flatnonzero(np.isin(where, group.cells))
        if group.stated is None and bounder.may_exceed(inside, self._small):
            return False
        rest = group.cells[~np.isin(group.cells, where)]
        low, high, exact = self._interval(rest)
        end = bounder.interval(inside)
        total = Interval(low + end.low, high + end.high, exact and end.exact)
        return not total.exact or tells(group, total, self._small)

    def _interval(self, cells: NDArray[np.int64]) -> tuple[int, float, bool]:
        settled = int(self._low[cells[self._piece[cells] < 0]].sum())
        low, high, exact = settled, float(settled), True
        for k in np.unique(self._piece[cells]).tolist():
            if k >= 0:
                if k not in self._bounders:
                    self._bounders[k] = Bounder(self._pieces[k].bounded)
                part = self._bounders[k].interval(self._place[cells[self._piece[cells] == k]])
                low, high, exact = low + part.low, high + part.high, exact and part.exact
        return low, high, exact

    def _replace(self, pieces: "list[Piece] | tuple[Piece, ...]") -> None:
        for piece in pieces:
            self._piece[piece.cells] = len(self._pieces)
            self._place[piece.cells] = np.arange(piece.cells.size)
            self._pieces.append(piece)


def _incidence(groups: list[Group], cells: int) -> csr_array:
    """Which groups each cell is in: a row per cell."""
    members = np.concatenate([group.cells for group in groups] or [np.zeros(0, np.int64)])
    number = np.repeat(np.arange(len(groups)), [group.cells.size for group in groups])
    ones = np.ones(members.size, np.int8)
    return csr_array((ones, (members, number)), shape=(cells, len(groups)))
