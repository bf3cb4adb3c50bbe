"""The narrow seam to a database: a table, a dialect, and rows for SQL that ``render`` wrote."""

from collections.abc import Sequence
from typing import Any, Protocol

from countleak.diffix.salt import Salt
from countleak.diffix.sql.render import Dialect
from countleak.diffix.sql.statement import Kind, Table
from countleak.errors import InputError

# Share of a column's values that belong to one user only, above which the column singles out.
ISOLATING = 0.5


class Database(Protocol):
    """A database that holds one declared table."""

    @property
    def table(self) -> Table:
        """The table, with what was found out about its columns."""
        ...

    def dialect(self, salt: Salt) -> Dialect:
        """How it writes what databases differ in; values are hashed with keys of the salt."""
        ...

    def rows(self, text: str, values: Sequence[str | float] = ()) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement that ``render`` wrote, with the values of its parameters."""
        ...

    def interrupt(self) -> None:
        """Stop the statement that runs in another thread, if one does; it raises there."""
        ...


def kind_of(type_name: str) -> Kind:
    """The kind of a column of that SQL type."""
    name = type_name.upper().split("(")[0].strip()
    if name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"):
        return Kind.WHOLE
    if name in (
        *("REAL", "FLOAT", "DOUBLE", "DOUBLE PRECISION", "DECIMAL", "NUMERIC"),
        *("UBIGINT", "HUGEINT", "UHUGEINT"),
    ):
        return Kind.NUMBER
    return Kind.TEXT


def check_columns(name: str, user: str, columns: dict[str, Kind]) -> None:
    """Refuse a table without the user column, or with names SQL could not tell apart."""
    if user not in columns:
        raise InputError(
            f"table {name} has no column {user!r} to name the user of a row; it has "
            f"{', '.join(columns)}"
        )
    if len({column.lower() for column in columns}) < len(columns):
        raise InputError(f"table {name}: two columns differ in case only; rename one")


def statistics_query(name: str, user: str, column: str) -> str:
    """Rows with a value, distinct values, and values that belong to one user only."""
    return (
        f"SELECT sum(n), count(*), sum(CASE WHEN u = 1 THEN 1 ELSE 0 END) FROM ("
        f"SELECT {column} AS v, count(*) AS n, count(DISTINCT {user}) AS u FROM {name} "
        f"WHERE {column} IS NOT NULL GROUP BY {column}) AS s"
    )


def is_isolating(values: int, of_one_user: int) -> bool:
    """Whether most values of a column single out a user."""
    return of_one_user / (values + 1) > ISOLATING
