"""Any database that SQLAlchemy knows as a target; its URL says which, and by which driver.

Only counting statements are sent, in sessions that may only read where the database has such.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from countleak.addresses import is_plain
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.pool import MOST_ROWS, Connection, Rows, ask_all
from countleak.audit.targets.postgres import is_loopback
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, MissingExtra, NoCount, TargetError, Transient
from countleak.foreign import clean, first_line, without

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine
    from sqlalchemy import Connection as Alchemy

UNREADABLE = (
    "the address cannot be read; write dialect+driver://user@host:port/database, with any special "
    "character of a password as %XX"
)
# The package that brings a driver, where it is called otherwise than its module.
PACKAGES = {
    "MySQLdb": "mysqlclient",
    "cx_Oracle": "cx-Oracle",
    "mysql": "mysql-connector-python",
    "psycopg2": "psycopg2-binary",
}
# Words of an address's query that may lead to another machine than its host.
ELSEWHERE = re.compile("host|server|addr|dsn|connect|service|proxy|url", re.IGNORECASE)
# What no second try changes, in the words of the drivers.
FINAL = re.compile(
    "denied|password|authent|login|permission|unknown|no such|not exist|unable to open|not allowed"
    "|not a database|unexpected keyword",
    re.IGNORECASE,
)
# MySQL's numbers of errors that may be otherwise soon: full, stopping, gone, too long, in the way.
FOR_NOW = (1040, 1053, 1205, 1213, 1969, 2002, 2003, 2006, 2013, 3024)
# As many rows as a driver can be asked for.
EVERY = 2**31 - 1
# SQLite looks at the time after so many of its instructions.
STEPS = 10_000


class DatabaseTarget:
    """Counts asked of the database at an SQLAlchemy URL; its password is never shown."""

    def __init__(self, url: str, questions: SqlQuestions, limits: RequestLimits | None = None):
        """Ask ``questions`` of the database at ``url``; nothing is sent before ``answer``."""
        from countleak.audit.targets.dialects import dialect_of

        self._url = _read(url)
        name = self._url.get_backend_name()
        self.questions = replace(questions, dialect=dialect_of(name))
        self.limits = limits or RequestLimits()
        self._is_file = name == "sqlite"
        self._engine = self._make_engine()

    @property
    def is_local(self) -> bool:
        """Whether the address can only mean this machine."""
        if self._is_file:
            return True
        named = any(ELSEWHERE.search(word) for word in self._url.query)
        return not named and self._url.host is not None and is_loopback(self._url.host)

    def __str__(self) -> str:
        from sqlalchemy import URL

        url = self._url
        shown = URL.create(
            url.drivername, url.username, host=url.host, port=url.port, database=url.database
        )
        return clean(shown.render_as_string())

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        questions = self.questions.asked(queries, positions)
        # Few drivers keep to a time; SQLite is stopped in its steps.
        return ask_all(self.connect, questions, self.limits, watched=not self._is_file)

    def connect(self) -> Connection[str]:
        """A connection of its own, for the thread that calls this."""
        connection: Alchemy | None = None
        try:
            connection = self._engine.connect()
            for statement in _settings(connection, self.limits.seconds):
                connection.exec_driver_sql(statement)
            if self._is_file:
                _let_floor_take_null(connection)
                self._check_columns(connection)
        except _faults() as error:
            if connection is not None:
                connection.invalidate()
                connection.close()
            if isinstance(error, InputError):
                raise
            raise self.fault(error, "check the address and that the database runs") from None
        return _Connection(connection, self)

    def _check_columns(self, connection: "Alchemy") -> None:
        """Raise where a column is not there, which SQLite would take for a text."""
        asked = self.questions
        rows = connection.exec_driver_sql(
            "SELECT name FROM pragma_table_info(?)", (asked.table.rpartition(".")[2],)
        )
        names = [str(name) for (name,) in rows.fetchall()]
        wanted = (*asked.key, *(asked.secret.columns if asked.secret is not None else ()))
        for name in wanted if names and asked.template is None else ():
            if name.lower() not in map(str.lower, names):
                raise InputError(
                    f"{self}: {asked.table} has no column {name!r}; the columns are "
                    f"{clean(', '.join(names))}"
                )

    def tables(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table and view, by name."""
        from sqlalchemy import inspect

        try:
            found = inspect(self._engine)
            names = [*found.get_table_names(), *found.get_view_names()]
            return {
                name: tuple(str(column["name"]) for column in found.get_columns(name))
                for name in names
            }
        except _faults() as error:
            raise self.fault(error, "check the address and that the database runs") from None

    def rows_of(self, table: str, columns: Sequence[str]) -> Rows:
        """Some columns of all rows of a table."""
        from sqlalchemy import column, select
        from sqlalchemy import table as named
        from sqlalchemy.sql import quoted_name

        chosen: list[Any] = [column(quoted_name(name, True)) for name in columns]
        statement = select(*chosen).select_from(named(quoted_name(table, True)))
        connection = self.connect()
        assert isinstance(connection, _Connection)
        try:
            return connection.all_rows(str(statement.compile(dialect=self._engine.dialect)))
        finally:
            connection.close()

    def fault(self, error: Exception, advice: str | None = None) -> TargetError:
        """What an error of the driver means to whoever asks."""
        from sqlalchemy.exc import DBAPIError

        said = error.orig if isinstance(error, DBAPIError) else error
        if self._is_file and str(said) == "interrupted":
            return self.limits.overdue()
        number, *rest = getattr(said, "args", None) or (None,)
        words = self.words(str(rest[0] if isinstance(number, int) and rest else said))
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        away = number in FOR_NOW or isinstance(said, OSError) or "locked" in words
        opening = advice is not None and not FINAL.search(words)
        if lost or away or opening:
            what = f"{self}: the connection was lost ({words})" if lost else f"{self}: {words}"
            return Transient(what) if advice is None else Transient(what, advice)
        return TargetError(f"{self}: {words}" + (f"; {advice}" if advice else ""))

    def words(self, text: str) -> str:
        """What a database or a driver said, in one clean line without the password."""
        values = [
            word
            for each in self._url.query.values()
            for word in ((each,) if isinstance(each, str) else each)
            if len(word) > 3
        ]
        password = None if self._url.password is None else str(self._url.password)
        return first_line(without(text, password, *values))

    def _make_engine(self) -> "Engine":
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool

        try:
            engine = create_engine(
                self._url,
                poolclass=NullPool,
                isolation_level="AUTOCOMMIT",
                **self._driver_options(),
            )
        except NoSuchModuleError:
            raise InputError(
                f"there is no database called {clean(self._url.drivername)!r}; write what "
                "SQLAlchemy calls it (some take a package of their own), like sqlite:///file.db or "
                "mysql+pymysql://user@host/database"
            ) from None
        except ModuleNotFoundError as error:
            driver = error.name or self._url.get_driver_name()
            package = PACKAGES.get(driver, driver)
            raise MissingExtra(f"{self} by the driver {driver}", "databases", package) from None
        except (ArgumentError, TypeError):
            # Their own words could quote the password.
            raise InputError(UNREADABLE) from None
        if engine.dialect.is_async:
            driver = clean(self._url.get_driver_name())
            raise InputError(f"{self}: the driver {driver} is asynchronous; name one that is not")
        return engine

    def _driver_options(self) -> dict[str, Any]:
        """What a driver is told of files and of time."""
        if self._is_file:
            path = _file(self._url)
            return {"creator": lambda: _open(path, self.limits)}
        if self._url.get_driver_name() != "pymysql":
            return {}
        patience = max(1, round(self.limits.patience))
        return {
            "connect_args": {
                "connect_timeout": max(1, round(self.limits.connect_seconds)),
                "read_timeout": patience,
                "write_timeout": patience,
                "local_infile": False,
            }
        }


class _Connection:
    """One connection."""

    def __init__(self, connection: "Alchemy", target: DatabaseTarget):
        self._connection = connection.execution_options(no_parameters=True)
        self._target = target

    def ask(self, statement: str) -> float | None:
        rows = self._rows(statement, 2)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise NoCount("the answer is no single value; check that it counts")
        return self._target.questions.count_of(rows[0][0])

    def rows(self, statement: str) -> Rows:
        return self._rows(statement, MOST_ROWS)

    def all_rows(self, statement: str) -> Rows:
        return self._rows(statement, EVERY)

    def _rows(self, statement: str, most: int) -> Rows:
        raw = self._connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            end = monotonic() + self._target.limits.seconds
            raw.set_progress_handler(lambda: int(monotonic() > end), STEPS)
        try:
            return self._connection.exec_driver_sql(statement).fetchmany(most)
        except _faults() as error:
            raise self._target.fault(error) from None

    def close(self) -> None:
        # What is not handed back properly is only dropped: a database may be gone.
        self._connection.invalidate()
        self._connection.close()


def _faults() -> tuple[type[Exception], ...]:
    """What SQLAlchemy raises, and drivers that are given options or answers they do not know."""
    from sqlalchemy.exc import SQLAlchemyError

    return SQLAlchemyError, OSError, RuntimeError, ValueError, TypeError


def _read(text: str) -> "URL":
    """The URL in a text; what is wrong is told without quoting any of it."""
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ModuleNotFoundError:
        raise MissingExtra("a database target", "databases") from None
    if not text.isprintable() or (not text.startswith("sqlite") and not is_plain(text)):
        raise InputError(UNREADABLE)
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(UNREADABLE) from None


def _file(url: "URL") -> Path:
    if url.host or not url.database or url.database == ":memory:":
        raise InputError("name the file of the SQLite database, like sqlite:///clinic.db")
    path = Path(url.database)
    if not path.is_file():
        raise InputError(f"{clean(str(path))}: no such file; check the name")
    return path


def _open(path: Path, limits: RequestLimits) -> sqlite3.Connection:
    """The file of a SQLite database, to be read only; it may be made in one thread, used in one."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro",
        uri=True,
        check_same_thread=False,
        timeout=limits.seconds,
        isolation_level=None,
    )
    connection.execute("PRAGMA query_only = ON")
    return connection


def _let_floor_take_null(connection: "Alchemy") -> None:
    """Put back what SQLite's own floor does: SQLAlchemy's in its place fails for NULL."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    raw.create_function("floor", 1, lambda x: None if x is None else floor(x), deterministic=True)


def _settings(connection: "Alchemy", seconds: float) -> list[str]:
    """What is said to a database before it is asked: that it is only read, and for how long."""
    milliseconds = max(1, int(1000 * seconds))
    if connection.dialect.name in ("mysql", "mariadb"):
        limit = (
            f"SET SESSION max_statement_time = {max(0.001, seconds):.3f}"
            if getattr(connection.dialect, "is_mariadb", False)
            else f"SET SESSION max_execution_time = {milliseconds}"
        )
        return ["SET SESSION TRANSACTION READ ONLY", limit]
    if connection.dialect.name == "postgresql":
        return [
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            f"SET statement_timeout = {milliseconds}",
        ]
    if connection.dialect.name == "mssql":
        return [f"SET LOCK_TIMEOUT {milliseconds}"]
    return []
