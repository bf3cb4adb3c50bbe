"""A worker: a process of its own that runs one statement at a time, and can be stopped.

The server sends a request over a socket and waits for the reply. To stop a statement it sends a
signal, upon which whatever runs here raises; where that does not help, it kills the process. So no
statement outlives its time limit, whether it is in the database, the parser or the noise.
"""

import logging
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from countleak.diffix.engine import Engine
from countleak.diffix.server import memory
from countleak.diffix.server.errors import (
    CANCELLED,
    INTERNAL,
    NO_MEMORY,
    TOO_DEEP,
    state_of,
)
from countleak.diffix.server.options import Limits
from countleak.diffix.server.requests import Failed, Ready, Reply, Request, Unpacking, pack
from countleak.diffix.server.statements import Statements
from countleak.errors import InputError, TargetError

STOP = signal.SIGUSR1
MEBIBYTE = 2**20
GIVEN_UP = Failed(CANCELLED, "The query was given up.")
_PART = 2**18
# Makes the engine of a database in the worker; what it opens ends with the stack.
Load = Callable[[ExitStack], Engine]


@dataclass(frozen=True)
class Orders:
    """What a worker serves: the database's name, how to load it, its limits and its users."""

    name: str
    load: Load
    limits: Limits
    users: tuple[str, ...] = ()


class Stopped(KeyboardInterrupt):
    """The statement that runs was given up; psycopg cancels its query on a KeyboardInterrupt."""


class _Stopping:
    """Raises ``Stopped`` at a signal, while a statement runs."""

    def __init__(self) -> None:
        self.running = self.was_stopped = False
        signal.signal(STOP, self._heard)

    def _heard(self, *_: object) -> None:
        # The server sends the next request only after the reply: a signal that comes too late
        # finds nothing running. One that comes too early does, too, and is repeated.
        if self.running:
            self.running, self.was_stopped = False, True
            raise Stopped


def work(server: socket.socket) -> None:
    """Load what the first message says, then answer request after request until the server ends."""
    # Ctrl-C and a service manager reach every process; the server alone decides when to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The parser warns of what it does not know, and quotes it raw: a user could forge log lines.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    stopping, requests = _Stopping(), _messages(server)
    orders: Orders = next(iter(requests))
    with ExitStack() as stack:
        try:
            statements = _loaded(orders, stack)
        except InputError as error:
            server.sendall(pack(Failed("", str(error))))
            return
        stack.enter_context(memory.frozen())
        start = memory.used()
        most = orders.limits.memory * MEBIBYTE
        memory.limit(most)
        server.sendall(pack(Ready(statements.engine.database.tables)))
        for request in requests:
            try:
                value = _answer(statements, request, stopping)
            except Stopped:
                # It came while the answer was being put into words.
                value = GIVEN_UP
            # Memory that a failed statement took may never come back, nor may a connection.
            is_last = isinstance(value, Failed) and (
                memory.used() > start + most // 2 or not statements.usable
            )
            server.sendall(pack(Reply(value, statements.line, is_last)))
            if is_last:
                return


def _loaded(orders: Orders, stack: ExitStack) -> Statements:
    return Statements(orders.name, orders.load(stack), orders.limits, orders.users)


def _messages(server: socket.socket) -> Iterable[Any]:
    """The messages of the server, one at a time, until it ends."""
    unpacking = Unpacking()
    while data := server.recv(_PART):
        yield from unpacking.feed(data)


def _answer(statements: Statements, request: Request, stopping: _Stopping) -> object:
    """What a request is answered by, or why there is no answer."""
    stopping.was_stopped = False
    try:
        stopping.running = True
        value = statements.answer(request)
        stopping.running = False
    except Stopped:
        return GIVEN_UP
    except TargetError as error:
        return Failed(state_of(error), str(error))
    except RecursionError:
        return Failed(TOO_DEEP, "The query is nested too deeply.")
    except MemoryError:
        return Failed(NO_MEMORY, "The query needs too much memory.")
    except Exception as error:
        if stopping.was_stopped:
            # DuckDB says it in words of its own.
            return GIVEN_UP
        text = f"internal error: {type(error).__name__}; see the server's log"
        return Failed(INTERNAL, text, traceback.format_exc())
    finally:
        stopping.running = False
    return value


def main() -> None:
    """Work for the server at the other end of the socket whose number is the last argument."""
    # Where the server has gone, there is nobody to tell.
    with socket.socket(fileno=int(sys.argv[-1])) as server, suppress(ConnectionError):
        work(server)
