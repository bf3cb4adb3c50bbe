"""Cells of tables of counts, the family of published statistics.

A table crosses some known columns, or groups of their values; each of its cells counts the people
in one combination of groups. Whoever knows the columns knows who is in which cell. A system that
groups answers all cells of a table at once: ``statements_of`` says which belong together.

Some systems merge the cells that they hide into one row more. It is planned as a cell of everyone
that has no labels; ``resolved`` leaves in it only those whose own cells were hidden.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.groupings import Grouping, Label, as_label, as_shown
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

Table = tuple[str | Grouping, ...]
# The parameters: which table a cell belongs to, and its groups as JSON.
TABLE, CELL = "table", "cell"
# What systems show as the groups of what was merged: a star where a column is a text, else NULL.
MERGED = (None, "*")


@dataclass(frozen=True)
class Tables:
    """A cell: one label for each grouping of its table."""

    name: str = "tables"
    needs: tuple[str, ...] = (TABLE,)
    texts: tuple[str, ...] = (CELL,)
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        if not _has_labels(str(queries.parameters[CELL][position])):
            raise InputError("what was merged has no condition; ask for tables, not for cells")
        groups = cell_of(queries, position)
        return exp.and_(*(_is(grouping, label) for grouping, label in groups.items()))


def _is(grouping: Grouping, label: Label) -> "exp.Expr":
    from sqlglot import exp

    left = grouping.expression()
    if label is None:
        return exp.Is(this=left, expression=exp.Null())
    return exp.EQ(this=left, expression=exp.convert(label))


def cell_of(queries: Queries, position: int) -> dict[Grouping, Label]:
    """The groupings of a cell's table, each with the label that the cell has."""
    return _read_cell(str(queries.parameters[CELL][position]))


def merged_in(queries: Queries) -> NDArray[np.bool_]:
    """Which cells (m,) are about what a system merges of their tables."""
    return np.array([not _has_labels(cell) for cell in queries.parameters[CELL].tolist()])


def resolved(
    queries: Queries, about: NDArray[np.int64], released: NDArray[np.bool_]
) -> tuple[Queries, NDArray[np.bool_]]:
    """The queries as they were answered, and which of them (m,) were.

    A row of what was merged counts those whose own cells were hidden; there is none where nothing
    was merged. ``about`` (m,) is the value of the secret that a row asked about.
    """
    answered = np.ones(len(queries), np.bool_)
    if not isinstance(queries.family, Tables):
        return queries, answered
    merged = np.flatnonzero(merged_in(queries))
    if not merged.size:
        return queries, answered
    matrix = queries.matrix.copy()
    tables = np.stack([about, queries.parameters[TABLE]])
    for at in merged.tolist():
        own = (tables == tables[:, [at]]).all(axis=0)
        own[at] = False
        hidden = queries.matrix[own & ~released].sum(axis=0, dtype=np.int8)
        # Of a table of which something was not asked nobody knows who is hidden.
        whole = bool((queries.matrix[own].sum(axis=0) == 1).all())
        matrix[at], answered[at] = hidden, released[at] and whole and bool(hidden.any())
    return replace(queries, weights=matrix), answered


@cache
def _grouping(column: str, function: str, size: int | str) -> Grouping:
    return Grouping(column, function, size)


def _read_cell(text: str) -> dict[Grouping, Label]:
    try:
        found = {
            _grouping(column, function, size): as_label(label[0]) if label else None
            for column, function, size, *label in _parts(text)
        }
        if found:
            return found
        raise ValueError("no groups")
    except (TypeError, ValueError) as error:
        raise InputError(f"the cell {text[:100]!r} of a table cannot be read ({error})") from None


@lru_cache(100_000)
def _has_labels(text: str) -> bool:
    return all(len(part) == 4 for part in _parts(text))


def _parts(text: str) -> list[list[Any]]:
    """The groups of a cell, each with its label; without, it is about what was merged."""
    try:
        parts: list[list[Any]] = json.loads(text)
        if {len(part) for part in parts} in ({3}, {4}):
            return parts
        raise ValueError("a group is a column, a function, a size and a label")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the cell {text[:100]!r} of a table cannot be read ({error})") from None


def table_queries(
    ids: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    tables: Sequence[Table],
    *,
    merged: bool = False,
) -> Queries:
    """A query for every cell, that anyone is in, of every table; ``columns`` are each (n,).

    With ``merged`` one more for each table, about what the system merges of it. The parameter
    ``table`` numbers the tables, ``cell`` says which groups a cell combines.
    """
    rows: list[NDArray[np.bool_]] = []
    numbers: list[int] = []
    cells: list[str] = []
    codes = _Codes(columns)
    for number, table in enumerate(tables):
        if not table:
            raise InputError("a table needs at least one column")
        groupings = [_of(part) for part in table]
        member, first = codes.crossed(groupings)
        named = [[each.column, each.function, each.size] for each in groupings]
        for cell, person in enumerate(first.tolist()):
            rows.append(member == cell)
            labels = [codes.labels[each][person] for each in groupings]
            labelled = [[*name, label] for name, label in zip(named, labels, strict=True)]
            cells.append(json.dumps(labelled))
        if merged:
            rows.append(np.ones_like(member, np.bool_))
            cells.append(json.dumps(named))
        numbers += [number] * (len(cells) - len(numbers))
    parameters = {TABLE: np.array(numbers), CELL: np.array(cells)}
    return Queries(ids, np.array(rows, dtype=np.int8), Tables(), parameters)


def tables_of(
    columns: Mapping[str, NDArray[Any]],
    groupings: Sequence[Grouping],
    count: int,
    rng: np.random.Generator,
    *,
    ways: int = 3,
    smallest: float = 1.0,
) -> list[Table]:
    """At most ``count`` tables that cross groupings of up to ``ways`` columns, drawn at random.

    Only those whose cells hold ``smallest`` people or more on average: finer ones are suppressed.
    """
    by_column: dict[str, list[Grouping]] = {}
    for grouping in groupings:
        by_column.setdefault(grouping.column, []).append(grouping)
    codes = _Codes(columns)
    every = [
        table
        for k in range(1, ways + 1)
        for chosen in combinations(by_column.values(), k)
        for table in product(*chosen)
    ]
    drawn: list[int] = []
    for at in rng.permutation(len(every)).tolist():
        people, cells = codes.size_of(every[at])
        if cells > 1 and people / cells >= smallest:
            drawn.append(at)
        if len(drawn) == count:
            break
    return [every[at] for at in sorted(drawn)]


def _of(part: str | Grouping) -> Grouping:
    return Grouping(part) if isinstance(part, str) else part


class _Codes:
    """The labels of everyone by each grouping, and small numbers that stand for them."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]):
        self.labels: dict[Grouping, list[Label]] = {}
        self._columns = columns
        self._codes: dict[Grouping, NDArray[np.int64]] = {}

    def of(self, grouping: Grouping) -> NDArray[np.int64]:
        """The number (n,) of everyone's group, in the order of the labels."""
        if grouping not in self._codes:
            if grouping.column not in self._columns:
                raise InputError(f"there is no column {grouping.column!r} to make a table of")
            labels = grouping.labels(self._columns[grouping.column])
            ordered = sorted(set(labels), key=lambda label: (label is None, _rank(label)))
            place = {label: at for at, label in enumerate(ordered)}
            self.labels[grouping] = labels
            self._codes[grouping] = np.array([place[label] for label in labels])
        return self._codes[grouping]

    def crossed(self, groupings: Sequence[Grouping]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Everyone's cell (n,), and somebody (cells,) who is in each."""
        joined = np.zeros(len(next(iter(self._columns.values()))), np.int64)
        for grouping in groupings:
            codes = self.of(grouping)
            # Numbered anew at each step, so that no product of many columns overflows.
            joined = np.unique(joined * (codes.max() + 1) + codes, return_inverse=True)[1].ravel()
        _, first = np.unique(joined, return_index=True)
        return joined, first

    def size_of(self, table: Table) -> tuple[int, int]:
        """How many people and cells a table has."""
        member, first = self.crossed([_of(part) for part in table])
        return member.size, first.size


def _rank(label: Label) -> tuple[str, Any]:
    return (type(label).__name__ if isinstance(label, str | bool) else "", label or 0)


@dataclass(frozen=True, eq=False)
class Statement:
    """A table as one statement asks for it: its ``groupings``, and the ``cells`` at positions.

    ``merged`` is the position of what a system merges of it, where that is asked for.
    """

    groupings: tuple[Grouping, ...]
    positions: NDArray[np.int64]
    cells: Mapping[tuple[Label, ...], int]
    merged: int | None = None

    def at(self, shown: Sequence[Any]) -> int | None:
        """The position of the cell with these groups, as a system shows them; None: of no cell."""
        like = next(iter(self.cells))
        words = [as_shown(label, value) for label, value in zip(like, shown, strict=True)]
        dates = [grouping.function == "date_trunc" for grouping in self.groupings]
        cut = [str(w)[:10] if is_date else w for w, is_date in zip(words, dates, strict=True)]
        return self.cells.get(tuple(cut))

    def read(self, rows: Iterable[tuple[Sequence[Any], float]]) -> dict[int, float]:
        """What rows, the groups as they are shown and a value in each, say of which positions.

        Rows of no cell are left out; if there are any, nobody knows who else was merged. A position
        of which several rows tell something else has no value, NaN.
        """
        values: dict[int, float] = {}
        unclear: set[int] = set()
        for shown, value in rows:
            places = self._places(shown)
            unclear |= places & values.keys() if len(places) == 1 else places
            values |= dict.fromkeys(places, value)
            if not places and self.merged is not None:
                unclear.add(self.merged)
        return {**values, **dict.fromkeys(unclear, np.nan)}

    def _places(self, shown: Sequence[Any]) -> set[int]:
        """The positions that a row may be about: of a cell, of what was merged, of none."""
        places = {self.at(shown)}
        if self.merged is not None and all(value in MERGED for value in shown):
            alike = [cell for cell in self.cells if all(label in MERGED for label in cell)]
            places = {self.merged, *(self.cells[cell] for cell in alike)}
        return {place for place in places if place is not None}


def statements_of(queries: Queries, positions: NDArray[np.int64]) -> Iterator[Statement]:
    """The tables that cells at ``positions`` belong to, a statement for each.

    Positions are as in a transcript: those about one value of the secret stay together.
    """
    about, row = np.divmod(positions, len(queries))
    tables = queries.parameters[TABLE][row].astype(np.int64)
    order = np.lexsort((positions, tables, about))
    ends = np.flatnonzero((np.diff(about[order]) != 0) | (np.diff(tables[order]) != 0)) + 1
    for part in np.split(positions[order], ends):
        cells: dict[tuple[Label, ...], int] = {}
        merged: int | None = None
        for position in part.tolist():
            row = position % len(queries)
            groups = cell_of(queries, row)
            if _has_labels(str(queries.parameters[CELL][row])):
                cells[tuple(groups.values())] = position
            else:
                merged = position
        yield Statement(tuple(groups), part, cells, merged)
