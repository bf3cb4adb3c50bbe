"""The processes that do the work, seen from the page: orders queued, run, given up, answered."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from countleak.diffix.server.requests import Unpacking, pack
from countleak.errors import CountleakError
from countleak.lab_page.worker import Done, Failed, GaveUp, Heard, Order, Stop, Warm

log = logging.getLogger(__name__)
# What an order that is given up may take to end before its process is killed.
GRACE_SECONDS = 3.0
# The pause before a process is started again that ended before it was warm.
PAUSE_SECONDS = 5.0
_COMMAND = "from countleak.lab_page.worker import main; main()"


class NoRoom(CountleakError):
    """There are as many orders as are taken at a time."""


class NotDone(CountleakError):
    """An order came to nothing; the text says why, in a line."""


class GivenUp(CountleakError):
    """An order was given up, as somebody wanted."""


def ignore(value: Any) -> None:
    """Hear nothing of an order while it runs."""


@dataclass(eq=False)
class Job:
    """An order that waits or runs; ``heard`` is told of it meanwhile, ``end`` holds its end."""

    order: Order
    heard: Callable[[Any], None]
    end: "asyncio.Future[Any]"
    process: "_Process | None" = None
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    # Why it is given up, once it is.
    reason: CountleakError | None = None

    @property
    def runs(self) -> bool:
        """Whether it has begun."""
        return self.process is not None

    def fail(self, error: CountleakError) -> None:
        """Say why it comes to nothing, unless it has ended."""
        if not self.end.done():
            self.end.set_exception(error)
            # An order may have been forgotten by whoever gave it.
            self.end.exception()


class _Process(asyncio.Protocol):
    """One process and the socket to it."""

    def __init__(self, processes: "Processes"):
        self.job: Job | None = None
        self.is_warm = False
        self._processes = processes
        self._unpacking = Unpacking()
        self._transport: Any = None
        self._popen: subprocess.Popen[bytes] | None = None

    async def start(self, job: str) -> None:
        """Start the process for a job; it says when it is warm."""
        ours, its = socket.socketpair()
        with its:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, job, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                # It finds what this process finds.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self._unpacking.feed(data):
            self._processes.said(self, message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()
        self._processes.lost(self)

    def send(self, message: object) -> None:
        """Send a message."""
        self._transport.write(pack(message))

    def kill(self) -> None:
        """Kill the process; another takes its place."""
        if self._popen is not None:
            self._popen.kill()

    def end(self) -> None:
        """End the process and forget it."""
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()
        if self._transport is not None:
            self._transport.abort()


class Processes:
    """Some processes that take orders, and the queue before them."""

    def __init__(self, job: str, count: int, *, most: int, seconds: float):
        """Run ``count`` processes for a job; at most ``most`` orders wait, each has ``seconds``.

        The job is a word of ``worker.WARM``.
        """
        self._job, self._count, self._most, self._seconds = job, count, most, seconds
        self._all: set[_Process] = set()
        self._idle: list[_Process] = []
        self._waiting: deque[Job] = deque()
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the processes; orders are taken at once, and run once one is warm."""
        for _ in range(self._count):
            await self._add()

    @property
    def is_warm(self) -> bool:
        """Whether a process is ready, or was until it got an order."""
        return any(process.is_warm for process in self._all)

    def submit(self, order: Order, heard: Callable[[Any], None] = ignore) -> Job:
        """Take an order; raises ``NoRoom`` where too many wait."""
        if len(self._waiting) >= self._most or self._is_closed:
            raise NoRoom("the lab is full at the moment; try again in a minute")
        job = Job(order, heard, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._dispatch()
        return job

    def place(self, job: Job) -> int:
        """How many are served before a job; 0 where it runs."""
        return self._waiting.index(job) + 1 if job in self._waiting else 0

    def give_up(self, job: Job, reason: CountleakError | None = None) -> None:
        """Give a job up, whether it waits or runs; its process is killed if it does not end."""
        job.reason = job.reason or reason or GivenUp("given up")
        if job in self._waiting:
            self._waiting.remove(job)
            job.fail(job.reason)
        elif job.process is not None and job.process.job is job:
            job.process.send(Stop())
            self._after(job, GRACE_SECONDS, job.process.kill)

    def close(self) -> None:
        """End every process."""
        self._is_closed = True
        for process in tuple(self._all):
            if process.job is not None:
                process.job.fail(GivenUp("the lab is closing"))
            process.end()
        for job in self._waiting:
            job.fail(GivenUp("the lab is closing"))
        self._all.clear()
        self._waiting.clear()

    def said(self, process: _Process, message: Warm | Heard | Done | Failed | GaveUp) -> None:
        """A process says something."""
        match message:
            case Warm():
                process.is_warm = True
                self._be_idle(process)
            case Heard(value):
                if process.job is not None:
                    process.job.heard(value)
            case Done() | Failed() | GaveUp():
                self._ended(process, message)

    def lost(self, process: _Process) -> None:
        """A process has ended, whatever the reason; another takes its place."""
        if self._is_closed or process not in self._all:
            return
        self._all.discard(process)
        if process in self._idle:
            self._idle.remove(process)
        if process.job is not None:
            log.warning("a process of the lab ended at work: %s", type(process.job.order).__name__)
            reason = process.job.reason
            self._over(process.job, reason or NotDone("its process ended; try it once more"))
        pause = 0.0 if process.is_warm else PAUSE_SECONDS
        asyncio.get_running_loop().call_later(pause, self._begin)

    def _ended(self, process: _Process, end: Done | Failed | GaveUp) -> None:
        job, process.job = process.job, None
        if job is not None:
            match end:
                case Done(value):
                    self._over(job, None, value)
                case Failed(text, trace):
                    if trace:
                        log.error("internal error\n%s", trace)
                    self._over(job, NotDone(text))
                case GaveUp():
                    self._over(job, job.reason or GivenUp("given up"))
        self._be_idle(process)

    def _over(self, job: Job, error: CountleakError | None, value: Any = None) -> None:
        for timer in job.timers:
            timer.cancel()
        if error is not None:
            job.fail(error)
        elif not job.end.done():
            job.end.set_result(value)

    def _be_idle(self, process: _Process) -> None:
        self._idle.append(process)
        self._dispatch()

    def _dispatch(self) -> None:
        while self._idle and self._waiting:
            process, job = self._idle.pop(), self._waiting.popleft()
            process.job, job.process = job, process
            process.send(job.order)
            late = NotDone(f"it took longer than {self._seconds:g} seconds; ask for less")
            self._after(job, self._seconds, partial(self.give_up, job, late))

    def _after(self, job: Job, seconds: float, then: Callable[[], object]) -> None:
        job.timers.append(asyncio.get_running_loop().call_later(seconds, then))

    def _begin(self) -> None:
        if not self._is_closed:
            task = asyncio.ensure_future(self._add())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        process = _Process(self)
        self._all.add(process)
        await process.start(self._job)
