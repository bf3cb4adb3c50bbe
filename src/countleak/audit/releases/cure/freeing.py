"""Which numbers to hide so that a group can have more people, or fewer: a linear program per group.

    min  sum of w_i |A_i d| over the shown numbers i
    s.t. x + d >= 0,  low <= A (x + d) <= high for the hidden ones,  d moves the group by a step

``x`` are counts that fit what was published. Numbers with A_i d = 0 may stay; the others are
hidden, and can then move as well, in the same direction. This is the linear heuristic for
complementary suppression (Kelly, Golden and Assad, 1992), over all tables at once.
"""

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, eye_array, hstack

from countleak.attack.ledger import Ledger
from countleak.attack.solvers.highs import build_model
from countleak.errors import SolverError

MOVED = 1e-6
OPTIONS = {"threads": 1, "presolve": "off", "solver": "simplex"}


class Freeing:
    """The program, from one group to the next; what one hides costs the others nothing."""

    def __init__(self, ledger: Ledger, shown: NDArray[np.bool_], weight: NDArray[np.float64]):
        """``shown`` (m,) rows are numbers that may be hidden, at the price ``weight`` (m,)."""
        self._ledger = ledger
        self._shown = np.flatnonzero(shown)
        self._hides: set[int] = set()
        self._x = _counts(ledger)
        m, n, k = ledger.A.shape[0], ledger.cells, self._shown.size
        sums = np.asarray(ledger.A @ self._x)
        low = np.where(shown, 0.0, np.minimum(ledger.low - sums, 0.0))
        high = np.where(shown, 0.0, np.maximum(ledger.high - sums, 0.0))
        slack = csc_array(eye_array(m, format="csc")[:, self._shown])
        self._model = build_model(
            csc_array(hstack([ledger.A, -slack, slack], format="csc")),
            cost=np.concatenate([np.zeros(n), weight[shown], weight[shown]]),
            columns=(np.append(-self._x, np.zeros(2 * k)), np.full(n + 2 * k, np.inf)),
            rows=(low, high),
            options=OPTIONS,
        )

    def free(self, cells: NDArray[np.int64], low: int, high: int) -> None:
        """Choose what to hide so that the cells can add up to less than ``low``, and more."""
        now = float(self._x[cells].sum())
        for goal in (high + 1, low - 1):
            if goal >= 0:
                self._towards(cells, goal - now)

    @property
    def hides(self) -> list[int]:
        """The rows that are to be hidden."""
        return sorted(self._hides)

    def _towards(self, cells: NDArray[np.int64], step: float) -> None:
        model, n, k = self._model, self._ledger.cells, self._shown.size
        model.addRow(step, step, cells.size, cells.astype(np.int32), np.ones(cells.size))
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            d = np.array(model.getSolution().col_value)
            moved = np.flatnonzero(d[n : n + k] + d[n + k :] > MOVED)
            self._hides |= set(self._shown[moved].tolist())
            free = np.concatenate([n + moved, n + k + moved]).astype(np.int32)
            model.changeColsCost(free.size, free, np.zeros(free.size))
        model.deleteRows(1, np.array([self._ledger.A.shape[0]], np.int32))


def _counts(ledger: Ledger) -> NDArray[np.float64]:
    """Counts that fit, whole or not."""
    model = build_model(
        csc_array(ledger.A),
        cost=np.zeros(ledger.cells),
        columns=(np.zeros(ledger.cells), np.full(ledger.cells, np.inf)),
        rows=(ledger.low, ledger.high),
        options={"threads": 1},
    )
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"no counts were found that fit ({model.getModelStatus().name})")
    return np.asarray(np.maximum(np.array(model.getSolution().col_value), 0.0), np.float64)
