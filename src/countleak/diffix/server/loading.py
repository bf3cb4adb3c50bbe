"""How a worker loads a database: from arrays, a file, or a PostgreSQL server.

These are orders that can be sent to another process, and carried out there as often as need be.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import connect
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt


@dataclass(frozen=True)
class Columns:
    """One table of arrays; ``user`` is the column that names the user of a row."""

    columns: dict[str, NDArray[Any]] = field(repr=False)
    table: str
    user: str
    release: str
    salt: Salt

    def __call__(self, stack: ExitStack) -> Engine:
        """The engine of the table."""
        duck = Duck.of_columns(self.columns, self.salt, table=self.table, user=self.user)
        return Engine(duck, release_of(self.release), self.salt)


@dataclass(frozen=True)
class File:
    """Tables of a CSV, Parquet or DuckDB file, each with its user column."""

    path: Path
    tables: dict[str, str]
    release: str
    salt: Salt

    def __call__(self, stack: ExitStack) -> Engine:
        """The engine of the tables."""
        (table, user), *others = self.tables.items()
        duck = Duck.of_file(self.path, self.salt, table=table, user=user, others=dict(others))
        return Engine(duck, release_of(self.release), self.salt)


@dataclass(frozen=True)
class Remote:
    """Tables of a PostgreSQL server, each with its user column; no statement takes longer."""

    url: str = field(repr=False)
    tables: dict[str, str]
    release: str
    salt: Salt
    seconds: int

    def __call__(self, stack: ExitStack) -> Engine:
        """The engine of the tables, with one connection."""
        (table, user), *others = self.tables.items()
        database = stack.enter_context(
            connect(self.url, table=table, user=user, others=dict(others), seconds=self.seconds)
        )
        return Engine(database, release_of(self.release), self.salt)
