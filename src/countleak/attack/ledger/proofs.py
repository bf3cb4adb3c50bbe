"""Why a group can have no other count: published numbers, added and subtracted.

Multipliers y of the rows prove that a group c'x is at most v, whatever whole x >= 0 solves (L):

    A'y >= c,   sum of y_i high_i over y_i > 0  +  sum of y_i low_i over y_i < 0  <  v + 1   (U)

and -c in the place of c that it is at least -v. Where A'y = c and every row is one number, a single
y proves both. The program finds a short y in floating point; it counts only if (U) holds in exact
arithmetic, which is what ``Proof.verify`` recomputes from the published numbers alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, vstack

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.differencing import differenced
from countleak.attack.solvers.highs import build_model

# Multipliers are ratios of numbers no larger than this.
LARGEST_DENOMINATOR = 60
# The whole numbers above a bound begin here.
SHORT_OF_ONE = 1e-3


@dataclass(frozen=True)
class Proof:
    """Rows with their multipliers: together they bound a group's count from one side, or both."""

    terms: tuple[tuple[int, Fraction], ...]

    def most(self, ledger: Ledger) -> Fraction | None:
        """What the terms add up to at most; None where that has no bound."""
        total = Fraction(0)
        for row, times in self.terms:
            end = ledger.high[row] if times > 0 else ledger.low[row]
            if not np.isfinite(end):
                return None
            total += times * Fraction(int(end))
        return total

    def over(self, ledger: Ledger) -> dict[int, Fraction]:
        """A'y, by cell."""
        weights: dict[int, Fraction] = {}
        for row, times in self.terms:
            for cell in ledger.members(row).tolist():
                weights[cell] = weights.get(cell, Fraction(0)) + times
        return weights

    def shows_at_most(self, ledger: Ledger, cells: NDArray[np.int64], sign: int, v: int) -> bool:
        """Whether (U) holds exactly for sign * (the sum of the cells) <= v."""
        weights = self.over(ledger)
        for cell in cells.tolist():
            weights[cell] = weights.get(cell, Fraction(0)) - sign
        most = self.most(ledger)
        return most is not None and most < v + 1 and all(w >= 0 for w in weights.values())

    def equals(self, ledger: Ledger, cells: NDArray[np.int64]) -> bool:
        """Whether the terms are exact numbers that add up to just the cells."""
        weights = {cell: weight for cell, weight in self.over(ledger).items() if weight}
        return weights == dict.fromkeys(cells.tolist(), Fraction(1)) and all(
            ledger.low[row] == ledger.high[row] for row, _ in self.terms
        )


@dataclass(frozen=True)
class Proofs:
    """Why a count lies in an interval; both the same where the rows add up to just the group."""

    at_most: Proof
    at_least: Proof


Prove = Callable[[Ledger, NDArray[np.int64]], Proof | None]


class Prover:
    """Proofs from the published rows, found in their differences and checked in the rows."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._small = differenced(ledger)
        self._by_cell = csr_array(self._small.ledger.A.T)

    def prove(self, cells: NDArray[np.int64], low: int, high: int) -> Proofs | None:
        """Why the cells add up to ``low`` to ``high``; None where no multipliers show it."""
        most: Proof | None = None
        least = Proof(()) if low <= 0 else None
        for rows in self._around(cells):
            if low == high and (both := self._shown(rows, cells, prove_equal)) is not None:
                return Proofs(both, both)
            most = most or self._shown(rows, cells, partial(prove_at_most, sign=1, v=high))
            least = least or self._shown(rows, cells, partial(prove_at_most, sign=-1, v=-low))
            if most is not None and least is not None:
                return Proofs(most, least)
        return None

    def contradiction(self) -> Proof | None:
        """Why no counts fit at all; None where no multipliers show it."""
        every = np.arange(self._small.ledger.A.shape[0])
        return self._shown(every, np.zeros(0, np.int64), lambda some, _: prove_contradiction(some))

    def _around(self, cells: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The rows around the cells, and then with further and further ones."""
        rows, seen = np.zeros(0, np.int64), cells
        while True:
            reached = np.unique(self._by_cell[seen].indices).astype(np.int64)
            if reached.size == rows.size:
                return
            yield (rows := reached)
            seen = np.unique(self._small.ledger.A[rows].indices)

    def _shown(
        self, rows: NDArray[np.int64], cells: NDArray[np.int64], prove: Prove
    ) -> Proof | None:
        """A proof in published rows: those that make up the differences of a first one."""
        first = prove(*_part(self._small.ledger, rows, cells))
        if first is None:
            return None
        used = rows[[row for row, _ in first.terms]] if first.terms else rows[:0]
        published = np.unique(self._small.origin[used].indices).astype(np.int64)
        short = prove(*_part(self._ledger, published, cells))
        if short is None:
            return None
        return Proof(tuple((int(published[row]), times) for row, times in short.terms))


def _part(
    ledger: Ledger, rows: NDArray[np.int64], cells: NDArray[np.int64]
) -> tuple[Ledger, NDArray[np.int64]]:
    """(L) of some rows, with the cells that are in any of them, and where ``cells`` are then."""
    seen = np.union1d(ledger.A[rows].indices, cells).astype(np.int64)
    return ledger.part(rows, seen), np.searchsorted(seen, cells)


def prove_equal(ledger: Ledger, cells: NDArray[np.int64]) -> Proof | None:
    """Exact published numbers that add up to just the cells; None where there are none."""
    exact = np.flatnonzero(ledger.exact)
    y = _shortest(ledger.A[exact], cells, None, (0.0, 0.0))
    if y is None:
        return None
    proof = _as_proof(y, exact)
    return proof if proof.equals(ledger, cells) else None


def prove_at_most(ledger: Ledger, cells: NDArray[np.int64], sign: int, v: int) -> Proof | None:
    """Multipliers that prove sign * (the sum of the cells) <= v; None where none do so exactly."""
    cost = np.concatenate([ledger.high, -ledger.low])
    for spare in (0.0, 1 - SHORT_OF_ONE):
        y = _shortest(ledger.A, cells, cost, (float(sign), v + spare))
        if y is not None:
            proof = _as_proof(y, np.arange(ledger.A.shape[0]))
            if proof.shows_at_most(ledger, cells, sign, v):
                return proof
    return None


def _shortest(
    A: csr_array,
    cells: NDArray[np.int64],
    cost: NDArray[np.float64] | None,
    goal: tuple[float, float],
) -> NDArray[np.float64] | None:
    """The y (m,) of least sum |y|: with A'y = c, or by ``cost`` with A'y >= sign c at most v."""
    m, n = A.shape
    sign, v = goal if cost is not None else (1.0, 0.0)
    wanted = np.zeros(n)
    wanted[cells] = sign
    matrix = csc_array(hstack([A.T, -A.T], format="csc"))
    low, high = wanted, wanted if cost is None else np.full(n, inf)
    columns = np.full(2 * m, inf)
    if cost is not None:
        columns[np.isinf(cost)] = 0.0
        row = csc_array(np.where(np.isinf(cost), 0.0, cost)[None, :])
        matrix = csc_array(vstack([matrix, row], format="csc"))
        low, high = np.append(low, -inf), np.append(high, v)
    model = build_model(
        matrix,
        cost=np.ones(2 * m),
        columns=(np.zeros(2 * m), columns),
        rows=(low, high),
        options={"threads": 1, "solver": "simplex"},
    )
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    both = np.array(model.getSolution().col_value)
    return np.asarray(both[:m] - both[m:], np.float64)


def _as_proof(y: NDArray[np.float64], rows: NDArray[np.int64]) -> Proof:
    nearest = [Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in y.tolist()]
    return Proof(tuple((int(rows[i]), times) for i, times in enumerate(nearest) if times))


def prove_contradiction(ledger: Ledger) -> Proof | None:
    """Multipliers that prove 0 <= -1, so that no counts fit; None where none do so exactly.

    Their rows are a small contradictory set: the shortest multipliers use few.
    """
    nobody = np.zeros(0, np.int64)
    cost = np.concatenate([ledger.high, -ledger.low])
    y = _shortest(ledger.A, nobody, cost, (1.0, -1.0))
    if y is None:
        return None
    used = np.abs(y)[np.abs(y) > SHORT_OF_ONE**3]
    # Any multiple of y proves as much; of the one whose least part is 1 the fractions are short.
    proof = _as_proof(y / used.min(), np.arange(ledger.A.shape[0]))
    return proof if proof.shows_at_most(ledger, nobody, 1, -1) else None
