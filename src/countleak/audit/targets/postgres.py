"""Any system that speaks PostgreSQL's protocol as a target: a noisy front, or a plain server."""

import ipaddress
import os
import re
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countleak.addresses import PostgresAddress
from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.pool import Connection, Rows, ask_all
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import KEPT, MissingExtra, NoCount, Refused, TargetError, Transient
from countleak.foreign import first_line

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from countleak.audit.targets.libpq import Session, SessionError

# PostgreSQL's class of states for what a server does not do.
NOT_SUPPORTED = "0A000"
# The numbers of PostgreSQL's types int8, int2, int4, float4, float8 and numeric.
NUMBERS = (20, 21, 23, 700, 701, 1700)
NUMBER = re.compile(rb"[-+]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][-+]?[0-9]{1,4})?")


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
        self.questions, self.limits = questions, limits or RequestLimits()
        try:
            self.address = PostgresAddress.read(url)
        except ModuleNotFoundError:
            raise MissingExtra("a PostgreSQL target", "live") from None

    @property
    def is_local(self) -> bool:
        """Whether the address can only mean this machine."""
        info = self.address.info
        if info.get("service") or os.environ.get("PGSERVICE"):
            return False
        hosts = [info.get(name, "").split(",") for name in ("host", "hostaddr")]
        return all(
            not host or host.startswith(("/", "@")) or is_loopback(host)
            for named in hosts
            for host in named
        )

    def __str__(self) -> str:
        return str(self.address)

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries over several connections; batches as answers come."""
        return ask_all(self.connect, self.questions.asked(queries, positions), self.limits)

    def connect(self) -> Connection[str]:
        """A connection of its own, for the thread that calls this."""
        from psycopg.conninfo import make_conninfo

        from countleak.audit.targets.libpq import Overdue, Session, SessionError

        # Statements are sent as UTF-8, whatever the environment says.
        conninfo = make_conninfo(self.address.text, client_encoding="utf8")
        end = monotonic() + self.limits.connect_seconds
        session: Session | None = None
        try:
            session = Session(conninfo, self.limits.connect_seconds)
            session.execute(b"SET default_transaction_read_only = on", end - monotonic())
            timeout = f"SET statement_timeout = {max(1, int(1000 * self.limits.seconds))}"
            session.execute(timeout.encode(), end - monotonic())
        except SessionError as error:
            words = self.address.words(str(error), error.password)
            if session is not None:
                session.close()
            if isinstance(error, Overdue):
                words = f"no connection within {self.limits.connect_seconds:g} seconds"
            advice = "check the address and that the server runs"
            if error.is_for_now:
                raise Transient(f"{self}: {words}", advice) from None
            raise TargetError(f"{self}: {words}; {advice}") from None
        return _Connection(session, self)

    def read(self, result: "PGresult") -> float | None:
        """The count that came back; None where the system says so by its number."""
        if result.ntuples != 1 or result.nfields != 1:
            raise NoCount("the answer is no single value; check that it counts")
        text = result.get_value(0, 0)
        if text is None:
            return self.questions.count_of_nothing
        if result.ftype(0) not in NUMBERS or not NUMBER.fullmatch(text):
            shown = first_line(text[:100].decode("utf-8", "replace"))
            raise NoCount(f"the answer {shown} is no count; check that it counts")
        value = float(text)
        return None if value == self.questions.system.suppressed_as else value

    def fault(self, error: "SessionError") -> TargetError:
        """What an error of the server or the connection means to whoever asks."""
        from countleak.audit.targets.libpq import Overdue

        if isinstance(error, Overdue):
            return self.limits.overdue()
        words = self.address.words(str(error), error.password)
        if error.state == NOT_SUPPORTED:
            return Refused(words)
        what = f"{self}: the connection was lost ({words})" if error.lost else f"{self}: {words}"
        if error.is_for_now:
            return Transient(what)
        return TargetError(f"{what}; {KEPT}" if error.lost else what)


class _Connection:
    """One connection."""

    def __init__(self, session: "Session", target: PostgresTarget):
        self._session = session
        self._target = target

    def ask(self, statement: str) -> float | None:
        from countleak.audit.targets.libpq import EACH

        return self._target.read(self._execute(statement, EACH))

    def rows(self, statement: str) -> Rows:
        from countleak.audit.targets.libpq import MOST

        result = self._execute(statement, MOST)
        columns = [
            [_value(result.get_value(row, column), kind) for row in range(result.ntuples)]
            for column in range(result.nfields)
            for kind in [result.ftype(column)]
        ]
        return list(zip(*columns, strict=True))

    def _execute(self, statement: str, size: int) -> "PGresult":
        from countleak.audit.targets.libpq import SessionError

        try:
            return self._session.execute(statement.encode(), self._target.limits.patience, size)
        except SessionError as error:
            raise self._target.fault(error) from None

    def close(self) -> None:
        self._session.close()


def _value(text: bytes | None, kind: int) -> object:
    """A value as it stands in a row: numbers as such, all else as text."""
    if text is None:
        return None
    if kind in NUMBERS and NUMBER.fullmatch(text):
        return float(text)
    return text.decode("utf-8", "replace")
