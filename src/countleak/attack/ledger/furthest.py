"""Counts that solve (L), and how far apart two such can be: what is left open about the people.

Of two solutions x and y, some people of x have no counterpart in y:

    max  sum of d    s.t. x and y solve (L),  d <= x - y + M (1 - b),  d <= M b,  b of 0 and 1   (V)

with M the width of each cell's limits. Where both have equally many people this is half of their L1
distance. Pieces are independent, so that their distances add up. A pair that was found is checked
against the published rows; a bound from above is that of the linear relaxation, recomputed in exact
fractions from its multipliers, whatever the solver says (Neumaier and Shcherbina, 2004).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, isfinite
from time import monotonic

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, block_diag, csc_array, csr_array, eye_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.bounds import Bounder, Contradiction
from countleak.attack.ledger.pieces import Piece, taken_apart
from countleak.attack.solvers.highs import build_model
from countleak.errors import NoResult

# Multipliers are multiples of 1 over this.
FINENESS = 2**20
EDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Variability:
    """Two solutions ``first`` and ``second`` (n,), ``at_least`` people apart.

    No two are more than ``at_most`` apart, proven in fractions; ``searched`` is the sharper bound
    of branch and cut, which is only as sure as floating point. Both may be infinite.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    at_most: float
    searched: float

    @property
    def at_least(self) -> int:
        """People of the first that have no counterpart in the second."""
        return int(np.maximum(self.first - self.second, 0).sum())

    @property
    def determined(self) -> bool:
        """Whether there is one solution only."""
        return self.at_most == 0


def variability(ledger: Ledger, time_limit: float = 60.0) -> Variability:
    """The two solutions of (L) that are furthest apart, as far as the time allows to find them."""
    deadline = monotonic() + time_limit
    apart = taken_apart(ledger)
    first = np.where(apart.limits.fixed, apart.limits.low, 0.0)
    # A cell that no row bounds is free.
    alone = ~apart.limits.fixed
    for piece in apart.pieces:
        alone[piece.cells] = False
    first[alone] = apart.limits.low[alone]
    second = first.copy()
    first[alone] = np.where(np.isfinite(apart.limits.high), apart.limits.high, first)[alone]
    width = float((apart.limits.high - apart.limits.low)[alone].sum())
    at_most, searched = width, width
    for done, piece in enumerate(apart.pieces):
        seconds = max(0.1, (deadline - monotonic()) / (len(apart.pieces) - done))
        x, y, certified, bound = _furthest(piece, seconds)
        first[piece.cells], second[piece.cells] = x, y
        at_most, searched = at_most + certified, searched + min(bound, certified)
    if not (ledger.holds(first) and ledger.holds(second)):
        raise NoResult("the solver's counts do not fit what was published; report this")
    return Variability(first.astype(np.int64), second.astype(np.int64), at_most, searched)


def _furthest(
    piece: Piece, seconds: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """Two solutions of a piece, the certified bound of how far apart any are, and the searched."""
    width, proven = _width(piece)
    if not np.isfinite(width).all():
        one = some_counts(piece, seconds)
        return one, one, inf, inf
    model, relaxed = _program(piece, width, seconds), _program(piece, width, None)
    relaxed.run()
    certified = _certified(relaxed) if proven else inf
    model.run()
    n, info = piece.cells.size, model.getInfo()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        raise Contradiction
    x = y = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        values = np.rint(np.array(model.getSolution().col_value[: 2 * n]))
        x, y = values[:n], values[n:]
    if x is None or y is None or not (piece.holds(x) and piece.holds(y)):
        x = y = some_counts(piece, seconds)
    bound = floor(-info.mip_dual_bound + EDGE) if isfinite(info.mip_dual_bound) else inf
    return x, y, certified, float(bound)


def _width(piece: Piece) -> tuple[NDArray[np.float64], bool]:
    """How far each cell can move, and whether propagation alone says so."""
    width = piece.limits.high - piece.limits.low
    free = np.flatnonzero(np.isinf(width))
    if free.size:
        bounder = Bounder(piece.bounded)
        width[free] = [bounder.interval(np.array([j])).high for j in free.tolist()]
    return width, not free.size


def _program(piece: Piece, width: NDArray[np.float64], seconds: float | None) -> highspy.Highs:
    """(V) of a piece, over x, y, b and d; its relaxation where there is no time limit."""
    A, n = csr_array(piece.ledger.A), piece.cells.size
    one, M = eye_array(n), csr_array(np.diag(width))
    both = block_diag([A, A], format="csr")
    nothing = csr_array((2 * A.shape[0], n))
    above = [csr_array(block_array([[-one, one, M, one]])), csr_array((n, 2 * n)), -M, one]
    matrix = block_array(
        [[both, nothing, nothing], [above[0][:, : 2 * n], M, one], [above[1], above[2], above[3]]],
        format="csc",
    )
    low = np.concatenate([piece.ledger.low, piece.ledger.low, np.full(2 * n, -inf)])
    high = np.concatenate([piece.ledger.high, piece.ledger.high, width, np.zeros(n)])
    ends = piece.limits.low, piece.limits.low + width
    zero, ones = np.zeros(n), np.ones(n)
    options: dict[str, object] = {"threads": 1}
    if seconds is not None:
        options["time_limit"] = seconds
    return build_model(
        csc_array(matrix),
        cost=np.concatenate([zero, zero, zero, -ones]),
        columns=(
            np.concatenate([ends[0], ends[0], zero, zero]),
            np.concatenate([ends[1], ends[1], ones, width]),
        ),
        rows=(low, high),
        options=options,
        whole=0 if seconds is None else 3 * n,
    )


def _certified(model: highspy.Highs) -> float:
    """What the objective cannot exceed, by the multipliers of a linear program, in fractions.

    For any multipliers u,  c'v = u'Rv + (c - R'u)'v, and both parts are bounded by their ends.
    """
    lp = model.getLp()
    matrix = lp.a_matrix_
    shape = (lp.num_row_, lp.num_col_)
    R = csc_array(
        (np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_)), shape
    )
    u = [Fraction(round(-v * FINENESS), FINENESS) for v in model.getSolution().row_dual]
    total = Fraction(0)
    for i, (low, high) in enumerate(zip(lp.row_lower_, lp.row_upper_, strict=True)):
        end = high if u[i] > 0 else low
        if not isfinite(end) or abs(end) >= highspy.kHighsInf:
            u[i] = Fraction(0)
        total += u[i] * Fraction(int(end)) if u[i] else 0
    for j in range(shape[1]):
        entries = range(R.indptr[j], R.indptr[j + 1])
        spent = sum((u[R.indices[k]] * Fraction(int(R.data[k])) for k in entries), Fraction(0))
        left = Fraction(int(-lp.col_cost_[j])) - spent
        total += left * Fraction(int(lp.col_upper_[j] if left > 0 else lp.col_lower_[j]))
    return float(floor(total))


def some_counts(
    piece: Piece, seconds: float, cost: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Whole counts (n,) that solve a piece: the cheapest, or the fewest people, as time allows."""
    model = build_model(
        csc_array(piece.ledger.A),
        cost=np.ones(piece.cells.size) if cost is None else cost,
        columns=(piece.limits.low, piece.limits.high),
        rows=(piece.ledger.low, piece.ledger.high),
        options={"threads": 1, "time_limit": seconds},
        whole=piece.cells.size,
    )
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        raise Contradiction
    x: NDArray[np.float64] = np.rint(np.array(model.getSolution().col_value))
    if x.size != piece.cells.size or not piece.holds(x):
        raise NoResult("time ran out before data that fit were found; allow more")
    return x
