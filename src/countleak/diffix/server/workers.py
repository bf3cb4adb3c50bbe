"""The workers of a database, seen from the server: requests queued, run, stopped and answered."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from countleak.diffix.server.errors import (
    CANCELLED,
    CANNOT_COMPUTE,
    SHUTTING_DOWN,
    STOPPING,
    TOO_BUSY,
    Failure,
    one_line,
)
from countleak.diffix.server.options import Limits
from countleak.diffix.server.requests import Failed, Ready, Reply, Request, Unpacking, pack
from countleak.diffix.server.turns import Turns
from countleak.diffix.server.worker import STOP, Orders
from countleak.diffix.sql.statement import Table
from countleak.errors import InputError

log = logging.getLogger(__name__)
# How often a statement is told to end before its worker is killed, and the time in between.
TIMES_TOLD, TELLING_SECONDS = 20, 0.1
# A statement that takes longer gives way to others, by as much.
SLOW_SECONDS, GIVING_WAY = 0.1, 10
# The pause before a worker is started again that could not load its tables; it doubles.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
_COMMAND = "from countleak.diffix.server.worker import main; main()"


@dataclass(eq=False)
class _Job:
    """A request that waits or runs, and where its answer goes."""

    user: str
    request: Request
    answer: "asyncio.Future[Any]"
    # What ends its waiting, and then its running.
    timer: asyncio.TimerHandle | None = None
    worker: "_Worker | None" = None

    def limit(self, seconds: float, state: str, text: str) -> None:
        """Let it fail with that state after ``seconds``, in place of any limit before."""
        self.forget_limit()
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(seconds, self.fail, Failure(state, text))

    def forget_limit(self) -> None:
        """Let it take its time."""
        if self.timer is not None:
            self.timer.cancel()

    def fail(self, error: Failure) -> None:
        """Say why there is no answer, unless there is one."""
        if not self.answer.done():
            self.answer.set_exception(error)


class _Worker(asyncio.Protocol):
    """One process and the socket to it."""

    def __init__(self, workers: "Workers"):
        self.job: _Job | None = None
        self.begun = monotonic()
        self.is_ready = False
        self._workers = workers
        self._unpacking = Unpacking()
        self._timer: asyncio.TimerHandle | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._gave_way = False
        self._transport: Any = None
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self, orders: Orders) -> None:
        """Start the process; it says when it has loaded its tables."""
        ours, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                # It finds what this process finds.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        self._transport.write(pack(orders))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self._unpacking.feed(data):
            self._workers.heard(self, message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()
        self._workers.lost(self)

    def send(self, job: _Job) -> None:
        """Have it run a job."""
        self.job, self.begun, job.worker = job, monotonic(), self
        self._transport.write(pack(job.request))
        self._slow_timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._give_way)

    def done(self) -> None:
        """It is done with its job, and was not killed."""
        self.job = None
        self._forget_timers()
        if self._gave_way:
            # Without the right to it, the worker goes on as it is.
            with suppress(OSError):
                self._set_priority(0)
                self._gave_way = False

    def stop(self, told: int = 0) -> None:
        """Have it give its job up, and kill it if it does not."""
        assert self._process is not None
        if told == TIMES_TOLD:
            self._process.kill()
            return
        self._process.send_signal(STOP)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(TELLING_SECONDS, self.stop, told + 1)

    def end(self) -> None:
        """End the process and forget it."""
        self._forget_timers()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._transport is not None:
            self._transport.abort()

    def _give_way(self) -> None:
        """Let short statements have the processors first."""
        self._set_priority(GIVING_WAY)
        self._gave_way = True

    def _set_priority(self, nice: int) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    def _forget_timers(self) -> None:
        for timer in (self._timer, self._slow_timer):
            if timer is not None:
                timer.cancel()


class Workers:
    """Some processes that run the statements of a database, and the queue before them."""

    def __init__(self, orders: Orders, limits: Limits):
        """Run what the orders say, once started."""
        self.tables: tuple[Table, ...] = ()
        self._orders, self._limits = orders, limits
        # One user's statements never take all workers, where there is more than one.
        self._turns: Turns[_Job] = Turns(max(1, limits.workers - 1))
        self._all: set[_Worker] = set()
        # The latest to be done is the first to be asked: it has seen such questions.
        self._idle: list[_Worker] = []
        self._jobs: set[_Job] = set()
        self._is_draining = self._is_closed = False
        self._starting: asyncio.Future[None] | None = None
        self._pause = FIRST_PAUSE
        self._beginning: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Start the processes; ``InputError`` where the tables cannot be loaded."""
        self._starting = asyncio.get_running_loop().create_future()
        try:
            for _ in range(self._limits.workers):
                await self._add()
            await self._starting
        except BaseException:
            self.close()
            raise
        self._starting = None

    def submit(self, user: str, request: Request) -> "asyncio.Future[Any]":
        """The answer to a user's request, when it is its turn; cancel it to give it up."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._is_draining:
            answer.set_exception(Failure(SHUTTING_DOWN, STOPPING))
        elif self._turns.count(user) >= self._limits.user_queries:
            most = self._limits.user_queries
            answer.set_exception(
                Failure(TOO_BUSY, f"At most {most} queries of a user run or wait; ask again later.")
            )
        else:
            job, seconds = _Job(user, request, answer), self._limits.queue_seconds
            answer.add_done_callback(lambda _: self._settled(job))
            self._jobs.add(job)
            self._turns.add(user, job)
            self._dispatch()
            if job.worker is None:
                job.limit(seconds, TOO_BUSY, f"The query waited {seconds:g} seconds for its turn.")
        return answer

    async def drain(self, seconds: float) -> None:
        """Take no more requests, and give those that are here ``seconds``."""
        self._is_draining = True
        if self._jobs:
            await asyncio.wait([job.answer for job in self._jobs], timeout=seconds)

    def close(self) -> None:
        """End every process."""
        self._is_draining = self._is_closed = True
        for job in tuple(self._jobs):
            job.fail(Failure(SHUTTING_DOWN, STOPPING))
        for worker in self._all:
            worker.end()
        self._all.clear()

    def heard(self, worker: _Worker, message: Ready | Failed | Reply) -> None:
        """A worker says something."""
        match message:
            case Ready(tables):
                self.tables, self._pause, worker.is_ready = tables, FIRST_PAUSE, True
                self._be_idle(worker)
                starting = self._starting
                if starting and not starting.done() and all(one.is_ready for one in self._all):
                    starting.set_result(None)
            case Failed(text=text):
                self._not_loaded(text)
            case Reply():
                self._answered(worker, message)

    def lost(self, worker: _Worker) -> None:
        """A worker has ended, whatever the reason; another takes its place."""
        if self._is_closed or worker not in self._all:
            return
        self._all.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        if (job := worker.job) is not None:
            line = f"{job.user}@{self._orders.name}: killed: {one_line(job.request.text)}"
            self._over(worker, job, line)
            job.fail(Failure(CANNOT_COMPUTE, "The query was too much for its worker, which ended."))
        if worker.is_ready:
            self._replace(0)
        else:
            self._not_loaded("a worker ended before it had loaded its tables")
            self._replace(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _answered(self, worker: _Worker, reply: Reply) -> None:
        job, value = worker.job, reply.value
        if job is None:
            return
        self._over(worker, job, reply.line)
        if isinstance(value, Failed):
            if value.trace:
                log.error("%s@%s: internal error\n%s", job.user, self._orders.name, value.trace)
            job.fail(Failure(value.state, value.text))
        elif not job.answer.done():
            job.answer.set_result(value)
        if reply.is_last:
            self._all.discard(worker)
            worker.end()
            self._replace(0)
        else:
            self._be_idle(worker)

    def _over(self, worker: _Worker, job: _Job, line: str | None) -> None:
        """A job is no longer run, and its user pays for it."""
        worker.done()
        job.forget_limit()
        self._jobs.discard(job)
        self._turns.end(job.user, monotonic() - worker.begun)
        if line is not None:
            log.info("%s", line)

    def _settled(self, job: _Job) -> None:
        """A job has its answer, or nobody waits for one."""
        job.forget_limit()
        if job.worker is None:
            self._turns.drop(job.user, job)
            self._jobs.discard(job)
        elif job.worker.job is job:
            job.worker.stop()

    def _be_idle(self, worker: _Worker) -> None:
        self._idle.append(worker)
        self._dispatch()

    def _dispatch(self) -> None:
        seconds = self._limits.seconds
        while self._idle and (job := self._turns.next()) is not None:
            if job.answer.done():
                self._turns.end(job.user, 0.0)
                continue
            job.limit(seconds, CANCELLED, f"There was no answer within {seconds:g} seconds.")
            self._idle.pop().send(job)

    def _not_loaded(self, text: str) -> None:
        if self._starting is None:
            log.warning("database %s: %s", self._orders.name, text)
        elif not self._starting.done():
            self._starting.set_exception(InputError(text))

    def _replace(self, pause: float) -> None:
        """Start another worker after a pause."""

        def begin() -> None:
            if not self._is_closed:
                self._beginning = asyncio.ensure_future(self._add())

        asyncio.get_running_loop().call_later(pause, begin)

    async def _add(self) -> None:
        worker = _Worker(self)
        self._all.add(worker)
        await worker.start(self._orders)
