"""Who is counted by each condition, as bits over groups of rows that no condition tells apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.row_space import Bits
from countleak.audit.query_log.counts import Asked
from countleak.audit.query_log.table import WORD, Table
from countleak.progress import Progress, silent

LONGEST_SHOWN = 160
# Elimination takes the cube of it in time, and the Gram matrix the square in memory.
MOST_CONDITIONS = 5000
TOO_MANY = f"more than {MOST_CONDITIONS:,} different counts are asked for before it, or by it"
NOT_COMPUTED = "the table's values do not allow it to be computed"


@dataclass(frozen=True, eq=False)
class Members:
    """Conditions over cells: ``rows`` (conditions, words) of bits, ``people`` (cells,) in each.

    ``counts`` (conditions,) are in rows of the table. ``names`` say each condition in words,
    ``sql`` as it is computed. ``of`` gives the conditions of each count that was asked for, or why
    it cannot be computed.
    """

    rows: Bits
    people: NDArray[np.int64]
    counts: NDArray[np.int64]
    names: tuple[str, ...]
    sql: tuple[str, ...]
    of: tuple[tuple[int, ...] | str, ...]


@dataclass(frozen=True, eq=False)
class _Level:
    """What some conditions say of each cell that was known then, and the cells known before."""

    words: Bits
    parents: NDArray[np.int32]


def members_of(table: Table, every: Sequence[Asked], progress: Progress = silent) -> Members:
    """Compute every count that was asked for on the rows of the table."""
    return _Builder(table, every, progress).built()


class _Builder:
    """Splits the rows into cells, by 64 conditions or the groups of one statement at a time."""

    def __init__(self, table: Table, every: Sequence[Asked], progress: Progress):
        self._table, self._every, self._progress = table, every, progress
        self._labels = np.zeros(table.rows, np.int32)
        self._left = MOST_CONDITIONS
        self._levels: list[_Level] = []
        # Of each asked count its level, and there a bit or the numbers of groups.
        self._places: list[tuple[int, int, tuple[int, ...]] | str] = [""] * len(every)
        self._values: dict[int, list[tuple[str | None, ...]]] = {}

    def built(self) -> Members:
        waiting: list[int] = []
        for at, asked in enumerate(self._every):
            self._progress(at, len(self._every))
            if asked.distinct is not None and not self._table.is_unique(asked.distinct):
                self._places[at] = "it counts distinct values of a column in which they repeat"
            elif self._left <= 0:
                self._places[at] = TOO_MANY
            elif asked.by:
                self._add_groups(at)
            else:
                self._left -= 1
                waiting.append(at)
            if len(waiting) == WORD:
                self._add_single(waiting)
                waiting = []
        self._add_single(waiting)
        self._progress(len(self._every), len(self._every))
        return self._members()

    def _add_single(self, places: Sequence[int]) -> None:
        import duckdb

        if not places:
            return
        try:
            words = self._table.words([self._every[at].condition for at in places])
        except duckdb.Error:
            # One cannot be computed: it is found by itself.
            middle = len(places) // 2
            if middle:
                self._add_single(places[:middle])
                self._add_single(places[middle:])
            else:
                self._places[places[0]] = NOT_COMPUTED
            return
        self._split(words)
        for bit, at in enumerate(places):
            self._places[at] = (len(self._levels) - 1, bit, ())

    def _add_groups(self, at: int) -> None:
        import duckdb

        try:
            words, values = self._table.groups(self._every[at])
        except duckdb.Error:
            self._places[at] = NOT_COMPUTED
            return
        sizes = np.bincount(words.astype(np.int64), minlength=len(values) + 1)[1:]
        shown = np.flatnonzero(sizes >= self._every[at].at_least) + 1
        if shown.size > self._left:
            self._places[at] = TOO_MANY
            return
        self._left -= shown.size
        self._split(words)
        self._values[at] = values
        self._places[at] = (len(self._levels) - 1, -1, tuple(shown.tolist()))

    def _split(self, words: Bits) -> None:
        # Loaded here: compiled code takes a third of a second to load.
        from countleak.attack.ledger.bits import refine

        labels, first = refine(self._labels, words)
        self._levels.append(_Level(words[first], self._labels[first]))
        self._labels = labels

    def _members(self) -> Members:
        people = np.bincount(self._labels).astype(np.int64)
        cells = people.size
        words_at: list[Bits] = []
        ancestors = np.arange(cells)
        for each in reversed(self._levels):
            words_at.append(each.words[ancestors])
            ancestors = each.parents[ancestors].astype(np.int64)
        words_at.reverse()
        rows: list[Bits] = []
        names: list[str] = []
        sql: list[str] = []
        of: list[tuple[int, ...] | str] = []
        for at, (asked, place) in enumerate(zip(self._every, self._places, strict=True)):
            if isinstance(place, str):
                of.append(place)
                continue
            level, bit, groups = place
            words = words_at[level]
            held = [words == group for group in groups]
            if bit >= 0:
                held = [((words >> np.uint64(bit)) & np.uint64(1)).astype(np.bool_)]
            of.append(tuple(range(len(rows), len(rows) + len(held))))
            rows += [packed(cells_held) for cells_held in held]
            known = self._values.get(at, [])
            values = [known[group - 1] for group in groups] if bit < 0 else [()]
            names += [_named(asked, some) for some in values]
            sql += [_written(asked, some) for some in values]
        bits = np.stack(rows) if rows else np.zeros((0, -(-cells // WORD)), np.uint64)
        counts = _weighed(bits, people)
        return Members(bits, people, counts, tuple(names), tuple(sql), tuple(of))


def packed(held: NDArray[np.bool_]) -> Bits:
    """Which cells (n,) hold, as words of 64 bits."""
    wide = np.zeros(-(-held.size // WORD) * WORD, np.bool_)
    wide[: held.size] = held
    return np.packbits(wide, bitorder="little").view(np.uint64)


def unpacked(row: Bits, cells: int) -> NDArray[np.bool_]:
    """The cells (n,) that a row of bits holds."""
    return np.unpackbits(row.view(np.uint8), count=cells, bitorder="little").astype(np.bool_)


def _weighed(rows: Bits, people: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array([people[unpacked(row, people.size)].sum() for row in rows], np.int64)


def _named(asked: Asked, values: Sequence[str | None]) -> str:
    """The condition in words, or that of a group with these values."""
    parts = [] if asked.condition == "TRUE" else [asked.condition]
    for key, value in zip(asked.by, values, strict=False):
        parts.append(f"{key} = {value}" if value is not None else f"{key} IS NULL")
    text = " AND ".join(parts).replace('"', "") or "everybody"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _written(asked: Asked, values: Sequence[str | None]) -> str:
    """The condition as SQL, or that of a group with these values."""
    parts = [f"({asked.condition})"]
    for key, value in zip(asked.by, values, strict=False):
        text = "NULL" if value is None else "'" + value.replace("'", "''") + "'"
        parts.append(f"CAST(({key}) AS VARCHAR) IS NOT DISTINCT FROM {text}")
    return " AND ".join(parts)
