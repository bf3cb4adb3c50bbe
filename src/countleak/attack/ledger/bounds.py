"""The least and the greatest count that groups can have, one after the other or all at once.

What hangs together in (L) is one program, a component; a group that is spread over several can have
what its parts can have together. One after the other, groups are bounded as they are asked about;
all at once, whole components go to processes that settle them and forget them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from countleak.attack.ledger import Ledger, Limits, rows_of
from countleak.attack.ledger.component import Clock, Component, Contradiction, Ends, Interval
from countleak.attack.ledger.differencing import differenced
from countleak.attack.ledger.propagation import (
    beside,
    components,
    connected,
    propagate,
    sums_of,
)
from countleak.progress import Progress, silent

__all__ = ["Bounder", "Contradiction", "Ends", "Interval", "ends_of"]

MEANS = ("propagation", "linear programs", "integer programs")
# What one process settles at a time: the components of about so many cells.
BATCH = 4_000


class Bounder:
    """The intervals of groups of cells, one after the other; raises Contradiction where none fit.

    After ``time_limit`` seconds integer programs are left out; intervals may then be wider than
    need be, and say so. ``settled_by`` counts the groups by what it took.
    """

    def __init__(self, ledger: Ledger, time_limit: float = 60.0):
        self.settled_by = dict.fromkeys(MEANS, 0)
        self.limits, parts = taken_apart(ledger, Clock(monotonic() + time_limit))
        self._parts: list[Component] = []
        self._component = np.full(ledger.cells, -1)
        self._place = np.zeros(ledger.cells, np.int64)
        for part, cells in parts:
            self._component[cells], self._place[cells] = len(self._parts), np.arange(cells.size)
            self._parts.append(part)

    def interval(self, group: NDArray[np.int64]) -> Interval:
        """What the cells of a group can add up to."""
        settled = group[self._component[group] < 0]
        low = float(self.limits.low[settled].sum())
        high = float(self.limits.high[settled].sum())
        exact, means = True, 0
        for part, cells in self._inside(group):
            ends = part.ends(rows_of([cells], part.ledger.cells))
            end = ends.interval(0)
            low, high, exact = low + end.low, high + end.high, exact and end.exact
            means = max(means, int(ends.means[0]))
        self.settled_by[MEANS[means]] += 1
        return Interval(int(low), high, exact)

    def may_exceed(self, group: NDArray[np.int64], count: float) -> bool:
        """Whether counts were already seen that fit and give the group more than ``count``."""
        settled = group[self._component[group] < 0]
        most = float(self.limits.low[settled].sum())
        most += sum(part.most_seen(cells) for part, cells in self._inside(group))
        return most > count

    def _inside(self, group: NDArray[np.int64]) -> Iterator[tuple[Component, NDArray[np.int64]]]:
        joined = self._component[group]
        for number in np.unique(joined[joined >= 0]).tolist():
            yield self._parts[number], self._place[group[joined == number]]


def ends_of(
    ledger: Ledger,
    groups: csr_array,
    most: NDArray[np.float64] | None = None,
    *,
    time_limit: float = 60.0,
    jobs: int = 1,
    progress: Progress = silent,
) -> Ends:
    """What each of the ``groups`` (k, n) of cells can add up to, settled by so many processes.

    Of a group that was seen with more than ``most`` (k,) people no more is found out. Raises
    Contradiction where no counts fit.
    """
    limit = np.full(groups.shape[0], inf) if most is None else most
    total, done = _nothing(groups.shape[0]), 0
    clock = Clock(monotonic() + time_limit)
    batches = list(_batches(ledger, groups, limit))
    for ids, found in _in_processes(batches, clock, jobs):
        _add(total, ids, found)
        progress(done := done + 1, len(batches))
    return total


Found = tuple[NDArray[np.int64], Ends]


def _in_processes(batches: Sequence["_Batch"], clock: Clock, jobs: int) -> Iterator[Found]:
    if jobs == 1:
        yield from (_settled(batch, clock) for batch in batches)
        return
    # Loaded here: few systems are large enough for it.
    from joblib import Parallel, delayed

    work = Parallel(n_jobs=jobs, return_as="generator_unordered")
    yield from work(delayed(_settled)(batch, clock) for batch in batches)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Whole components, and the parts in them of the groups ``ids`` (k,)."""

    ledger: Ledger
    ids: NDArray[np.int64]
    groups: csc_array
    most: NDArray[np.float64]


def _batches(ledger: Ledger, groups: csr_array, most: NDArray[np.float64]) -> Iterator[_Batch]:
    """The system in batches of whole components, in order."""
    by_row, by_cell = connected(ledger.A)
    rows, cells = np.argsort(by_row, kind="stable"), np.argsort(by_cell, kind="stable")
    moved = np.empty_like(cells)
    moved[cells] = np.arange(cells.size)
    A = csr_array(ledger.A[rows])
    indices = moved[A.indices]
    in_groups = csc_array(csc_array(groups)[:, cells])
    count = 1 + max(by_row.max(initial=-1), by_cell.max(initial=-1))
    sizes = np.bincount(by_cell, minlength=count)
    turn = np.cumsum(sizes) // BATCH
    last = np.flatnonzero(np.diff(turn, append=-1))
    row_ends = np.searchsorted(by_row[rows], last, side="right")
    cell_ends = np.cumsum(sizes)[last]
    row = cell = 0
    for row_end, cell_end in zip(row_ends.tolist(), cell_ends.tolist(), strict=True):
        start, end = A.indptr[row], A.indptr[row_end]
        some = csr_array(
            (A.data[start:end], indices[start:end] - cell, A.indptr[row : row_end + 1] - start),
            shape=(row_end - row, cell_end - cell),
        )
        first, after = in_groups.indptr[cell], in_groups.indptr[cell_end]
        ids, at = np.unique(in_groups.indices[first:after], return_inverse=True)
        inside = csc_array(
            (in_groups.data[first:after], at, in_groups.indptr[cell : cell_end + 1] - first),
            shape=(ids.size, cell_end - cell),
        )
        own = rows[row:row_end]
        yield _Batch(Ledger(some, ledger.low[own], ledger.high[own]), ids, inside, most[ids])
        row, cell = row_end, cell_end


def _settled(batch: _Batch, clock: Clock) -> Found:
    """The ends of a batch's groups, its own part of them."""
    limits, parts = taken_apart(batch.ledger, clock)
    low, high = limits.low.copy(), limits.high.copy()
    found = _nothing(batch.ids.size)
    for part, cells in parts:
        low[cells] = high[cells] = 0.0
        some = csc_array(batch.groups[:, cells])
        ids, at = np.unique(some.indices, return_inverse=True)
        own = csr_array(csc_array((some.data, at, some.indptr), shape=(ids.size, cells.size)))
        _add(found, ids, part.ends(own, batch.most[ids]))
    rest = csr_array(batch.groups)
    found.low += rest @ low
    found.high += sums_of(rest, high)
    return batch.ids, found


def taken_apart(
    ledger: Ledger, clock: Clock
) -> tuple[Limits, Iterator[tuple[Component, NDArray[np.int64]]]]:
    """What propagation leaves of every cell, and a program for each component that is left."""
    ledger = differenced(ledger).ledger
    limits = propagate(ledger, Limits.none(ledger.cells))
    if limits is None:
        raise Contradiction

    def parts() -> Iterator[tuple[Component, NDArray[np.int64]]]:
        for rows, cells in components(ledger, limits):
            around = Limits(limits.low[cells], limits.high[cells])
            yield Component(beside(ledger, limits, rows, cells), around, clock), cells

    return limits, parts()


def _nothing(k: int) -> Ends:
    no = np.zeros(k, np.bool_)
    return Ends(np.zeros(k), np.zeros(k), ~no, np.zeros(k, np.int8), no)


def _add(total: Ends, ids: NDArray[np.int64], part: Ends) -> None:
    """Parts of groups, put to what is known of the whole."""
    total.low[ids] += part.low
    total.high[ids] += part.high
    total.exact[ids] &= part.exact
    total.means[ids] = np.maximum(total.means[ids], part.means)
    total.large[ids] |= part.large
