"""A pool of connections that ask at once; answers come in batches as they arrive."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Protocol

import numpy as np

from countleak.attack.transcript import Answers
from countleak.errors import InputError, TargetError

# A batch is written to disk at once, so neither too few answers nor too long ago.
BATCH = 100
SECONDS = 0.5
# What a connection gets to finish its last question when a run is stopped.
GRACE = 2.0


class Connection(Protocol):
    """A connection to a system."""

    def ask(self, statement: str) -> float | None:
        """The count that a statement asks for; None where it was suppressed."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


@dataclass(frozen=True)
class RequestLimits:
    """How a system is asked: connections, seconds to wait for an answer, questions per second."""

    connections: int = 1
    seconds: float = 30.0
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.connections < 1 or self.seconds <= 0 or (self.rate is not None and self.rate <= 0):
            raise InputError("connections, timeout and rate must be above 0")


class Pace:
    """Questions no faster than so many per second."""

    def __init__(self, rate: float | None):
        """Let ``rate`` questions through per second, or all at once."""
        self._gap = 0.0 if rate is None else 1.0 / rate
        self._next = 0.0
        self._lock = Lock()

    def delay(self, now: float) -> float:
        """Seconds from ``now`` after which the next question may be asked."""
        with self._lock:
            at = max(self._next, now)
            self._next = at + self._gap
            return at - now


@dataclass
class _Run:
    """What the threads of a run share."""

    waiting: Iterator[tuple[int, str]]
    pace: Pace
    lock: Lock = field(default_factory=Lock)
    stop: Event = field(default_factory=Event)
    results: "SimpleQueue[tuple[int, float | None] | Exception | None]" = field(
        default_factory=SimpleQueue
    )
    started: dict[int, float] = field(default_factory=dict)

    def work(self, number: int, connection: Connection) -> None:
        """Ask over one connection until nothing waits."""
        try:
            while (item := self._next()) is not None:
                self.started[number] = monotonic()
                answer = connection.ask(item[1])
                del self.started[number]
                self.results.put((item[0], answer))
        except Exception as error:
            # Whoever reads the answers raises it.
            self.results.put(error)
        self.results.put(None)

    def _next(self) -> tuple[int, str] | None:
        with self.lock:
            item = next(self.waiting, None)
        if item is None or self.stop.wait(self.pace.delay(monotonic())):
            return None
        return item

    def overdue(self, seconds: float) -> bool:
        """Whether a question waits longer than that."""
        return any(monotonic() - since > seconds for since in list(self.started.values()))


def ask_all(
    connect: Callable[[], Connection], statements: Sequence[tuple[int, str]], limits: RequestLimits
) -> Iterator[Answers]:
    """Answers to ``statements``, each with its position, batch by batch.

    Whatever goes wrong, or a Ctrl-C, comes after the answers that were heard before it.
    """
    connections: list[Connection] = []
    run = _Run(iter(statements), Pace(limits.rate))
    threads: list[Thread] = []
    try:
        for _ in range(min(limits.connections, len(statements))):
            connections.append(connect())
        for number, connection in enumerate(connections):
            threads.append(Thread(target=run.work, args=(number, connection), daemon=True))
            threads[-1].start()
        yield from _batches(run, len(threads), limits.seconds)
    finally:
        run.stop.set()
        for thread in threads:
            thread.join(GRACE)
        for connection in connections:
            connection.close()


def _batches(run: _Run, working: int, seconds: float) -> Iterator[Answers]:
    held: list[tuple[int, float | None]] = []
    fault: BaseException | None = None
    due = monotonic() + SECONDS
    while True:
        try:
            result = run.results.get(timeout=SECONDS)
            if result is None:
                working -= 1
            elif isinstance(result, Exception):
                fault = fault or result
                run.stop.set()
            else:
                held.append(result)
        except Empty:
            if run.overdue(seconds + GRACE):
                fault = TargetError(
                    f"no answer within {seconds:g} seconds; the answers so far are kept, so run it "
                    "again to resume, or allow more time"
                )
                working = 0
        except KeyboardInterrupt as stopped:
            fault, working = stopped, 0
        if held and (len(held) >= BATCH or monotonic() >= due or not working):
            yield _answers(held)
            held, due = [], monotonic() + SECONDS
        if not working:
            break
    if fault is not None:
        raise fault


def _answers(results: Sequence[tuple[int, float | None]]) -> Answers:
    values = np.array([np.nan if value is None else value for _, value in results])
    return Answers(np.array([position for position, _ in results]), values, ~np.isnan(values))
