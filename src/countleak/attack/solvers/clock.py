"""A time limit shared by the steps of one job, which reports how much of it is spent."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from math import inf
from threading import Thread
from time import perf_counter
from typing import TypeVar

from countleak.errors import InputError
from countleak.progress import Progress

T = TypeVar("T")
_EVERY = 1.0


class Clock:
    """``limit`` seconds from now on; ``progress`` hears of the seconds spent and the limit."""

    def __init__(self, limit: float, progress: Progress) -> None:
        if not limit > 0:
            raise InputError(f"the time limit is {limit:g} s; it must be above 0")
        self._begin, self._limit, self._progress = perf_counter(), limit, progress

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self._begin

    @property
    def left(self) -> float:
        """Seconds to the limit, below 0 after it."""
        return self._limit - self.spent

    def report(self) -> None:
        """Tell how far it is."""
        total = max(1, round(self._limit))
        self._progress(min(int(self.spent), total), total)

    def finish(self) -> None:
        """Tell that the job is done, whatever time was left."""
        total = max(1, round(self._limit))
        self._progress(total, total)

    def during(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """What ``work`` returns, done in a thread so that progress is told every second.

        Raises TimeoutError when it takes more than ``seconds``; the work itself is not ended.
        """
        future: Future[T] = Future()

        def job() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        # A daemon: whoever interrupts the program does not wait for a solver's time limit.
        Thread(target=job, daemon=True).start()
        until = inf if seconds is None else perf_counter() + seconds
        while not wait([future], timeout=min(_EVERY, max(0.0, until - perf_counter()))).done:
            self.report()
            if perf_counter() > until:
                raise TimeoutError
        return future.result()
