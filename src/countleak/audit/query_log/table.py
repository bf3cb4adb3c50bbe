"""The owner's table, copied into an embedded database: which of its rows a condition holds for.

The source is opened to be read only, and only the columns that conditions mention are copied. Then
nothing outside can be reached, whatever a condition says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.audit.query_log.counts import Asked
from countleak.audit.targets.embedded import CLOSED, READERS
from countleak.errors import InputError
from countleak.foreign import clean, first_line

if TYPE_CHECKING:
    import duckdb

    from countleak.audit.targets.database import DatabaseTarget

# Conditions that are computed at once: one bit each of a word per row.
WORD = 64
ROWS, GROUPS, NUMBER = "countleak_rows", "countleak_groups", "countleak_row"
DUCKDB = "duckdb:///"
POSTGRES = ("postgresql://", "postgres://")
MOST_SHOWN = 10
# Seconds that copying a table may take.
PATIENCE = 3600.0


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a table in DuckDB, numbered from 0 in the column ``NUMBER``, with its columns."""

    connection: "duckdb.DuckDBPyConnection"
    rows: int
    types: Mapping[str, str]

    def words(self, conditions: Sequence[str]) -> NDArray[np.uint64]:
        """A word (n,) per row, whose bit i is 1 where condition i holds; NULL is no."""
        bits = (
            f"(CASE WHEN ({condition}) THEN {1 << place}::UBIGINT ELSE 0 END)"
            for place, condition in enumerate(conditions)
        )
        found = self.connection.execute(
            f"SELECT {' | '.join(bits)} AS word FROM {ROWS} ORDER BY {NUMBER}"
        ).fetchnumpy()["word"]
        return np.asarray(found, np.uint64)

    def groups(self, asked: Asked) -> tuple[NDArray[np.uint64], list[tuple[str | None, ...]]]:
        """The group (n,) of each row, from 1 on, 0 for none, and each group's values as text."""
        keys = ", ".join(f"({key}) AS k{at}" for at, key in enumerate(asked.by))
        names = [f"k{at}" for at in range(len(asked.by))]
        of = f"(SELECT {NUMBER}, {keys} FROM {ROWS} WHERE ({asked.condition})) AS t"
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {GROUPS} AS SELECT {', '.join(names)}, "
            f"row_number() OVER (ORDER BY {', '.join(names)}) AS place FROM "
            f"(SELECT DISTINCT {', '.join(names)} FROM {of})"
        )
        written = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
        values = self.connection.execute(
            f"SELECT {written} FROM {GROUPS} ORDER BY place"
        ).fetchall()
        same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in names)
        found = self.connection.execute(
            f"SELECT t.{NUMBER} AS row, g.place AS place FROM {of} JOIN {GROUPS} AS g ON {same}"
        ).fetchnumpy()
        place = np.zeros(self.rows, np.uint64)
        place[np.asarray(found["row"], np.int64)] = np.asarray(found["place"], np.uint64)
        return place, values

    def is_unique(self, column: str) -> bool:
        """Whether no value of a column occurs twice; NULL is none."""
        name = quoted(column)
        (row,) = self.connection.execute(
            f"SELECT count({name}) = count(DISTINCT {name}) FROM {ROWS}"
        ).fetchall()
        return bool(row[0])


class Source:
    """Where the table is: a DuckDB, CSV or Parquet file, or a database at an SQLAlchemy URL."""

    def __init__(self, database: str, table: str | None, authorised_by: str | None = None):
        """Find the ``table``; it may be left out for a CSV or Parquet file, which is one."""
        import duckdb

        self.database = database
        database = database.removeprefix(DUCKDB)
        self._connection = duckdb.connect(":memory:", config={**CLOSED, "threads": 2})
        self._remote = _remote(database, authorised_by)
        path = Path(database)
        if self._remote is None and not path.is_file():
            raise InputError(f"{clean(database)}: no such file; check the name")
        if table is None and path.suffix not in READERS:
            raise InputError("name the table that the log asks about")
        self.table = table or path.stem
        self.parts = tuple(part.strip('"').lower() for part in self.table.split("."))
        try:
            names = self._found(path)
        except duckdb.Error as error:
            raise InputError(f"{clean(database)}: {first_line(str(error))}") from None
        self.columns: Mapping[str, str] = {name.lower(): name for name in names}

    @property
    def dialect(self) -> str:
        """What sqlglot calls the SQL that is asked of such a database."""
        if self._remote is None:
            return "duckdb"
        return self._remote.questions.dialect

    def _found(self, path: Path) -> Sequence[str]:
        """The columns of the table, which is ``_from`` in DuckDB."""
        self._from = "given"
        if self._remote is not None:
            tables = self._remote.tables()
            found = [name for name in tables if name.lower() == self.parts[-1]]
            if not found:
                raise InputError(
                    f"{self._remote} has no table {clean(self.table)!r}; it has "
                    f"{clean(', '.join(sorted(tables)[:MOST_SHOWN])) or 'none'}"
                )
            self._name = found[0]
            return tables[found[0]]
        name = str(path).replace("'", "''")
        if path.suffix in READERS:
            self._from = f"{READERS[path.suffix]}('{name}')"
        else:
            self._connection.execute(f"ATTACH '{name}' AS given (READ_ONLY)")
            parts = (quoted(part.strip('"')) for part in self.table.split("."))
            self._from = ".".join(["given", *parts])
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {self._from}").fetchall()
        return [str(row[0]) for row in described]

    def load(self, columns: Sequence[str]) -> Table:
        """The table with some of its columns, from which on nothing outside can be reached."""
        import duckdb

        chosen = ", ".join([f"row_number() OVER () - 1 AS {NUMBER}", *map(quoted, columns)])
        connection = self._connection
        try:
            if self._remote is not None:
                # Rows are copied even where no condition mentions a column.
                some = columns or tuple(self.columns.values())[:1]
                _copy(connection, self._remote, self._name, some)
            connection.execute(f"CREATE TABLE {ROWS} AS SELECT {chosen} FROM {self._from}")
            if self._from.startswith("given."):
                connection.execute("DETACH given")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            rows = connection.execute(f"SELECT count(*) FROM {ROWS}").fetchall()[0][0]
        except duckdb.Error as error:
            raise InputError(f"{clean(self.database)}: {first_line(str(error))}") from None
        if not rows:
            raise InputError(f"{clean(self.table)} has no rows; name the table of the people")
        described = connection.execute(f"DESCRIBE {ROWS}").fetchall()
        return Table(connection, int(rows), {str(row[0]): str(row[1]) for row in described})


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _remote(database: str, authorised_by: str | None) -> "DatabaseTarget | None":
    """The database at a URL, if it is one, and may be read."""
    if "://" not in database:
        return None
    from countleak.audit.targets.database import DatabaseTarget
    from countleak.audit.targets.limits import RequestLimits
    from countleak.audit.targets.sql import SqlQuestions

    scheme = next((scheme for scheme in POSTGRES if database.startswith(scheme)), None)
    url = database if scheme is None else f"postgresql+psycopg://{database.removeprefix(scheme)}"
    target = DatabaseTarget(url, SqlQuestions("?", ("?",)), RequestLimits(seconds=PATIENCE))
    if not target.is_local and not authorised_by:
        raise InputError(f"{target} is another machine; say who allows it to be read")
    return target


def _copy(
    connection: "duckdb.DuckDBPyConnection",
    target: "DatabaseTarget",
    table: str,
    columns: Sequence[str],
) -> None:
    """Copy some columns of a database's table as ``given``."""
    rows = target.rows_of(table, columns)
    held: dict[str, NDArray[Any]] = {}
    for at, name in enumerate(columns):
        held[name] = np.empty(len(rows), dtype=object)
        held[name][:] = [row[at] for row in rows]
    if not rows:
        raise InputError(f"{clean(table)} has no rows; name the table of the people")
    # The type of a column is that of all of its values.
    connection.execute(f"SET GLOBAL pandas_analyze_sample = {len(rows)}")
    connection.register("part", held)
    connection.execute("CREATE TABLE given AS SELECT * FROM part")
    connection.unregister("part")
