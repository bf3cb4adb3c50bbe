"""Cells of tables of counts, the family of published statistics.

A table crosses some known columns, or groups of their values; each of its cells counts the people
in one combination of groups. Whoever knows the columns knows who is in which cell. A system that
groups answers all cells of a table at once: ``statements_of`` says which belong together.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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


@dataclass(frozen=True)
class Tables:
    """A cell: one label for each grouping of its table."""

    name: str = "tables"
    needs: tuple[str, ...] = (TABLE,)
    texts: tuple[str, ...] = (CELL,)
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

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


@cache
def _grouping(column: str, function: str, size: int | str) -> Grouping:
    return Grouping(column, function, size)


def _read_cell(text: str) -> dict[Grouping, Label]:
    try:
        found = {_grouping(*grouping): as_label(label) for *grouping, label in json.loads(text)}
        if found:
            return found
        raise ValueError("no groups")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the cell {text[:100]!r} of a table cannot be read ({error})") from None


def table_queries(
    ids: NDArray[Any], columns: Mapping[str, NDArray[Any]], tables: Sequence[Table]
) -> Queries:
    """A query for every cell, that anyone is in, of every table; ``columns`` are each (n,).

    The parameter ``table`` numbers the tables, ``cell`` says which groups a cell combines.
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
        for cell, person in enumerate(first.tolist()):
            rows.append(member == cell)
            numbers.append(number)
            labels = [codes.labels[grouping][person] for grouping in groupings]
            named = zip(groupings, labels, strict=True)
            cells.append(json.dumps([[g.column, g.function, g.size, label] for g, label in named]))
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
    every: list[Table] = []
    for k in range(1, ways + 1):
        for chosen in combinations(by_column.values(), k):
            for table in product(*chosen):
                people, cells = codes.size_of(table)
                if cells > 1 and people / cells >= smallest:
                    every.append(table)
    if len(every) <= count:
        return every
    return [every[at] for at in np.sort(rng.choice(len(every), size=count, replace=False))]


def random_tables(
    columns: Sequence[str], count: int, rng: np.random.Generator, ways: int = 3
) -> list[Table]:
    """``count`` different tables that cross up to ``ways`` of the columns."""
    every = [table for k in range(1, ways + 1) for table in combinations(columns, k)]
    if count > len(every):
        raise InputError(
            f"{len(columns)} columns make {len(every)} tables of up to {ways}, not {count}"
        )
    return [every[at] for at in np.sort(rng.choice(len(every), size=count, replace=False))]


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
    """A table as one statement asks for it: its ``groupings``, and the ``cells`` at positions."""

    groupings: tuple[Grouping, ...]
    positions: NDArray[np.int64]
    cells: Mapping[tuple[Label, ...], int]

    def at(self, shown: Sequence[Any]) -> int | None:
        """The position of the cell with these groups, as a system shows them; None: of no cell."""
        like = next(iter(self.cells))
        words = [as_shown(label, value) for label, value in zip(like, shown, strict=True)]
        dates = [grouping.function == "date_trunc" for grouping in self.groupings]
        cut = [str(w)[:10] if is_date else w for w, is_date in zip(words, dates, strict=True)]
        return self.cells.get(tuple(cut))


def statements_of(queries: Queries, positions: NDArray[np.int64]) -> Iterator[Statement]:
    """The tables that cells at ``positions`` belong to, a statement for each.

    Positions are as in a transcript: those about one value of the secret stay together.
    """
    about, row = np.divmod(positions, len(queries))
    tables = queries.parameters[TABLE][row].astype(np.int64)
    order = np.lexsort((positions, tables, about))
    ends = np.flatnonzero((np.diff(about[order]) != 0) | (np.diff(tables[order]) != 0)) + 1
    for part in np.split(positions[order], ends):
        cells = {}
        for position in part.tolist():
            groups = cell_of(queries, position % len(queries))
            cells[tuple(groups.values())] = position
        yield Statement(tuple(groups), part, cells)
