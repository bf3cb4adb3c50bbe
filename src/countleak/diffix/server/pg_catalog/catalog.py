"""The catalog: what clients look up about the tables, from their names and columns alone.

A database of its own in memory holds the rows that PostgreSQL's system tables would have for the
declared tables, and none of the data. A look-up is parsed, its tables and functions are held
against a list, and it is written anew for that database.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
from sqlglot import exp

from countleak.diffix.server.control import VERSION
from countleak.diffix.server.errors import NO_MEMORY, TOO_MUCH, Failure
from countleak.diffix.server.memory import at_most
from countleak.diffix.server.pg_catalog.definitions import FUNCTIONS, SYSTEM_TABLES
from countleak.diffix.server.pg_catalog.rewriting import write_lookup
from countleak.diffix.server.pg_catalog.rows import rows_of
from countleak.diffix.server.results import BOOL, FLOAT8, INT4, INT8, TEXT, TEXTS, Field, Type
from countleak.diffix.sql.render import quote
from countleak.diffix.sql.statement import Table

log = logging.getLogger(__name__)
SCHEMA = "catalog_tables"
# MiB. DuckDB holds to it for its tables, and the system for all else that a look-up takes.
MEMORY = 256
# Rows that a look-up returns at most, and their bytes; no client's own look-ups come near.
MOST_ROWS, MOST_BYTES = 10_000, 4_000_000


class PgCatalog:
    """The system tables of a database that holds ``tables``; ``users`` are its roles."""

    def __init__(self, database: str, tables: Sequence[Table], users: Iterable[str]):
        """Write the system tables; after this the database is closed to everything outside."""
        self._database = database
        self._connection = duckdb.connect(
            ":memory:",
            config={"threads": 1, "memory_limit": f"{MEMORY}MiB", "max_temp_directory_size": "0B"},
        )
        self._connection.execute(f"CREATE SCHEMA {SCHEMA}; USE {SCHEMA}")
        rows_by_table = rows_of(database, tables, sorted(users))
        for name, columns in SYSTEM_TABLES.items():
            declared = ", ".join(f"{quote(c)} {t}" for c, t in columns.items())
            self._connection.execute(f"CREATE TABLE {quote(name)} ({declared})")
            for row in rows_by_table.get(name, ()):
                names = ", ".join(quote(column) for column in row)
                marks = ", ".join("?" * len(row))
                self._connection.execute(
                    f"INSERT INTO {quote(name)} ({names}) VALUES ({marks})", list(row.values())
                )
        for signature, body in FUNCTIONS.items():
            self._connection.execute(f"CREATE MACRO {signature} AS {body}")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def fields(self, tree: exp.Expr, user: str) -> tuple[Field, ...]:
        """The columns that a look-up returns."""
        described = self._execute(f"DESCRIBE {self._written(tree, user)}")
        return tuple(Field(str(row[0]), _type_of(str(row[1]))) for row in described)

    def rows(self, tree: exp.Expr, user: str) -> tuple[tuple[Field, ...], list[tuple[Any, ...]]]:
        """What a look-up returns, under its columns."""
        fields = self.fields(tree, user)
        return fields, self._execute(self._written(tree, user))

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            with at_most(MEMORY * 2**20):
                rows = self._connection.execute(statement).fetchmany(MOST_ROWS + 1)
        except (MemoryError, duckdb.OutOfMemoryException):
            raise Failure(NO_MEMORY, "The look-up needs too much memory.") from None
        except duckdb.Error as error:
            # There is nothing in it but names, so its words may be shown.
            line = str(error).splitlines()[0]
            log.debug("catalog: failed: %s: %s", line, statement)
            raise Failure("42000", f"The catalog cannot answer this: {line[:200]}") from None
        if len(rows) > MOST_ROWS:
            raise Failure(TOO_MUCH, f"The answer has more than {MOST_ROWS} rows.")
        # Only texts and lists can be long.
        size = sum(len(v) for row in rows for v in row if isinstance(v, str | list))
        if size > MOST_BYTES:
            raise Failure(TOO_MUCH, f"The answer has more than {MOST_BYTES} bytes.")
        return rows

    def _written(self, tree: exp.Expr, user: str) -> str:
        """The look-up in the dialect of the catalog, with nothing in it that is not listed."""
        version = f"PostgreSQL {VERSION} (countleak, a rebuilt Diffix)"
        return write_lookup(
            tree,
            {
                "version": version,
                "current_version": version,
                "current_database": self._database,
                "current_catalog": self._database,
                "current_schema": "public",
                "current_user": user,
                "session_user": user,
                "current_role": user,
                "user": user,
            },
        )


def is_of_catalog(table: exp.Table) -> bool:
    """Whether a table, or a function in its place, belongs to the catalog."""
    schema = table.db.lower()
    if schema:
        return schema in ("pg_catalog", "information_schema")
    return table.name.lower().startswith("pg_") or not isinstance(table.this, exp.Identifier)


def _type_of(name: str) -> Type:
    if name.endswith("[]"):
        return TEXTS
    return {
        "BOOLEAN": BOOL,
        "TINYINT": INT4,
        "SMALLINT": INT4,
        "INTEGER": INT4,
        "BIGINT": INT8,
        "UINTEGER": INT8,
        "HUGEINT": INT8,
        "FLOAT": FLOAT8,
        "DOUBLE": FLOAT8,
    }.get(name.partition("(")[0], TEXT)
