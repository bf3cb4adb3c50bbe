"""Cells of tables of counts, the family of published statistics.

A table crosses some known columns; each of its cells counts the people with one combination of
their values. Whoever knows the columns knows who is in which cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

Table = tuple[str, ...]
# The parameter that numbers the tables; the others are columns, None where a table has them not.
TABLE = "table"


@dataclass(frozen=True)
class Tables:
    """A cell: one value for each column of its table."""

    name: str = "tables"
    needs: tuple[str, ...] = ("table",)
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        cell = {name: values[position] for name, values in queries.parameters.items()}
        return exp.and_(
            *(
                exp.EQ(this=column(name), expression=exp.convert(value))
                for name, value in cell.items()
                if name != TABLE and value is not None
            )
        )


def table_queries(
    ids: NDArray[Any], columns: Mapping[str, NDArray[Any]], tables: Sequence[Table]
) -> Queries:
    """A query for every cell, that anyone is in, of every table; ``columns`` are each (n,).

    The parameter ``table`` says which table a cell belongs to, the others its values.
    """
    if TABLE in columns:
        raise InputError(f"a column is called {TABLE!r}, as the number of a table is; rename it")
    rows: list[NDArray[np.bool_]] = []
    cells: list[dict[str, Any]] = []
    for number, table in enumerate(tables):
        if missing := [name for name in table if name not in columns]:
            raise InputError(f"there is no column {missing[0]!r} to make a table of")
        if not table:
            raise InputError("a table needs at least one column")
        coded = np.column_stack(
            [np.unique(columns[name], return_inverse=True)[1] for name in table]
        )
        combined, member = np.unique(coded, axis=0, return_inverse=True)
        for cell in range(len(combined)):
            inside = member.ravel() == cell
            first = int(np.flatnonzero(inside)[0])
            rows.append(inside)
            values = {name: columns[name][first : first + 1].tolist()[0] for name in table}
            cells.append({TABLE: number, **values})
    used = list(dict.fromkeys(name for table in tables for name in table))
    parameters = {TABLE: np.array([cell[TABLE] for cell in cells])}
    for name in used:
        parameters[name] = np.empty(len(cells), dtype=object)
        parameters[name][:] = [cell.get(name) for cell in cells]
    return Queries(ids, np.array(rows, dtype=np.int8), Tables(), parameters)


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
