"""A database that is served: its tables behind Diffix, its catalogue, and the thread they work in.

Engines are synchronous. Each database has one thread, so that its answers come in order and the
loop that serves connections is never held up.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep
from typing import ParamSpec, TypeVar

from countleak.diffix.engine import Answer, Engine
from countleak.diffix.server.catalogue import Catalogue
from countleak.diffix.server.failures import CANCELLED, TOO_MUCH, Failure
from countleak.diffix.server.limits import Limits
from countleak.errors import TargetError

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger(__name__)
INTERRUPT_SECONDS = 0.1


class Served:
    """A database by its name, with an engine a table."""

    def __init__(
        self, name: str, engines: Sequence[Engine], limits: Limits, users: Iterable[str] = ()
    ):
        """Serve the tables of ``engines``; ``users`` are named in the catalogue."""
        self.name = name
        self.engines = {engine.database.table.name.lower(): engine for engine in engines}
        self.catalogue = Catalogue(name, [engine.database.table for engine in engines], users)
        self.limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"database {name}")
        self._lock = threading.Lock()
        self._running: object = None

    def ask(self, engine: Engine, user: str, sql: str) -> Answer:
        """The answer to a question, and a line in the log; call it in the database's thread."""
        start = perf_counter()
        outcome = "failed"
        try:
            if len(sql) > self.limits.query_length:
                raise Failure(
                    TOO_MUCH,
                    f"The query has {len(sql)} characters; at most {self.limits.query_length} are "
                    "read.",
                )
            answer = engine.ask(sql)
            if len(answer.rows) > self.limits.rows:
                raise Failure(
                    TOO_MUCH,
                    f"The answer has more than {self.limits.rows} rows; group more coarsely.",
                )
            outcome = _outcome(answer)
            return answer
        except TargetError as error:
            outcome = f"refused: {error}"
            raise
        finally:
            spent = 1000 * (perf_counter() - start)
            log.info("%s@%s: %s: %s, %.1f ms", user, self.name, shown(outcome), shown(sql), spent)

    async def run(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """What ``work`` returns, done in the database's thread within the time limit."""
        job = object()
        future = self._thread.submit(self._do, job, lambda: work(*args, **named))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds)
        except RecursionError:
            raise Failure("54001", "The query is nested too deeply.") from None
        except TimeoutError:
            raise Failure(
                CANCELLED, f"There was no answer within {self.limits.seconds:g} seconds."
            ) from None
        finally:
            if not future.done():
                asyncio.get_running_loop().run_in_executor(None, self._interrupt, job)

    def close(self) -> None:
        """Let the thread end when it is done with what it does."""
        self._interrupt(self._running)
        self._thread.shutdown(cancel_futures=True)

    def _do(self, job: object, work: Callable[[], T]) -> T:
        with self._lock:
            self._running = job
        try:
            return work()
        finally:
            with self._lock:
                self._running = None

    def _interrupt(self, job: object) -> None:
        """Stop the database as long as it works on that job: nobody waits for it."""
        while True:
            with self._lock:
                if job is None or self._running is not job:
                    return
                self.catalogue.interrupt()
                for engine in self.engines.values():
                    engine.database.interrupt()
            # A job is many statements, and one that has not begun does not hear of it.
            sleep(INTERRUPT_SECONDS)


def shown(sql: str, longest: int = 500) -> str:
    """What a client wrote as one line of plain characters, cut where it is long."""
    words = " ".join(sql[: 2 * longest].split())
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in words)
    return line if len(line) <= longest else f"{line[:longest]}..."


def _outcome(answer: Answer) -> str:
    released = sum(row.released for row in answer.rows)
    if released == len(answer.rows) == 1:
        return "released"
    if not released:
        return "suppressed"
    return f"released {released} of {len(answer.rows)} rows"
