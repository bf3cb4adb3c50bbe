"""A pool of connections that ask at once; each answer is handed over before the next question.

A connection that fails for now is made again, and what was in flight on it asked again. Of several
connections each has a thread, which makes, uses and closes it: nobody else ever touches it. A
thread that is stuck beyond every limit is left behind, and its connection with it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, islice
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from countleak.attack.transcript import LARGEST, Answers
from countleak.audit.targets.limits import GRACE, Pace, RequestLimits
from countleak.audit.targets.no_counts import NoCounts
from countleak.audit.targets.retries import AT_FIRST, Retries, Trouble
from countleak.errors import NoCount, Refused, Transient

# What is sent for a question: SQL, or whatever a system takes instead.
Sent = TypeVar("Sent")
Taken = TypeVar("Taken", contravariant=True)


# No table that can be attacked has more cells.
MOST_ROWS = 100_000
# What a statement gives: rows of values.
Rows = Sequence[Sequence[object]]


class Connection(Protocol[Taken]):
    """A connection to a system, used by one thread."""

    def ask(self, statement: Taken, /) -> float | None:
        """The count that a statement asks for; None where it was suppressed."""
        ...

    def close(self) -> None:
        """Give it up without waiting."""
        ...


@runtime_checkable
class TakesTables(Protocol):
    """A connection that answers whole tables, too."""

    def rows(self, statement: str, /) -> Rows:
        """The rows of a table, its groups and then a count in each."""
        ...

    def close(self) -> None:
        """Give it up without waiting."""
        ...


@dataclass(frozen=True)
class Question(Generic[Sent]):
    """A question: its position among all, what to call it, and its SQL, or what is sent instead.

    A table answers many positions at once: ``counted`` reads them off its rows.
    """

    position: int
    name: str
    statement: Sent
    counted: Callable[[Rows], Answers] | None = None


# What can come back to a question; several counts to that for a table.
Heard = float | Answers | NoCount | Refused | None


class _Stage(Enum):
    """What a thread reports besides answers and faults."""

    CONNECTED = auto()
    DONE = auto()


@dataclass(frozen=True)
class _Heard:
    """What came back to a question, over which connection."""

    number: int
    question: Question[Any]
    answer: "Heard"


class _Link:
    """A connection that is made again where it fails for now; ``stopped`` ends all waiting."""

    def __init__(self, connect: Callable[[], Connection[Any]], retries: Retries, stopped: Event):
        self._connect, self._retries, self._stopped = connect, retries, stopped
        self._connection: Connection[Any] | None = None
        # Since when it waits for the system, if it does.
        self.busy_since: float | None = None

    def open(self) -> None:
        """Connect for the first time."""
        self._patiently(lambda: None, min(AT_FIRST, self._retries))

    def ask(self, question: Question[Any]) -> Heard:
        """What came back to a question, whatever connections it took."""
        return self._patiently(lambda: self._answer(question), self._retries)

    def _patiently(self, act: Callable[[], Heard], retries: Retries) -> Heard:
        trouble = Trouble(retries)
        while True:
            self.busy_since = monotonic()
            try:
                if self._connection is None:
                    self._connection = self._connect()
                return act()
            except Transient as error:
                self.close()
                delay = trouble.delay(error)
                self.busy_since = None
                if self._stopped.wait(delay):
                    raise
            finally:
                self.busy_since = None

    def _answer(self, question: Question[Any]) -> Heard:
        """What came back, if it can be a count; why there is none, otherwise."""
        assert self._connection is not None
        try:
            if question.counted is not None:
                return self._table(question, question.counted)
            answer = self._connection.ask(question.statement)
        except (NoCount, Refused) as error:
            return error
        # NaN compares false, so it is none either.
        if answer is None or abs(answer) < LARGEST:
            return answer
        return NoCount(f"the answer is {answer:g}, no count of people")

    def _table(self, question: Question[Any], counted: Callable[[Rows], Answers]) -> Answers:
        if not isinstance(self._connection, TakesTables):
            raise Refused("this system is asked for one count at a time, not for tables")
        return counted(self._connection.rows(question.statement))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@dataclass
class _Run:
    """What the threads of a run share."""

    connect: Callable[[], Connection[Any]]
    questions: Iterator[Question[Any]]
    limits: RequestLimits
    count: int
    lock: Lock = field(default_factory=Lock)
    all_connected: Event = field(default_factory=Event)
    stopped: Event = field(default_factory=Event)
    reports: "SimpleQueue[_Heard | Exception | _Stage]" = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self.pace = Pace(self.limits.rate)
        self.links = [
            _Link(self.connect, self.limits.retries, self.stopped) for _ in range(self.count)
        ]
        # A thread takes one from its queue for each answer that has been handed over.
        self.handed_over: list[SimpleQueue[None]] = [SimpleQueue() for _ in range(self.count)]

    def work(self, number: int) -> None:
        """Ask over one connection until nothing waits; the next once the last is handed over."""
        link = self.links[number]
        try:
            link.open()
            self.reports.put(_Stage.CONNECTED)
            self.all_connected.wait()
            while (question := self.next()) is not None:
                self.reports.put(_Heard(number, question, link.ask(question)))
                self.handed_over[number].get()
        except Exception as error:
            # Whoever reads the answers raises it.
            self.reports.put(error)
        finally:
            try:
                link.close()
            finally:
                self.reports.put(_Stage.DONE)

    def next(self) -> Question[Any] | None:
        """The next question, when its time has come; None once there is none, or a stop."""
        with self.lock:
            question = None if self.stopped.is_set() else next(self.questions, None)
        if question is None:
            return None
        delay = self.pace.delay(monotonic())
        return None if delay and self.stopped.wait(delay) else question

    def stop(self) -> None:
        """Have every thread end after its question, and wait for nothing else."""
        self.stopped.set()
        self.all_connected.set()
        for each in self.handed_over:
            each.put(None)

    def is_overdue(self, seconds: float) -> bool:
        """Whether a connection is busy with something for longer than that."""
        now, busy = monotonic(), [link.busy_since for link in self.links]
        return any(since is not None and now - since > seconds for since in busy)


def ask_all(
    connect: Callable[[], Connection[Sent]],
    questions: Iterable[Question[Sent]],
    limits: RequestLimits,
    watched: bool = False,
) -> Iterator[Answers]:
    """Answers to the questions as they come, those that are there at once together.

    Questions are taken as they are asked, so they may be made on the way. A connection that may
    wait beyond its time must be ``watched`` by another thread, also where it is the only one.

    A connection asks its next question when its last answer was taken and the next is wanted. So
    whoever keeps each batch before taking another has every answer but those in flight. Whatever
    goes wrong, or a Ctrl-C, comes after the answers that were heard before it.
    """
    rest = iter(questions)
    first = list(islice(rest, limits.connections))
    run = _Run(connect, chain(first, rest), limits, len(first))
    if run.count == 1 and not watched:
        yield from _ask_alone(run)
        return
    threads = [Thread(target=run.work, args=(at,), daemon=True) for at in range(run.count)]
    try:
        for thread in threads:
            thread.start()
        yield from _Reader(run, limits).batches()
    finally:
        run.stop()
        end = monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, end - monotonic()))


def _ask_alone(run: _Run) -> Iterator[Answers]:
    """The same over one connection, whose answers need not go from thread to thread."""
    odd = NoCounts()
    link = _Link(lambda: _connect(run.connect, run.limits), run.limits.retries, run.stopped)
    try:
        link.open()
        while (question := run.next()) is not None:
            heard = _Heard(0, question, link.ask(question))
            if odd.note(heard.question.name, heard.answer):
                break
            if not isinstance(heard.answer, NoCount | Refused):
                yield _answers([heard])
    finally:
        link.close()
    if odd.heard:
        raise odd.fault()


def _connect(connect: Callable[[], Connection[Any]], limits: RequestLimits) -> Connection[Any]:
    """A connection, made in a thread of its own: looking up a name knows no deadline."""
    made: SimpleQueue[Connection[Any] | Exception] = SimpleQueue()

    def work() -> None:
        try:
            made.put(connect())
        except Exception as error:
            made.put(error)

    Thread(target=work, daemon=True).start()
    try:
        connection = made.get(timeout=limits.patience + limits.grace)
    except Empty:
        raise limits.overdue() from None
    if isinstance(connection, Exception):
        raise connection
    return connection


class _Reader:
    """Reads what the threads of a run report, and hands the answers over."""

    def __init__(self, run: _Run, limits: RequestLimits):
        self._run, self._limits = run, limits
        self._working, self._connecting = run.count, run.count
        self._heard: list[_Heard] = []
        self._odd = NoCounts()
        self._fault: BaseException | None = None

    def batches(self) -> Iterator[Answers]:
        while self._working:
            try:
                self._wait()
            except KeyboardInterrupt as stopped:
                # What is in flight may still come; whoever presses again does not care.
                self._working = self._working if self._fault is None else 0
                self._fail(stopped)
            heard, self._heard = self._heard, []
            good = [each for each in heard if not isinstance(each.answer, NoCount | Refused)]
            if good:
                yield _answers(good)
            for each in heard:
                self._run.handed_over[each.number].put(None)
        if self._fault is not None:
            raise self._fault
        if self._odd.heard:
            raise self._odd.fault()

    def _wait(self) -> None:
        """Take in the next report, and whatever else is there."""
        try:
            self._take(self._run.reports.get(timeout=self._limits.grace))
            while self._run.reports.qsize():
                self._take(self._run.reports.get())
        except Empty:
            if self._run.is_overdue(self._limits.patience + self._limits.grace):
                self._fail(self._limits.overdue())
                self._working = 0

    def _take(self, report: _Heard | Exception | _Stage) -> None:
        if isinstance(report, _Heard):
            self._heard.append(report)
            if self._odd.note(report.question.name, report.answer):
                self._fail(self._odd.fault())
        elif isinstance(report, Exception):
            self._fail(report)
        elif report is _Stage.DONE:
            self._working -= 1
        else:
            self._connecting -= 1
            if not self._connecting:
                self._run.all_connected.set()

    def _fail(self, error: BaseException) -> None:
        # Ctrl-C is what its user wants to hear of; of faults, the first.
        if self._fault is None or isinstance(error, KeyboardInterrupt):
            self._fault = error
        self._run.stop()


def _answers(heard: Sequence[_Heard]) -> Answers:
    return Answers.join(_one(each.question, each.answer) for each in heard)


def _one(question: Question[Any], answer: Heard) -> Answers:
    if isinstance(answer, Answers):
        return answer
    assert not isinstance(answer, NoCount | Refused)
    value = np.array([np.nan if answer is None else answer])
    return Answers(np.array([question.position]), value, np.array([answer is not None]))
