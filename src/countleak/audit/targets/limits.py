"""How fast a system is asked, and for how long an answer is waited for."""

from dataclasses import dataclass
from threading import Lock

from countleak.audit.targets.retries import RETRIES, Retries
from countleak.errors import InputError, Transient

# What a server gets beyond its time to stop a question itself and say so, and a connection to
# finish its last question when a run is stopped.
GRACE = 2.0
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class RequestLimits:
    """How a system is asked: connections, seconds to wait for an answer, questions per second.

    ``retries`` say how often what fails for now is tried again.
    """

    connections: int = 1
    seconds: float = 30.0
    rate: float | None = None
    retries: Retries = RETRIES

    def __post_init__(self) -> None:
        if self.connections < 1 or self.seconds <= 0 or (self.rate is not None and self.rate <= 0):
            raise InputError("connections, timeout and rate must be above 0")

    @property
    def connect_seconds(self) -> float:
        """Seconds for a connection to stand, logged in and ready."""
        return min(CONNECT_SECONDS, self.seconds)

    @property
    def grace(self) -> float:
        """Seconds beyond a limit in which a server may still say so itself."""
        return min(GRACE, self.seconds)

    @property
    def patience(self) -> float:
        """Seconds after which a connection gives up its question."""
        return self.seconds + self.grace

    def overdue(self) -> Transient:
        """What to say of a server that did not answer in time."""
        return Transient(
            f"no answer within {self.seconds:g} seconds",
            "the answers so far are kept, so run it again to resume, or allow more time",
        )


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
