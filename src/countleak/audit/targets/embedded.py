"""A DuckDB file as a target, or a CSV or Parquet file as a table that is counted exactly.

Files are opened to be read only. Once a CSV or Parquet file is loaded nothing outside can be
reached, and no extension is ever fetched.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.pool import MOST_ROWS, Connection, Rows, ask_all
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, NoCount, TargetError, Transient
from countleak.files import Name
from countleak.foreign import clean, first_line

if TYPE_CHECKING:
    import duckdb

READERS = {".csv": "read_csv", ".parquet": "read_parquet"}
# How a file of SQLite begins, for which DuckDB would fetch an extension.
SQLITE = b"SQLite format 3"
CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


class DuckTarget:
    """Counts of a table in a DuckDB file, or of the people in a CSV or Parquet file.

    Such a file is one table, called like the file without its ending.
    """

    is_local = True

    def __init__(self, path: Name, questions: SqlQuestions, limits: RequestLimits | None = None):
        """Ask ``questions`` of the file at ``path``, which is opened when it is first asked."""
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{clean(str(path))}: no such file; check the name")
        with self.path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                name = clean(str(path))
                raise InputError(f"{name} is a SQLite database; write sqlite:///{name}")
        self.questions = replace(questions, dialect="duckdb")
        self.limits = limits or RequestLimits()
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._lock = Lock()

    def __str__(self) -> str:
        return clean(f"duckdb:///{self.path}")

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        questions = self.questions.asked(queries, positions)
        return ask_all(self.connect, questions, self.limits, watched=True)

    def connect(self) -> Connection[str]:
        """A connection of its own, for the thread that calls this."""
        return _Connection(self._open().cursor(), self)

    def tables(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table and view, by name."""
        rows = (
            self._open()
            .cursor()
            .execute(
                "SELECT table_schema, table_name, list(column_name ORDER BY ordinal_position) "
                "FROM information_schema.columns GROUP BY ALL ORDER BY ALL"
            )
            .fetchall()
        )
        return {
            name if schema == "main" else f"{schema}.{name}": tuple(columns)
            for schema, name, columns in rows
        }

    def _open(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        with self._lock:
            if self._opened is None:
                try:
                    self._opened = self._read()
                except duckdb.Error as error:
                    raise InputError(f"{self}: {first_line(str(error))}") from None
            return self._opened

    def _read(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        if (suffix := self.path.suffix.lower()) not in READERS:
            config: dict[str, str | bool | int | float | list[str]] = {**CLOSED}
            connection = duckdb.connect(self.path, read_only=True, config=config)
        else:
            connection = duckdb.connect(":memory:", config={**CLOSED})
            # No parameter may stand here, so the name is written as SQL writes a text.
            name = str(self.path).replace("'", "''")
            table = self.path.stem.replace('"', '""')
            reader = READERS[suffix]
            connection.execute(f"CREATE TABLE \"{table}\" AS SELECT * FROM {reader}('{name}')")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection


class _Connection:
    """One cursor."""

    def __init__(self, cursor: "duckdb.DuckDBPyConnection", target: DuckTarget):
        self._cursor, self._target = cursor, target

    def ask(self, statement: str) -> float | None:
        rows = self._rows(statement, 2)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise NoCount("the answer is no single value; check that it counts")
        return self._target.questions.count_of(rows[0][0])

    def rows(self, statement: str) -> Rows:
        return self._rows(statement, MOST_ROWS)

    def _rows(self, statement: str, most: int) -> Rows:
        import duckdb

        try:
            return self._cursor.execute(statement).fetchmany(most)
        except (duckdb.TransactionException, duckdb.InterruptException) as error:
            raise Transient(f"{self._target}: {first_line(str(error))}") from None
        except duckdb.Error as error:
            raise TargetError(f"{self._target}: {first_line(str(error))}") from None

    def close(self) -> None:
        self._cursor.close()
