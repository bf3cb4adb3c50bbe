"""Any system that speaks PostgreSQL's protocol as a target: a noisy front, or a plain server."""

import ipaddress
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.secrets import Number
from countleak.attack.transcript import Answers
from countleak.audit.targets.pool import Connection, RequestLimits, ask_all
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, MissingExtra, Refused, TargetError

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
# PostgreSQL's class of states for what a server does not do.
NOT_SUPPORTED = "0A000"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine; a name is so only if it is localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class PostgresTarget:
    """Counts asked of a server at an address, as libpq reads it, in read-only sessions.

    The password comes from the address, PGPASSWORD or the user's .pgpass, and is never shown.
    """

    def __init__(self, url: str, questions: SqlQuestions, limits: RequestLimits | None = None):
        """Ask ``questions`` of the server at ``url``; nothing is sent before ``answer``."""
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise MissingExtra("a PostgreSQL target", "live") from None
        self.questions, self.limits = questions, limits or RequestLimits()
        self._url = url
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:
            # libpq's own words could quote the password.
            raise InputError(
                "the address cannot be read; write postgresql://user@host:port/database"
            ) from None
        defaults = {
            option.keyword.decode(): option.val.decode()
            for option in psycopg.pq.Conninfo.get_defaults()
            if option.val is not None
        }
        self._info: dict[str, Any] = {**defaults, **given}

    @property
    def is_local(self) -> bool:
        """Whether the address can only mean this machine."""
        if self._info.get("service") or os.environ.get("PGSERVICE"):
            return False
        hosts = [str(self._info.get(name) or "").split(",") for name in ("host", "hostaddr")]
        return all(
            not host or host.startswith(("/", "@")) or is_loopback(host)
            for named in hosts
            for host in named
        )

    def __str__(self) -> str:
        info = self._info
        host = info.get("host") or info.get("hostaddr") or "a local socket"
        port = f":{info['port']}" if info.get("port") and info.get("host") else ""
        user = f"{info['user']}@" if info.get("user") else ""
        name = info.get("dbname") or info.get("user") or ""
        return f"postgresql://{user}{host}{port}/{name}"

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        statements = [(at, self.questions.statement(queries, at)) for at in positions.tolist()]
        return ask_all(self.connect, statements, self.limits)

    def connect(self) -> Connection:
        """A connection of its own."""
        import psycopg

        try:
            connection = psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS
            )
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(
                f"SET statement_timeout = {int(1000 * self.limits.seconds)}".encode()
            )
        except psycopg.Error as error:
            raise TargetError(
                f"{self}: {self._words(error)}; check the address and that the server runs"
            ) from None
        return _Connection(connection, self)

    def read(self, rows: list[tuple[Any, ...]]) -> float | None:
        """The count that came back; None where the system says so by its number."""
        value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else "no single value"
        if value is None and isinstance(self.questions.secret, Number):
            # The sum over nobody: a database has none, a system that suppresses hides it.
            return 0.0 if self.questions.system.suppressed_as is None else None
        if not isinstance(value, int | float | Decimal):
            raise TargetError(f"{self}: the answer is no count; check that it counts")
        return None if value == self.questions.system.suppressed_as else float(value)

    def fault(self, error: "psycopg.Error", lost: bool) -> TargetError:
        """What an error of the server or the connection means to whoever asks."""
        words = self._words(error)
        if error.sqlstate == NOT_SUPPORTED:
            return Refused(words)
        if lost:
            return TargetError(
                f"{self}: the connection was lost ({words}); the answers so far are kept, "
                "so run it again to resume"
            )
        return TargetError(f"{self}: {words}")

    def _words(self, error: "psycopg.Error") -> str:
        """The first line of an error, without the password."""
        line = (error.diag.message_primary or str(error).strip() or "no reason given").splitlines()[
            0
        ]
        password = self._info.get("password")
        return line.replace(str(password), "***") if password else line


class _Connection:
    """One connection."""

    def __init__(self, connection: "psycopg.Connection[Any]", target: PostgresTarget):
        self._connection = connection
        self._target = target

    def ask(self, statement: str) -> float | None:
        import psycopg

        try:
            # Bytes are sent as they are: no percent sign is taken for a parameter.
            rows = self._connection.execute(statement.encode(), prepare=False).fetchall()
        except psycopg.Error as error:
            raise self._target.fault(error, lost=self._connection.closed) from None
        return self._target.read(rows)

    def close(self) -> None:
        self._connection.close()
