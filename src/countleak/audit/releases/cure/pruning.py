"""Whether a hidden number can be shown again, judged in the components that it touches."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, eye_array, vstack

from countleak.attack.ledger import Ledger, rows_of
from countleak.attack.ledger.bounds import Bounder, Interval, taken_apart
from countleak.attack.ledger.component import Clock, Component
from countleak.audit.releases.findings import groups_of, tells
from countleak.audit.releases.model import Model


class Opening:
    """Tables of which nothing is pinned, and which of their hidden numbers may be shown."""

    def __init__(self, model: Model, small: int, clock: Clock):
        self._model, self._small, self._clock = model, small, clock
        self._groups = list(groups_of(model, small))
        cells = [group.cells for group in self._groups]
        self._within = csr_array(rows_of(cells, model.ledger.cells).T)
        hidden = [row for row, number in enumerate(model.numbers) if number.value is None]
        self._of_row = dict(zip(hidden, range(len(hidden)), strict=True))
        self._shown: set[int] = set()
        self._part = np.full(model.ledger.cells, -1)
        self._place = np.zeros(model.ledger.cells, np.int64)
        self._parts: list[tuple[Component, NDArray[np.int64]]] = []
        limits, parts = taken_apart(model.ledger, clock)
        self._low, self._high = limits.low.copy(), limits.high.copy()
        self._add(parts)

    def show(self, row: int, low: float, high: float) -> bool:
        """Show a hidden number again, and say so, if nothing is pinned by it.

        From ``low`` to ``high`` people are behind what is shown.
        """
        cells = self._model.ledger.members(row)
        own, fixed = self._of_row[row], np.equal(self._low, self._high)[cells]
        if fixed.all():
            self._shown.add(own)
            return True
        settled = self._low[cells[fixed]].sum()
        where, ledger = self._together(cells[~fixed], low - settled, high - settled)
        bounder = Bounder(ledger, self._clock.left)
        around = np.unique(self._within[where].indices)
        for at in around.tolist():
            if at != own and at not in self._shown and self._pinned(at, where, bounder):
                return False
        self._shown.add(own)
        limits, found = taken_apart(ledger, self._clock)
        self._low[where], self._high[where] = limits.low, limits.high
        self._part[where] = -1
        self._add((part, where[inside]) for part, inside in found)
        return True

    def _pinned(self, at: int, where: NDArray[np.int64], bounder: Bounder) -> bool:
        """Whether a group is given away, or may be, where some cells are bounded anew."""
        group = self._groups[at]
        inside = np.flatnonzero(np.isin(where, group.cells))
        if group.stated is None and bounder.may_exceed(inside, self._small):
            return False
        rest = self._interval(group.cells[~np.isin(group.cells, where)])
        end = bounder.interval(inside)
        exact = end.exact and rest.exact
        total = Interval(rest.low + end.low, rest.high + end.high, exact)
        return not exact or tells(group, total, self._small)

    def _interval(self, cells: NDArray[np.int64]) -> Interval:
        settled = cells[self._part[cells] < 0]
        low, high, exact = int(self._low[settled].sum()), float(self._high[settled].sum()), True
        for k in np.unique(self._part[cells]).tolist():
            if k >= 0:
                part, _ = self._parts[k]
                own = self._place[cells[self._part[cells] == k]]
                end = part.ends(rows_of([own], part.ledger.cells)).interval(0)
                low, high, exact = low + end.low, high + end.high, exact and end.exact
        return Interval(low, high, exact)

    def _add(self, parts: Iterable[tuple[Component, NDArray[np.int64]]]) -> None:
        for part, cells in parts:
            self._part[cells], self._place[cells] = len(self._parts), np.arange(cells.size)
            self._parts.append((part, cells))

    def _together(
        self, row: NDArray[np.int64], low: float, high: float
    ) -> tuple[NDArray[np.int64], Ledger]:
        """The components that a row touches, their cells, and (L) of them with the row."""
        touched = np.unique(self._part[row])
        parts = [self._parts[k] for k in touched[touched >= 0].tolist()]
        # Cells that are in no component are free within their limits.
        alone = row[self._part[row] < 0]
        cells = np.concatenate([*(own for _, own in parts), alone])
        blocks = [part.ledger for part, _ in parts]
        A = block_diag([*(each.A for each in blocks), csr_array((0, alone.size))])
        every, further = csr_array(eye_array(cells.size)), np.flatnonzero(np.isin(cells, row))
        rows = csr_array(vstack([A, every, rows_of([further], cells.size)], format="csr"))
        lows = [*(each.low for each in blocks), self._low[cells], [low]]
        highs = [*(each.high for each in blocks), self._high[cells], [high]]
        return cells, Ledger(rows, np.concatenate(lows), np.concatenate(highs))
