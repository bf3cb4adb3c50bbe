"""The queries that users submitted over REST: while they run, and for a while after."""

import asyncio
import json
import logging
import secrets
from collections import OrderedDict, defaultdict
from typing import Any

from countleak.diffix.server.errors import TOO_BUSY, Failure
from countleak.diffix.server.options import Limits
from countleak.diffix.server.requests import Ask
from countleak.diffix.server.session import Served
from countleak.errors import TargetError

log = logging.getLogger(__name__)
NOTHING: dict[str, Any] = {"columns": [], "rows": [], "error": None, "notices": []}


class Job:
    """A query that was submitted; whatever becomes of it, it is completed at the end."""

    def __init__(self, statement: str, data_source: str, answer: "asyncio.Future[Any]"):
        """Wait for the ``answer`` to a statement about a data source."""
        self.id = secrets.token_hex(16)
        self.answer = answer
        self._about = {"id": self.id, "statement": statement, "data_source_name": data_source}
        self._state, self._rest = "running", _written(NOTHING)
        answer.add_done_callback(self._end)

    @property
    def is_completed(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.answer.done()

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self._about["statement"]) + len(self._rest) + 500

    async def wait(self, seconds: float) -> None:
        """Wait until it is completed, but no longer than that."""
        if seconds and not self.answer.done():
            await asyncio.wait([self.answer], timeout=seconds)

    def written(self) -> bytes:
        """The query as JSON."""
        if self.answer.done():
            self._end(self.answer)
        head = {**self._about, "state": self._state, "completed": self._state != "running"}
        return _written(head)[:-1] + b", " + self._rest[1:]

    def _end(self, answer: "asyncio.Future[Any]") -> None:
        if self._state != "running":
            return
        if answer.cancelled():
            self._state, error = "cancelled", "The query was cancelled."
        elif (problem := answer.exception()) is None:
            self._state, self._rest = "completed", answer.result()
            return
        elif isinstance(problem, TargetError):
            self._state, error = "error", str(problem)
        else:
            self._state, error = "error", "internal error; see the server's log"
            log.error("query %s: internal error", self.id, exc_info=problem)
        self._rest = _written({**NOTHING, "error": error})


class _Own:
    """The latest queries of one user, and about how many bytes they take."""

    def __init__(self, most: int, most_bytes: int):
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self._most, self._most_bytes = most, most_bytes
        self._bytes = 0

    def make_room(self) -> None:
        """Forget the oldest that are completed, as long as there are too many or too large."""
        while len(self.jobs) >= self._most or self._bytes > self._most_bytes:
            oldest = next((job for job in self.jobs.values() if job.is_completed), None)
            if oldest is None:
                raise Failure(TOO_BUSY, "Too many of your queries are running; ask again later.")
            self._bytes -= oldest.size
            del self.jobs[oldest.id]

    def add(self, job: Job) -> None:
        """Keep one more; it is as large as it is when it is completed."""
        self.jobs[job.id] = job
        job.answer.add_done_callback(lambda _: self._measure(job))

    def _measure(self, job: Job) -> None:
        self._bytes += job.size


class Jobs:
    """The queries of every user; one user's never push out another's."""

    def __init__(self, limits: Limits):
        """Keep as many of each user's as the limits say."""
        most = (limits.queries_kept, limits.bytes_kept)
        self._by_user: defaultdict[str, _Own] = defaultdict(lambda: _Own(*most))

    def submit(self, user: str, served: Served, statement: str) -> Job:
        """Start a query; ``Failure`` where that user has no room, or the server is stopping."""
        own = self._by_user[user]
        own.make_room()
        answer = served.submit(user, Ask(user, statement))
        if answer.done() and isinstance(problem := answer.exception(), Failure):
            raise problem
        job = Job(statement, served.name, answer)
        own.add(job)
        return job

    def find(self, user: str, query_id: str) -> Job | None:
        """A query of that user's."""
        return self._by_user[user].jobs.get(query_id)


def _written(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()
