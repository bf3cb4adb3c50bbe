"""Whose turn it is: of the users whose jobs wait, the one that has been served least."""

from collections import Counter, defaultdict, deque
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Turns(Generic[Job]):
    """Jobs that wait, by user; each user's in the order they came.

    Users share the time, not the number of jobs: whoever has used less comes first. A user who was
    away comes back with as much as the least of those who were there, not with all it did not use.
    """

    def __init__(self, at_once: int):
        """Let no user have more than ``at_once`` jobs running."""
        self._at_once = at_once
        self._waiting: dict[str, deque[Job]] = {}
        self._running: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, user: str) -> int:
        """How many jobs of that user run or wait."""
        return len(self._waiting.get(user, ())) + self._running[user]

    def add(self, user: str, job: Job) -> None:
        """Let a job wait for its turn."""
        if not self.count(user):
            others = {*self._waiting, *+self._running} - {user}
            least = min((self._seconds[other] for other in others), default=0.0)
            self._seconds[user] = max(self._seconds[user], least)
        self._waiting.setdefault(user, deque()).append(job)

    def drop(self, user: str, job: Job) -> None:
        """Take a job out, if it waits."""
        if job in self._waiting.get(user, ()):
            self._waiting[user].remove(job)
            self._forget_if_empty(user)

    def next(self) -> Job | None:
        """The job that runs now; None where no one may go."""
        able = [user for user in self._waiting if self._running[user] < self._at_once]
        if not able:
            return None
        user = min(able, key=self._seconds.__getitem__)
        job = self._waiting[user].popleft()
        self._forget_if_empty(user)
        self._running[user] += 1
        return job

    def end(self, user: str, seconds: float) -> None:
        """A job of that user is over, and took that long."""
        self._running[user] -= 1
        self._seconds[user] += seconds

    def _forget_if_empty(self, user: str) -> None:
        if not self._waiting[user]:
            del self._waiting[user]
