"""Counts known to lie in intervals, and what those say of single bits at once.

Exact answers, rounding, suppression and noise with a hard bound all say the same kind of thing:

    low <= Ax <= high,   x in {0, 1}^n,   A of -1, 0 and 1                                 (W)

All arithmetic here is on whole numbers and exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countleak.errors import InputError, ShapeError

# An answer less its bound is rounded outwards, for 12.7 - 0.7 is not quite 12 in double precision.
_ROUNDING = 1e-9
# Pairs of people tried for an exchange: more would take longer than the search they save.
_MOST_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """(W): ``A`` (m, n) of -1, 0 and 1; ``low`` and ``high`` (m,), whole numbers of people."""

    A: NDArray[np.int8]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.A.ndim != 2 or 0 in self.A.shape:
            raise ShapeError(f"A has the shape {self.A.shape}; it must be (queries, people)")
        for name, ends in (("low", self.low), ("high", self.high)):
            if ends.shape != self.A.shape[:1]:
                raise ShapeError(f"{self.A.shape[0]} queries but {name} has the shape {ends.shape}")
            if not np.issubdtype(ends.dtype, np.signedinteger):
                raise InputError(f"{name} must hold whole numbers; use CountIntervals.between")
        if self.A.dtype != np.int8 or self.A.min() < -1 or self.A.max() > 1:
            raise InputError("A must hold -1, 0 and 1 as int8")

    @classmethod
    def between(cls, A: NDArray[Any], low: ArrayLike, high: ArrayLike) -> "CountIntervals":
        """Every count between ``low`` and ``high`` (m,), which may be fractions or infinite."""
        A = np.asarray(A)
        if not np.isin(A, (-1, 0, 1)).all():
            raise InputError("A must hold -1, 0 and 1")
        A = A.astype(np.int8)
        ends = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if any(np.isnan(end).any() for end in ends):
            raise InputError("an interval ends at NaN; leave its query out or give an infinite end")
        # No count leaves these, so that an infinite end is a finite one; one beyond stays beyond.
        least = -(A == -1).sum(axis=-1) - 1.0
        most = (A == 1).sum(axis=-1) + 1.0
        return cls(
            A,
            np.ceil(np.clip(ends[0] - _ROUNDING, least, most)).astype(np.int64),
            np.floor(np.clip(ends[1] + _ROUNDING, least, most)).astype(np.int64),
        )

    @classmethod
    def around(cls, A: NDArray[Any], answers: ArrayLike, bound: float = 0.0) -> "CountIntervals":
        """No count further than ``bound``, in people, from its answer (m,); 0: exact answers."""
        if not bound >= 0:
            raise InputError(f"the bound is {bound:g}; it cannot be negative")
        values = np.asarray(answers, np.float64)
        return cls.between(A, values - bound, values + bound)

    @property
    def people(self) -> int:
        """n."""
        return int(self.A.shape[1])

    def counts(self, x: NDArray[np.int8]) -> NDArray[np.int64]:
        """Ax (m,) for one x (n,), or (k, m) for k of them (k, n); exact whatever their type."""
        # Whole numbers far below 2^53 are exact in double precision, and multiplied much faster.
        counts = x.astype(np.float64) @ self.A.T.astype(np.float64)
        return counts.astype(np.int64)

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether bits solve (W), checked exactly: for one x (n,) or each of k of them (k, n)."""
        counts = self.counts(x)
        fits = ((self.low <= counts) & (counts <= self.high)).all(axis=-1)
        return np.asarray(fits & ((x == 0) | (x == 1)).all(axis=-1))


@dataclass(frozen=True, eq=False)
class Box:
    """What is left of each bit: ``lower`` <= x <= ``upper``, both (n,) of 0 and 1."""

    lower: NDArray[np.int8]
    upper: NDArray[np.int8]

    @classmethod
    def whole(cls, n: int) -> "Box":
        """Every bit free."""
        return cls(np.zeros(n, np.int8), np.ones(n, np.int8))

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Which bits (n,) have one value left."""
        return np.equal(self.lower, self.upper)

    def fix(self, bits: NDArray[np.bool_], x: NDArray[np.int8]) -> "Box":
        """The same with the ``bits`` (n,) fixed to their values in ``x``."""
        return Box(np.where(bits, x, self.lower), np.where(bits, x, self.upper))


def propagate(intervals: CountIntervals, box: Box) -> Box | None:
    """The box as far as single rows of (W) shrink it, again and again; None: they leave nothing.

    With entries of -1, 0 and 1 a row says something of single bits only where its least possible
    count is ``high``, or its greatest ``low``: then all its free bits are at that end.
    """
    A = intervals.A.astype(np.int64)
    plus, minus = A == 1, A == -1
    while True:
        lower, upper = box.lower.astype(np.int64), box.upper.astype(np.int64)
        least = plus @ lower - minus @ upper
        most = plus @ upper - minus @ lower
        if ((least > intervals.high) | (most < intervals.low)).any():
            return None
        at_least, at_most = least == intervals.high, most == intervals.low
        zeros = plus[at_least].any(axis=0) | minus[at_most].any(axis=0)
        ones = minus[at_least].any(axis=0) | plus[at_most].any(axis=0)
        free = ~box.fixed
        zeros, ones = zeros & free, ones & free
        if (zeros & ones).any():
            return None
        if not (zeros | ones).any():
            return box
        box = box.fix(zeros | ones, ones.astype(np.int8))


def changeable(intervals: CountIntervals, x: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whose bit (n,) another solution next to ``x`` changes: one flip, or a 1 and a 0 exchanged.

    Two people in the same queries are always exchangeable.
    """
    counts = intervals.counts(x)
    down, up = intervals.low - counts, intervals.high - counts
    steps = intervals.A * (1 - 2 * x)
    fits: NDArray[np.bool_] = (steps >= down[:, None]) & (steps <= up[:, None])
    changes: NDArray[np.bool_] = np.all(fits, axis=0)
    ones, zeros = np.flatnonzero(x == 1), np.flatnonzero(x == 0)
    if ones.size * zeros.size > _MOST_PAIRS:
        return changes
    i, j = (ends.ravel() for ends in np.meshgrid(ones, zeros, indexing="ij"))
    # An exchange moves a count by 2 at most. The tightest rows first: few pairs outlast them.
    rows = np.flatnonzero((down > -2) | (up < 2))
    for row in rows[np.argsort((up - down)[rows], kind="stable")]:
        step = intervals.A[row, j] - intervals.A[row, i]
        keep = (step >= down[row]) & (step <= up[row])
        i, j = i[keep], j[keep]
        if not i.size:
            break
    changes[i] = changes[j] = True
    return changes
