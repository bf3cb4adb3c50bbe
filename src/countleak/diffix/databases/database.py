"""The narrow seam to a database: a table, a dialect, and rows for SQL of our own writing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from countleak.diffix.salt import Salt
from countleak.diffix.sql.render import Dialect, Value, quote
from countleak.diffix.sql.statement import Column, Kind, Table
from countleak.errors import InputError

# Share of a column's values that belong to one user only, above which the column singles out.
ISOLATING = 0.5


class Database(Protocol):
    """A database that holds declared tables."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, with what was found out about their columns."""
        ...

    def dialect(self, salt: Salt) -> Dialect:
        """How it writes what databases differ in; values are hashed with keys of the salt."""
        ...

    def rows(self, text: str, values: Sequence[Value] = ()) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement of ``sql.queries``, with the values of its parameters."""
        ...

    @property
    def usable(self) -> bool:
        """Whether it can be asked again; a connection that was lost, or is stuck, can not."""
        ...


def declare(name: str, user: str, types: Mapping[str, str], people: tuple[str, str]) -> Table:
    """A table of columns by their SQL types; SQL must be able to tell their names apart.

    ``people`` are the name and user column of the first table of the database.
    """
    if user not in types:
        raise InputError(
            f"table {name} has no column {user!r} to name the user of a row; it has "
            f"{', '.join(types)}"
        )
    if len({column.lower() for column in types}) < len(types):
        raise InputError(f"table {name}: two columns differ in case only; rename one")
    columns = {column: _kind(type_name) for column, type_name in types.items()}
    return Table(name, user, columns, people=people)


def _kind(type_name: str) -> Kind:
    name = type_name.upper().split("(")[0].strip()
    if name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"):
        return Kind.WHOLE
    if name in (
        *("REAL", "FLOAT", "DOUBLE", "DOUBLE PRECISION", "DECIMAL", "NUMERIC"),
        *("UBIGINT", "HUGEINT", "UHUGEINT"),
    ):
        return Kind.NUMBER
    if name == "DATE":
        return Kind.DATE
    return Kind.TEXT


def with_statistics(
    table: Table, dialect: Dialect, first_row: Callable[[str], Sequence[Any]]
) -> Table:
    """The table with what its rows say about its columns; ``first_row`` runs a query."""
    single, isolating = set(), {table.user}
    user = Column(table.user, table.columns[table.user])
    for name, kind in table.columns.items():
        column = quote(name)
        source = dialect.source(table, list(dict.fromkeys([user, Column(name, kind)])))
        # Rows with a value, distinct values, and values that belong to one user only.
        rows, values, of_one_user = first_row(
            "SELECT sum(n), count(*), sum(CASE WHEN u = 1 THEN 1 ELSE 0 END) FROM ("
            f"SELECT {column} AS v, count(*) AS n, count(DISTINCT {quote(table.user)}) AS u "
            f"FROM {source} WHERE {column} IS NOT NULL GROUP BY {column}) AS s"
        )
        if rows is not None and rows == values:
            single.add(name)
        if int(of_one_user or 0) / (int(values) + 1) > ISOLATING:
            isolating.add(name)
    return replace(table, single=frozenset(single), isolating=frozenset(isolating))
