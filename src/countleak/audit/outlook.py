"""How much the answers so far give away, for whoever watches while more are asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.queries import Queries
from countleak.attack.solvers.machine import one_thread
from countleak.attack.transcript import Answers, Transcript

# Answers times people that least squares takes in at once.
MOST_ENTRIES = 3_000_000
# So many times what a look takes goes by until the next.
PATIENCE = 20.0


@dataclass
class Outlook:
    """Least squares on the answers so far, now and then: quick, and cautious about how sure it is.

    ``tell`` hears which share of the guesses should be right, at most every ``seconds``.
    """

    pool: Queries
    tell: Callable[[float], None]
    seconds: float = 3.0
    _next: float = field(init=False)

    def __post_init__(self) -> None:
        self._next = monotonic() + self.seconds

    def __call__(self, parts: Sequence[Answers]) -> None:
        """Take in all answers so far, and look at them if it is time."""
        begin = monotonic()
        if begin < self._next:
            return
        answers = Answers.join(parts)
        if 0 < int(answers.released.sum()) * self.pool.ids.size <= MOST_ENTRIES:
            transcript = Transcript.of(self.pool, answers)
            answered = transcript.where(transcript.released)
            with one_thread():
                guess = LeastSquares().decode(answered)
            if guess.expected_right is not None:
                self.tell(guess.expected_right)
        now = monotonic()
        self._next = now + max(self.seconds, PATIENCE * (now - begin))
