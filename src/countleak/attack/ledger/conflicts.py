"""Published numbers that cannot all be true, as few as can be: without any one of them counts fit.

The multipliers that prove a contradiction name rows; where only whole numbers rule all counts out,
the rows of a component that no whole counts fit take their place. Either is then divided again and
again until what is left is irreducible.
"""

from dataclasses import dataclass, field
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array
from scipy.sparse.csgraph import connected_components

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.proofs import Proof, Prover, prove_contradiction
from countleak.attack.solvers.highs import build_model

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Conflict:
    """The ``rows`` that cannot all be true.

    ``proof`` adds them up to a contradiction; None where it takes that counts are whole.
    ``irreducible``: counts are known that fit whichever row is left out.
    """

    rows: tuple[int, ...]
    proof: Proof | None
    irreducible: bool


def conflict_of(ledger: Ledger, time_limit: float = 60.0) -> Conflict | None:
    """Few rows that no whole counts fit; None where none were found in ``time_limit`` seconds."""
    fits = _Fits(ledger, monotonic() + time_limit)
    rows = _first(ledger, fits)
    if rows is None:
        return None
    few = np.sort(_irreducible(fits, rows))
    irreducible = all(fits(np.delete(few, at)) for at in range(few.size))
    return Conflict(tuple(few.tolist()), _proof(ledger, few), irreducible)


def _first(ledger: Ledger, fits: "_Fits") -> Rows | None:
    """Rows that no counts fit: those of a proof, or all of a component, the smallest first."""
    empty = np.flatnonzero(ledger.low > ledger.high)
    if empty.size:
        return empty[:1]
    proof = Prover(ledger).contradiction()
    if proof is not None:
        return np.array([row for row, _ in proof.terms], np.int64)
    for rows in _components(ledger):
        if fits(rows) is False:
            return rows
    return None


def _proof(ledger: Ledger, rows: Rows) -> Proof | None:
    """Multipliers of just these rows, checked exactly."""
    if (ledger.low[rows] > ledger.high[rows]).any():
        return None
    cells = np.unique(ledger.A[rows].indices).astype(np.int64)
    found = prove_contradiction(ledger.part(rows, cells))
    return found and Proof(tuple((int(rows[at]), times) for at, times in found.terms))


def _components(ledger: Ledger) -> list[Rows]:
    """The rows that share cells, the smallest components first."""
    entries = ledger.A.tocoo()
    m, n = ledger.A.shape
    rows, cells = entries.coords
    graph = coo_array((np.ones(rows.size, np.int8), (rows, m + cells)), shape=(m + n, m + n))
    _, label = connected_components(graph, directed=False)
    parts = [np.flatnonzero(label[:m] == one) for one in np.unique(label[:m])]
    return sorted(parts, key=lambda part: part.size)


def _irreducible(fits: "_Fits", rows: Rows) -> Rows:
    """The few of ``rows`` that no counts fit; ``rows`` themselves do not fit.

    QuickXplain (Junker 2004): what is needed of one half, given the other, and the reverse. Rows of
    which time does not tell whether they are needed are kept.
    """
    nothing = np.zeros(0, np.int64)

    def needed(given: Rows, added: Rows, some: Rows) -> Rows:
        if added.size and fits(given) is False:
            return nothing
        if some.size == 1:
            return some
        left, right = np.split(some, [some.size // 2])
        of_right = needed(np.append(given, left), left, right)
        of_left = needed(np.append(given, of_right), of_right, left)
        return np.append(of_left, of_right)

    return needed(nothing, nothing, rows)


@dataclass
class _Fits:
    """Whether whole counts fit some rows: asked of HiGHS, and of counts that were seen before."""

    ledger: Ledger
    deadline: float
    seen: list[NDArray[np.float64]] = field(default_factory=list)

    def __call__(self, rows: Rows) -> bool | None:
        """Whether any do; None where the time ran out."""
        ledger = self.ledger
        if not rows.size or any(self._inside(sums, rows) for sums in self.seen):
            return True
        left = self.deadline - monotonic()
        if left <= 0:
            return None
        cells = np.unique(ledger.A[rows].indices)
        part = ledger.part(rows, cells.astype(np.int64))
        model = build_model(
            csc_array(part.A),
            cost=np.zeros(cells.size),
            columns=(np.zeros(cells.size), np.full(cells.size, np.inf)),
            rows=(part.low, part.high),
            options={"threads": 1, "time_limit": left},
            whole=cells.size,
        )
        model.run()
        if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return False
        if model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        x = np.zeros(ledger.cells)
        x[cells] = np.rint(model.getSolution().col_value)
        sums = np.asarray(ledger.A @ x, np.float64)
        if not self._inside(sums, rows):
            return None
        self.seen.append(sums)
        return True

    def _inside(self, sums: NDArray[np.float64], rows: Rows) -> bool:
        low, high = self.ledger.low[rows], self.ledger.high[rows]
        return bool((low <= sums[rows]).all() and (sums[rows] <= high).all())
