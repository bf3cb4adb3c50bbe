"""A worker: a process that runs one order at a time, and gives it up when it is told to.

The page's own process only speaks HTTP. An order comes over a socket; what is heard of it while it
runs goes back the same way, and then its end: ``Done``, ``Failed`` or ``GaveUp``.
"""

import logging
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from countleak.diffix.server import memory
from countleak.diffix.server.requests import Unpacking, pack
from countleak.errors import CountleakError
from countleak.foreign import clean
from countleak.lab_page.accuracy_map import MapSettings, accuracy_map
from countleak.lab_page.asking import Question
from countleak.lab_page.attack import Attack, Stopped
from countleak.lab_page.settings import AttackSettings

_PART = 2**18
# What an order may take in bytes, beyond what the process holds when it is warm.
MOST_MEMORY = 2 * 2**30
INTERNAL = "internal error; see the server's log"


@dataclass(frozen=True)
class RunAttack:
    """Run an attack in a folder, or resume the one that is there."""

    settings: AttackSettings
    folder: Path


@dataclass(frozen=True)
class WriteReport:
    """Write the report of the attack in a folder, which is at its end."""

    settings: AttackSettings
    folder: Path


Order = Question | MapSettings | RunAttack | WriteReport


@dataclass(frozen=True)
class Warm:
    """The process is ready: what it needs is loaded and compiled."""


@dataclass(frozen=True)
class Heard:
    """Something of an order that still runs."""

    value: Any


@dataclass(frozen=True)
class Done:
    """What an order came to."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """Why an order came to nothing, in a line; ``trace`` is for the log."""

    text: str
    trace: str = ""


@dataclass(frozen=True)
class GaveUp:
    """The order was given up, as it was told."""


@dataclass(frozen=True)
class Stop:
    """Give up the order that runs."""


class _Server:
    """The page's process, at the other end of the socket."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self._unpacking = Unpacking()
        self._is_stopped = False

    def say(self, message: object) -> None:
        """Send a message."""
        self._connection.sendall(pack(message))

    def orders(self) -> Iterator[Order]:
        """Order after order, until the page ends."""
        while data := self._connection.recv(_PART):
            for message in self._unpacking.feed(data):
                # One to stop that comes too late finds nothing running.
                if not isinstance(message, Stop):
                    self._is_stopped = False
                    yield message

    def check(self) -> None:
        """Raise ``Stopped`` if the order that runs is to be given up, or the page has ended."""
        while select.select([self._connection], [], [], 0)[0]:
            data = self._connection.recv(_PART)
            if not data:
                raise Stopped
            stops = [isinstance(message, Stop) for message in self._unpacking.feed(data)]
            self._is_stopped = self._is_stopped or any(stops)
        if self._is_stopped:
            raise Stopped


def work(connection: socket.socket, warm: Callable[[], None]) -> None:
    """Get warm, then run order after order until the page ends."""
    # Ctrl-C and a service manager reach every process; the page alone decides when to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The parser warns of what it does not know, and quotes it raw.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    server = _Server(connection)
    warm()
    memory.limit(MOST_MEMORY)
    server.say(Warm())
    for order in server.orders():
        server.say(_end(order, server))


def _end(order: Order, server: _Server) -> Done | Failed | GaveUp:
    """Run an order; how it ends."""
    try:
        return Done(_run(order, server))
    except Stopped:
        return GaveUp()
    except CountleakError as error:
        return Failed(clean(str(error)))
    except Exception:
        return Failed(INTERNAL, traceback.format_exc())


def _run(order: Order, server: _Server) -> object:
    def tell(value: object) -> None:
        server.say(Heard(value))

    match order:
        case RunAttack(settings, folder):
            return Attack(settings, folder, tell, server.check).run()
        case WriteReport(settings, folder):
            Attack(settings, folder, tell, server.check).report()
            return None
        case Question():
            return order.answer()
        case MapSettings():
            return accuracy_map(order)


def for_questions() -> None:
    """Load what answers the first question, so that nobody waits for it."""
    Question("SELECT count(*) FROM loans").answer()
    accuracy_map(MapSettings())


def for_attacks() -> None:
    """Load and compile what the first attack takes."""
    for noise, decoder in (("gaussian", "auto"), ("18.1", "lp")):
        settings = AttackSettings(people=20, questions=200, noise=noise, decoder=decoder)
        with TemporaryDirectory() as folder:
            Attack(settings, Path(folder), lambda _: None, lambda: None).run()


WARM = {"questions": for_questions, "attacks": for_attacks}


def main() -> None:
    """Work for the page, over the socket whose number is the last argument; the first is a job."""
    warm = WARM[sys.argv[-2]]
    # Where the page has gone, there is nobody to tell.
    with socket.socket(fileno=int(sys.argv[-1])) as connection, suppress(ConnectionError):
        work(connection, warm)
