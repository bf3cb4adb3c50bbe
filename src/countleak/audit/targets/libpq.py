"""A session over libpq in which nothing waits beyond a deadline or reads beyond a limit.

libpq connects, logs in and encrypts; it is never left to wait by itself. A session belongs to one
thread: libpq crashes when another one closes it.
"""

import os
import re
import selectors
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import psycopg
from psycopg import pq

try:
    from countleak.audit.targets.relay import Relay
except ImportError:
    # Windows has no pair of sockets to put in the place of another; there only time is limited.
    Relay = None  # type: ignore[assignment, misc]

# Bytes that a server may send at once, and what it gains with every statement: an answer has about
# a hundred.
MOST, EACH = 2**20, 2**11
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_COPIES = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)
_ERRORS = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


# States after which the same may be answered: a server that stops, starts or is full, a statement
# that took too long or stood in another's way, a connection that broke.
FOR_NOW = ("57P01", "57P02", "57P03", "57P05", "53300", "57014", "40001", "40P01", "55P03", "08")
# At login libpq tells no state, so what a server says against it is known by its words.
REJECTED = re.compile(r"failed: \S+:  ")
AWAY = re.compile("the database system is|too many (clients|connections)|terminating connection")


class SessionError(Exception):
    """What a server said against a statement, or why there is no session any more.

    ``password`` is the one that was used, wherever it came from: the server's words may hold it.
    """

    password: str | None = None

    def __init__(self, words: str, state: str | None = None, lost: bool = True):
        super().__init__(words)
        self.state, self.lost = state, lost

    @property
    def is_for_now(self) -> bool:
        """Whether it may be otherwise when tried again."""
        if self.state is not None:
            return self.state.startswith(FOR_NOW)
        words = str(self)
        return self.lost and (not REJECTED.search(words) or bool(AWAY.search(words)))


class Misbehaved(SessionError):
    """A server broke the rules of its protocol, which it would do again."""

    is_for_now = False


class Overdue(SessionError):
    """A server did not do its part in time."""


class Session:
    """A session at a server, logged in; used and closed by the thread that made it."""

    def __init__(self, conninfo: str, seconds: float):
        """Log in within so many seconds."""
        self._credit = MOST
        self._relay: Relay | None = None
        self._pgconn = pq.PGconn.connect_start(conninfo.encode())
        try:
            with self._plain_errors():
                self._log_in(monotonic() + seconds)
                self._pgconn.nonblocking = 1
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give it up; nothing is waited for."""
        self._pgconn.finish()
        self._drop_relay()

    def execute(self, statement: bytes, seconds: float, size: int = EACH) -> pq.abc.PGresult:
        """What one statement gives, of about so many bytes, within so many seconds.

        An error of the server is raised.
        """
        deadline = monotonic() + seconds
        self._credit = min(self._credit + size, MOST)
        with self._plain_errors():
            self._pgconn.send_query(statement)
            while self._pgconn.flush():
                self._wait(READ | WRITE, deadline)
                self._pgconn.consume_input()
            result, following = self._result(deadline), None
            if result is None:
                raise Misbehaved("the server sent no result")
            if result.status not in _COPIES:
                following = self._result(deadline)
            for each in (result, following):
                if each is not None and each.status in _ERRORS:
                    raise self._fault(each)
            if result.status in _COPIES or following is not None:
                raise Misbehaved("the server sent more than one result")
            while self._pgconn.notifies():
                pass
        return result

    def _log_in(self, deadline: float) -> None:
        while (status := self._pgconn.connect_poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                raise SessionError(self._pgconn.get_error_message())
            started = self._pgconn.status == pq.ConnStatus.STARTED
            if started:
                # The first socket, or that of the next address to try.
                self._drop_relay()
            self._wait(READ if status == pq.PollingStatus.READING else WRITE, deadline)
            if started:
                self._put_relay()
        self._put_relay(local=True)

    def _put_relay(self, local: bool = False) -> None:
        """Put a relay before a connected socket; of a ``local`` one libpq asks the owner first."""
        if Relay is None or self._relay is not None:
            return
        with socket.socket(fileno=os.dup(self._pgconn.socket)) as server, suppress(OSError):
            server.getpeername()
            if local or server.family != socket.AF_UNIX:
                self._relay = Relay(self._pgconn.socket, self._charge)

    def _drop_relay(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()

    def _charge(self, size: int) -> None:
        self._credit -= size
        if self._credit < 0:
            raise Misbehaved("the server sent far more than an answer")

    def _result(self, deadline: float) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            self._wait(READ, deadline)
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _wait(self, events: int, deadline: float) -> None:
        """Return once libpq can go on, or raise when it is too late."""
        if self._relay is not None:
            ready = self._relay.wait(bool(events & WRITE), deadline)
        else:
            with _Selector() as selector:
                selector.register(self._pgconn.socket, events)
                ready = bool(selector.select(max(0.0, deadline - monotonic())))
        if not ready or monotonic() > deadline:
            raise Overdue("no answer in time")

    def _fault(self, result: pq.abc.PGresult) -> SessionError:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        return SessionError(
            (words or result.error_message or b"").decode("utf-8", "replace"),
            state.decode("ascii", "replace") if state else None,
            lost=self._pgconn.status != pq.ConnStatus.OK,
        )

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Whatever goes wrong as a SessionError."""
        try:
            yield
        except (psycopg.Error, SessionError) as error:
            fault = error if isinstance(error, SessionError) else SessionError(str(error))
            with suppress(psycopg.Error):
                fault.password = self._pgconn.password.decode("utf-8", "replace")
            raise fault from None
