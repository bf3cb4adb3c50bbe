"""The embedded database: tables in DuckDB, behind closed doors.

The data are copied in, cleaned, with the salted hash of every value beside it, computed once. Then
access to anything outside is turned off and the configuration locked, before any question comes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np

from countleak.diffix.databases.database import declare, with_statistics
from countleak.diffix.salt import Salt
from countleak.diffix.sql.dates import column_in_sql
from countleak.diffix.sql.joins import join_rows
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.magnitude import LARGEST, SMALLEST
from countleak.diffix.sql.render import Dialect, Hash, Value, Where, quote, write_text
from countleak.diffix.sql.statement import Column, Kind, Table
from countleak.errors import InputError, TargetError

SOURCE = "countleak_source"
# Below this, handing work to a second thread takes longer than doing it.
FEW_ROWS = 200_000
# Below this, planning takes longer than doing it; and without an optimizer DuckDB plans a prepared
# statement once, not every time.
PLAIN_ROWS = 20_000
# Prepared statements that are kept, the latest used, and their characters: one takes some hundred
# bytes for each.
PREPARED, PREPARED_CHARACTERS = 200, 400_000


@dataclass(frozen=True)
class DuckDialect:
    """Columns were cleaned, and hashes computed, when the table was loaded.

    A row takes no time to speak of, so there are no decoys.
    """

    salt: Salt

    apart = ""

    def source(self, table: Table, columns: Sequence[Column]) -> str:
        if table.joined:
            return join_rows(table, columns, self.source, hashed=True)
        return quote(table.name)

    def matching(
        self, table: Table, source: str, hashes: Sequence[Hash], where: Where, decoys: str
    ) -> str:
        if table.per_user is None:
            return f"{source} WHERE {where.text}"
        hashed = [f"{self.hashed(table, of)} AS {quote(of.name)}" for of in hashes]
        return f"(SELECT {', '.join(['*', *hashed])} FROM {source} WHERE {where.text}) AS t"

    def hashed(self, table: Table, of: Hash) -> str:
        if table.per_user is None:
            return quote(of.name)
        return hash_in_sql(of.column, self.salt.value_key(table, of.column, of.role))

    def counted(self, expression: str) -> str:
        return expression

    def weighed(self, expression: str) -> str:
        return expression

    def largest(self, expression: str, count: int) -> str:
        return f"max({expression}, {count})"


class Duck:
    """Tables in an embedded DuckDB of their own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], salt: Salt):
        """Take over a connection that holds loaded tables; use ``of_columns`` or ``of_file``."""
        self.tables = tuple(tables)
        self._connection = connection
        self._salt = salt
        self._prepared: dict[str, str] = {}
        self._characters = 0
        self._numbers = count()

    @property
    def table(self) -> Table:
        """The first table."""
        return self.tables[0]

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, np.ndarray],
        salt: Salt,
        *,
        table: str,
        user: str,
        threads: int = 2,
    ) -> Self:
        """A table of arrays of equal length."""
        loaded = {
            name: values.astype(object) if values.dtype.kind == "U" else values
            for name, values in columns.items()
        }
        return cls._load(lambda c, _: c.register(SOURCE, loaded), salt, {table: user}, threads)

    @classmethod
    def of_file(
        cls,
        path: Path,
        salt: Salt,
        *,
        table: str,
        user: str,
        others: Mapping[str, str] | None = None,
        threads: int = 2,
    ) -> Self:
        """The table of a CSV or Parquet file, or that of its name in a DuckDB file.

        ``others`` are more tables of a DuckDB file with their user columns, which can be joined.
        """
        if not path.is_file():
            raise InputError(f"{path}: no such file; check the name")
        name = write_text(str(path))

        def view(connection: duckdb.DuckDBPyConnection, table: str) -> None:
            if path.suffix in (".parquet", ".csv"):
                reader = "read_parquet" if path.suffix == ".parquet" else "read_csv"
                source = f"{reader}({name})"
            else:
                connection.execute(f"ATTACH {name} AS given (READ_ONLY)")
                source = f"given.{quote(table)}"
            connection.execute(f"CREATE TEMP VIEW {SOURCE} AS SELECT * FROM {source}")

        try:
            return cls._load(view, salt, {table: user} | dict(others or {}), threads)
        except duckdb.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from None

    @classmethod
    def _load(
        cls,
        source: Callable[[duckdb.DuckDBPyConnection, str], object],
        salt: Salt,
        users: Mapping[str, str],
        threads: int,
    ) -> Self:
        """Tables with their ``users``; ``source`` makes the view that one is read from."""
        connection = duckdb.connect(":memory:", config={"threads": threads})
        declared = []
        for table in users:
            source(connection, table)
            declared.append(_copied(connection, salt, table, users))
            _forget_source(connection)
        rows = sum(_count_rows(connection, table) for table in users)
        if rows < FEW_ROWS:
            connection.execute("SET threads = 1")
        if rows < PLAIN_ROWS:
            connection.execute("PRAGMA disable_optimizer")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        known = [
            with_statistics(
                table, DuckDialect(salt), lambda query: connection.execute(query).fetchall()[0]
            )
            for table in declared
        ]
        return cls(connection, known, salt)

    def dialect(self, salt: Salt) -> Dialect:
        if salt != self._salt:
            raise InputError("the table was loaded with another salt; load it again with this one")
        return DuckDialect(salt)

    def rows(self, text: str, values: Sequence[Value] = ()) -> Sequence[tuple[Any, ...]]:
        try:
            written = f"({', '.join(map(_written, values))})" if values else ""
            return self._connection.execute(f"EXECUTE {self._name(text)}{written}").fetchall()
        except duckdb.Error:
            # The database's own words could quote a row.
            raise TargetError("the database could not compute this query") from None

    @property
    def usable(self) -> bool:
        # It is in this process, and goes on after a statement that failed or was stopped.
        return True

    def _name(self, text: str) -> str:
        """The name under which a statement is prepared."""
        name = self._prepared.pop(text, None)
        if name is None:
            name = f"prepared_{next(self._numbers)}"
            self._connection.execute(f"PREPARE {name} AS {text}")
            self._characters += len(text)
        self._prepared[text] = name
        # This one is to be executed yet.
        while len(self._prepared) > 1 and (
            len(self._prepared) > PREPARED or self._characters > PREPARED_CHARACTERS
        ):
            oldest = next(iter(self._prepared))
            self._characters -= len(oldest)
            self._connection.execute(f"DEALLOCATE {self._prepared.pop(oldest)}")
        return name


def _written(value: Value) -> str:
    """A parameter's value; with an exponent a number is a double and not a decimal."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, bool):
        return str(value)
    if not math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    written = repr(value)
    return written if "e" in written else f"{written}e0"


def _clean(column: Column) -> str:
    """A column as it is loaded, with values of which none can raise an error."""
    value = quote(column.name)
    if column.kind is Kind.WHOLE:
        return f"CAST({value} AS BIGINT)"
    if column.kind is Kind.TEXT:
        # A statement cannot hold the character 0.
        return f"left(replace(CAST({value} AS VARCHAR), chr(0), ''), {LIMITS.text})"
    if column.kind is Kind.DATE:
        return column_in_sql(value)
    number = f"CAST({value} AS DOUBLE)"
    return (
        f"CASE WHEN isnan({number}) THEN NULL WHEN abs({number}) < {SMALLEST:g} THEN 0e0 "
        f"WHEN {value} IS NOT NULL THEN least(greatest({number}, {-LARGEST:g}), {LARGEST:g}) END"
    )


def hash_in_sql(column: Column, key: str) -> str:
    """The first 64 bits of the sha256 of key and value, NULL for NULL; as ``salt.canonical``."""
    text = quote(column.name)
    if column.kind is Kind.WHOLE:
        text = f"CAST({text} AS VARCHAR)"
    elif column.kind.is_double:
        text = f"CAST(CAST({text} AS BIT) AS VARCHAR)"
    return f"CAST('0x' || substr(sha256({write_text(key)} || {text}), 1, 16) AS UBIGINT)"


def _copied(
    connection: duckdb.DuckDBPyConnection, salt: Salt, table: str, users: Mapping[str, str]
) -> Table:
    """The table of the view, copied, with nobody's row and the hashes of all values."""
    user = users[table]
    described = connection.execute(f"DESCRIBE SELECT * FROM {SOURCE}").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    declared = declare(table, user, types, next(iter(users.items())))
    columns = [Column(name, kind) for name, kind in declared.columns.items()]
    hashes = [Hash(column, "value") for column in columns]
    hashes += [Hash(column, "user") for column in columns if column.name == user]
    cleaned = ", ".join(f"{_clean(column)} AS {quote(column.name)}" for column in columns)
    hashed = ", ".join(
        f"{hash_in_sql(h.column, salt.value_key(declared, h.column, h.role))} AS {quote(h.name)}"
        for h in hashes
    )
    connection.execute(
        f"CREATE TABLE {quote(table)} AS SELECT *, {hashed} FROM "
        f"(SELECT {cleaned} FROM {SOURCE}) AS s WHERE {quote(user)} IS NOT NULL "
        f"UNION ALL SELECT {', '.join(['NULL'] * (len(columns) + len(hashes)))}"
    )
    return declared


def _forget_source(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave the loaded table as the only thing there is."""
    connection.execute(f"DROP VIEW IF EXISTS {SOURCE}")
    attached = connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = 'given'")
    if attached.fetchall():
        connection.execute("DETACH given")


def _count_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {quote(table)}").fetchall()[0][0])
