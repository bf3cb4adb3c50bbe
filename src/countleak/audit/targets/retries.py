"""How what fails for now is tried again: ever less often, and not for ever."""

import logging
from dataclasses import dataclass
from time import monotonic

from countleak.errors import KEPT, InputError, Transient

log = logging.getLogger(__name__)
# Seconds before the second try; each later pause is twice as long, up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0


@dataclass(frozen=True, order=True)
class Retries:
    """How often something is tried again in a row, and for how many seconds since it was begun."""

    tries: int = 12
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.tries < 0 or not 0 <= self.seconds < float("inf"):
            raise InputError("retries and their seconds must be 0 or more")


# A server that restarts is back within a minute, or somebody has to look after it.
RETRIES = Retries()
# Where nothing was ever answered the address is more likely wrong.
AT_FIRST = Retries(3, 2.0)


class Trouble:
    """Failures in a row of one thing that is tried, from when it is begun."""

    def __init__(self, retries: Retries):
        """Begin to try."""
        self._retries, self._began, self._failures = retries, monotonic(), 0

    def delay(self, error: Transient) -> float:
        """Seconds to wait after another failure; raises ``error`` where it was the last."""
        passed = monotonic() - self._began
        pause = min(FIRST_PAUSE * 2.0**self._failures, LONGEST_PAUSE)
        pause = max(pause, error.retry_after or 0.0)
        self._failures += 1
        if self._failures > self._retries.tries or passed + pause > self._retries.seconds:
            if self._failures == 1:
                raise error
            advice = error.advice
            if self._retries is not AT_FIRST and KEPT not in advice:
                advice = f"{advice}; {KEPT}"
            raise Transient(f"{error.what} (tried {self._failures} times)", advice) from None
        if self._failures == 1 and self._retries is not AT_FIRST:
            log.info("%s; trying again", error.what)
        return pause
