"""Cells of tables of counts, the family of published statistics.

A table crosses some known columns; each of its cells counts the people with one combination of
their values. Whoever knows the columns knows who is in which cell.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError

Table = tuple[str, ...]


def table_queries(
    ids: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], tables: Sequence[Table]
) -> Queries:
    """A query for every cell, that anyone is in, of every table; ``columns`` are each (n,).

    The parameter ``table`` says which table a cell belongs to.
    """
    rows, numbers, where = [], [], []
    for number, table in enumerate(tables):
        if missing := [name for name in table if name not in columns]:
            raise InputError(f"there is no column {missing[0]!r} to make a table of")
        if not table:
            raise InputError("a table needs at least one column")
        coded = np.column_stack(
            [np.unique(columns[name], return_inverse=True)[1] for name in table]
        )
        cells, member = np.unique(coded, axis=0, return_inverse=True)
        for cell in range(len(cells)):
            inside = member.ravel() == cell
            first = int(np.flatnonzero(inside)[0])
            rows.append(inside)
            numbers.append(number)
            where.append(
                " AND ".join(f"{name} = {_literal(columns[name][first])}" for name in table)
            )
    return Queries(
        ids,
        np.array(rows, dtype=np.int8),
        "tables",
        {"table": np.array(numbers)},
        tuple(where),
    )


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


def _literal(value: Any) -> str:
    """A value as SQL writes it."""
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return str(value)
