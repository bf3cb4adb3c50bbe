"""Which groups exact counts determine, and from which count on: row spaces in exact arithmetic.

Rows of 0 and 1 add up cells of unknown counts, in the order in which they were published:

    A x = b,   x > 0                                                                      (E)

A group of cells c has one possible count exactly if c'x is a combination of rows, c = A'y. (That x
is not negative adds nothing: the truth is positive, so whatever leaves A x as it is can be added to
it, and taken from it, in a small measure.) The first row by which that is so is the last one with
y != 0 where y is over rows that do not depend on earlier ones.

Independent rows, and the y of each group, are computed modulo a prime of 31 bits, from the Gram
matrix G = A A'. The prime is drawn by the rows themselves. An error is one in a million or rarer,
and a proof has none: y in fractions counts only if |A'y - c|^2 = y'Gy - 2 y'Ac + c'c is exactly 0.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from itertools import chain, islice, product
from math import isqrt, lcm
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
Cells = tuple[int, ...]
T = TypeVar("T")
# What is added and taken away: rows with their multipliers.
Terms = tuple[tuple[int, Fraction], ...]
# Fractions too long for the prime are solved for exactly, with up to so many rows.
MOST_EXACT = 300
# More pairs are not looked at; so many groups are solved for at once.
MOST_PAIRS, AT_ONCE = 20_000, 1000
# Signs of the last row and of two others.
SIGNS = tuple(signs for signs in product((1, -1), repeat=3) if max(signs) > 0)


@dataclass(frozen=True)
class Pinned:
    """Cells whose count is determined from ``row`` on, as the ``terms`` add up to just them.

    Without terms the proof is longer than is tried.
    """

    cells: Cells
    row: int
    terms: Terms


@dataclass(eq=False)
class RowSpace:
    """The rows (m, words) of (E) over n ``cells``, no two of them equal and none empty.

    Rows that are published at once have the same of ``ends`` (m,): the row after the last of them.
    """

    rows: Bits
    cells: int
    ends: NDArray[np.int64] | None = None
    # Whether all pairs were looked at, of which there may be too many.
    complete: bool = field(init=False, default=True)
    _gram: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        # Loaded here: compiled code takes a third of a second to load.
        from countleak.attack.ledger import bits

        self._gram = bits.common(self.rows)
        seed = blake2b(self.rows.tobytes(), digest_size=16).digest()
        self._rng = np.random.default_rng(list(seed))
        done = False
        while not done:
            self._p = _prime(self._rng)
            self._eliminated = (self._gram % self._p).astype(np.uint64)
            done = bits.eliminate(self._eliminated, np.uint64(self._p))
        self._r = self._rng.integers(0, self._p, (2, self.cells)).astype(np.uint64)
        self._sums = np.stack([bits.sums_by_row(self.rows, r, np.uint64(self._p)) for r in self._r])

    @property
    def rank(self) -> int:
        """How many rows do not depend on earlier ones."""
        return int(np.count_nonzero(np.diag(self._eliminated)))

    def pinned(self, people: NDArray[np.int64], most: int) -> list[Pinned]:
        """The groups of up to ``most`` people with one possible count, by the row that does it.

        ``people`` (n,) are in each cell. They are single cells, pairs of cells that are pinned
        before both are, and whatever one row counts, or counts more than one that it contains.
        """
        groups = dict(self._linear(people, most))
        if most > 2:
            for cells, row in self._nested(people, most):
                groups[cells] = min(row, groups.get(cells, row))
        order = sorted(groups.items(), key=lambda item: (item[1], item[0]))
        found = []
        for some in _in_parts(order):
            solved = self._solved_for(self._counts([cells for cells, _ in some]))
            found += [
                Pinned(cells, row, self._terms(cells, row, y))
                for (cells, row), y in zip(some, solved.T, strict=True)
            ]
        return found

    def _linear(self, people: NDArray[np.int64], most: int) -> Iterator[tuple[Cells, int]]:
        """Pinned single cells, and pairs, each with the row by which it is."""
        small = np.flatnonzero(people <= most)
        left = self._left_over()[:, small]
        alone: list[Cells] = [(cell,) for cell in small[(left == 0).all(axis=0)].tolist()]
        reached = self._reached(alone)
        rows = zip(alone, _last(reached), strict=True)
        found: dict[Cells, int] = {cells: row for cells, row in rows if row >= 0}
        never: int = self.rows.shape[0] + 1
        yield from found.items()
        pairs = chain(self._opposite(small, left), self._cancelling(alone, reached))
        few = (pair for pair in pairs if people[list(pair)].sum() <= most)
        looked_at = list(islice(few, MOST_PAIRS + 1))
        self.complete = len(looked_at) <= MOST_PAIRS
        for some in _in_parts(looked_at):
            for pair, row in zip(some, _last(self._reached(some)), strict=True):
                # What follows from its cells is nothing new.
                ends = [self._end(found[(c,)]) if (c,) in found else never for c in pair]
                if row >= 0 and self._end(row) < max(ends):
                    yield pair, row

    def _end(self, row: int) -> int:
        """The row after the last that is published with one."""
        return row + 1 if self.ends is None else int(self.ends[row])

    def _cancelling(self, alone: Sequence[Cells], reached: Bits) -> Iterator[Cells]:
        """Pairs of pinned cells that the same row pins, by opposite parts: together earlier."""
        by_part: dict[tuple[int, int], list[int]] = defaultdict(list)
        last = _last(reached)
        parts = [(row, int(reached[row, at])) for at, row in enumerate(last)]
        for at, part in enumerate(parts):
            by_part[part].append(at)
        for at, (row, value) in enumerate(parts):
            for other in by_part.get((row, self._p - value), ()):
                if row >= 0 and at < other:
                    yield alone[at][0], alone[other][0]

    def _left_over(self) -> NDArray[np.uint64]:
        """Two random vectors (2, n) that no row adds up to anything but 0: 0 where pinned."""
        from countleak.attack.ledger import bits

        p = np.uint64(self._p)
        weights = self._solved_for(self._sums.T.copy())
        along = [bits.sums_by_cell(self.rows, each.copy(), p)[: self.cells] for each in weights.T]
        left: Bits = (self._r + p - np.stack(along)) % p
        return left

    def _opposite(self, small: NDArray[np.int64], left: NDArray[np.uint64]) -> Iterator[Cells]:
        """Pairs of cells whose left-over parts cancel, though neither is 0."""
        open_ = np.flatnonzero((left != 0).any(axis=0))
        keys = self._key(left[:, open_])
        other = self._key((np.uint64(self._p) - left[:, open_]) % np.uint64(self._p))
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], other, "left")
        ends = np.searchsorted(keys[order], other, "right")
        cells = small[open_]
        for at in np.flatnonzero(ends > starts).tolist():
            for place in order[starts[at] : ends[at]].tolist():
                if cells[at] < cells[place]:
                    yield int(cells[at]), int(cells[place])

    def _nested(self, people: NDArray[np.int64], most: int) -> Iterator[tuple[Cells, int]]:
        """What a row counts, or counts beyond one inside it, if that is few in three cells or more.

        Of those that are the same cells the earliest is given.
        """
        sizes = np.diag(self._gram)
        weights = np.array([people[self._members(self.rows[i])].sum() for i in range(sizes.size)])
        more = weights[:, None] - weights[None, :]
        inside = (self._gram == sizes[None, :]) & (more > 0) & (more <= most)
        outer, inner = np.nonzero(inside & (sizes[:, None] - sizes[None, :] > 2))
        found: dict[int, tuple[int, int, int]] = {}
        few = np.flatnonzero((weights <= most) & (sizes > 2))
        pairs = [
            *((i, -1) for i in few.tolist()),
            *zip(outer.tolist(), inner.tolist(), strict=True),
        ]
        p = np.uint64(self._p)
        for i, k in pairs:
            less = self._sums[:, k] if k >= 0 else np.zeros(2, np.uint64)
            key = int(self._key(((self._sums[:, i] + p - less) % p)[:, None])[0])
            found[key] = min((max(i, k), i, k), found.get(key, (max(i, k), i, k)))
        for row, i, k in found.values():
            bits = self.rows[i] & ~self.rows[k] if k >= 0 else self.rows[i]
            yield tuple(self._members(bits).tolist()), row

    def _members(self, row: Bits) -> NDArray[np.int64]:
        return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))

    def _counts(self, groups: Sequence[Cells]) -> NDArray[np.uint64]:
        """How many cells of each group are in each row, (m, groups)."""
        counts = np.zeros((self.rows.shape[0], len(groups)), np.uint64)
        for at, cells in enumerate(groups):
            for cell in cells:
                counts[:, at] += (self.rows[:, cell >> 6] >> np.uint64(cell & 63)) & np.uint64(1)
        return counts

    def _reached(self, groups: Sequence[Cells]) -> NDArray[np.uint64]:
        """The inverse of L times A c for each group c, whose last entry is in the row sought."""
        from countleak.attack.ledger import bits

        right = self._counts(groups)
        bits.forward(self._eliminated, right, np.uint64(self._p))
        return right

    def _solved_for(self, right: NDArray[np.uint64]) -> NDArray[np.uint64]:
        from countleak.attack.ledger import bits

        bits.forward(self._eliminated, right, np.uint64(self._p))
        bits.backward(self._eliminated, right, np.uint64(self._p))
        return right

    def _key(self, residues: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Two residues as one number."""
        keys: Bits = (residues[0] << np.uint64(32)) | residues[1]
        return keys

    def _terms(self, cells: Cells, row: int, y: NDArray[np.uint64]) -> Terms:
        """Rows published by then that add up to just the cells, in as few as were found."""
        used = np.flatnonzero(y)
        for terms in self._candidates(cells, row, used, y):
            if self.adds_up(terms, cells):
                return terms
        return ()

    def _candidates(
        self, cells: Cells, row: int, used: NDArray[np.int64], y: NDArray[np.uint64]
    ) -> Iterator[Terms]:
        if used.size > 1:
            yield from self._short(cells, row)
        residues = [_as_fraction(int(y[i]), self._p) for i in used.tolist()]
        yield tuple(
            (i, times)
            for i, times in zip(used.tolist(), residues, strict=True)
            if times is not None
        )
        if used.size <= MOST_EXACT:
            yield self._solve_exactly(cells, used)

    def _short(self, cells: Cells, row: int) -> Iterator[Terms]:
        """One row, the difference of two, or sums of three with the row that pins the cells."""
        p, end = np.uint64(self._p), self._end(row)
        wanted = (self._r[:, list(cells)].sum(axis=1) % p)[:, None]
        known, last = self._sums[:, :end], self._sums[:, row, None]
        keys = self._key(known)
        order = np.argsort(keys)

        def adding_to(goal: Bits) -> Iterator[tuple[int, int]]:
            """Each row with the one that is its goal."""
            sought = self._key(goal)
            place = order[np.minimum(np.searchsorted(keys[order], sought), end - 1)]
            for i in np.flatnonzero(keys[place] == sought).tolist():
                if i != place[i]:
                    yield i, int(place[i])

        for i in np.flatnonzero(keys == self._key(wanted)).tolist():
            yield ((i, Fraction(1)),)
        for i, k in adding_to((known + p - wanted) % p):
            yield ((i, Fraction(1)), (k, Fraction(-1)))
        for of_last, one, other in SIGNS:
            rest = (wanted + (p - last if of_last > 0 else last)) % p
            goal = (rest + (p - known if one > 0 else known)) % p
            for i, k in adding_to(goal if other > 0 else (p - goal) % p):
                if row not in (i, k):
                    yield ((row, Fraction(of_last)), (i, Fraction(one)), (k, Fraction(other)))

    def _solve_exactly(self, cells: Cells, used: NDArray[np.int64]) -> Terms:
        import flint

        gram = flint.fmpz_mat(self._gram[np.ix_(used, used)].tolist())
        right = flint.fmpz_mat([[int(n)] for n in self._counts([cells])[used, 0]])
        solved: Any = gram.solve(right)
        values = [solved[i, 0] for i in range(used.size)]
        fractions = [Fraction(int(value.p), int(value.q)) for value in values]
        return tuple(
            (row, times) for row, times in zip(used.tolist(), fractions, strict=True) if times
        )

    def adds_up(self, terms: Terms, cells: Cells) -> bool:
        """Whether the rows, so many times each, add up to just the cells, in exact arithmetic."""
        used = [row for row, _ in terms]
        unit = lcm(*(times.denominator for _, times in terms))
        y = np.array([int(times * unit) for _, times in terms], dtype=object)
        gram = self._gram[np.ix_(used, used)]
        inside = self._counts([cells])[used, 0].astype(np.int64)
        largest = (sum(map(abs, y.tolist())) + unit * len(cells)) ** 2 * max(self.cells, 1)
        if largest < 2**62:
            y = y.astype(np.int64)
        else:
            gram, inside = gram.astype(object), inside.astype(object)
        return int(y @ gram @ y) - 2 * unit * int(y @ inside) + unit * unit * len(cells) == 0


def _prime(rng: np.random.Generator) -> int:
    import flint

    while True:
        number = int(rng.integers(2**30, 2**31)) | 1
        if flint.fmpz(number).is_prime():
            return number


def _last(reached: Bits) -> list[int]:
    """The last row (groups,) in which each column is not 0; -1 where there is none."""
    other = reached != 0
    last = reached.shape[0] - 1 - np.argmax(other[::-1], axis=0)
    found: list[int] = np.where(other.any(axis=0), last, -1).tolist()
    return found


def _in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def _as_fraction(residue: int, p: int) -> Fraction | None:
    """The fraction of small numbers that a residue stands for, by Euclid's algorithm."""
    bound = isqrt(p // 2)
    r, before, t, t_before = residue, p, 1, 0
    while r > bound:
        times = before // r
        before, r = r, before - times * r
        t_before, t = t, t_before - times * t
    return None if t == 0 or abs(t) > bound else Fraction(r, t)
