"""One attack: the library's own audit, with a decode every so often for whoever watches.

What comes out at the end is what ``countleak.audit`` makes of these people, this target, these
questions and this seed. What is shown before is least squares on the answers so far: quick, and as
good as it gets in between.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.guess import Guess
from countleak.attack.queries import Queries
from countleak.attack.solvers.machine import one_thread
from countleak.attack.transcript import Answers, Journal, Transcript
from countleak.audit.people import People
from countleak.audit.result import AuditResult
from countleak.audit.run import Asking, Keeping, audit, default_queries
from countleak.audit.targets import Target
from countleak.lab_page.settings import SECRET, AttackSettings, people_of

# How often a watcher sees something new while questions are asked.
LOOKS = 24
# Between two looks, of an attack that is asked slowly.
PAUSE_SECONDS = 0.4


class Stopped(Exception):
    """Whoever started the attack wants it to stop."""


@dataclass(frozen=True, eq=False)
class Look:
    """What is guessed after ``answered`` questions: how probable (n,) a 1 is, of whom claimed."""

    answered: int
    probability: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.bool_]:
        """The guess of everyone (n,)."""
        return self.probability >= 0.5


@dataclass(frozen=True, eq=False)
class Decoding:
    """All questions are answered; the decoder has come so far."""

    done: int
    total: int


@dataclass(frozen=True, eq=False)
class Finished:
    """The end of an attack: the last look, and the result as it is told and as plain fields.

    ``claimed`` (n,) is False for those about whom nothing is said; ``suppressed`` is how many
    questions had no answer.
    """

    look: Look
    claimed: NDArray[np.bool_]
    lines: tuple[str, ...]
    record: dict[str, Any]
    suppressed: int


@dataclass(frozen=True, eq=False)
class Watched:
    """A target whose answers someone looks at as they come in, a few at a time."""

    target: Target
    size: int
    look: Callable[[Answers], None]

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """The target's own answers, in parts of at most ``size``."""
        for batch in self.target.answer(queries, positions):
            for start in range(0, len(batch), self.size):
                part = slice(start, start + self.size)
                answers = Answers(batch.query[part], batch.values[part], batch.released[part])
                self.look(answers)
                yield answers


@dataclass(frozen=True, eq=False)
class Attack:
    """An attack that starts, or resumes, in ``folder``; ``tell`` hears of it.

    ``check`` is called often, and raises ``Stopped`` where it is to stop; all answers so far are
    kept then.
    """

    settings: AttackSettings
    folder: Path
    tell: Callable[[Look | Decoding], None]
    check: Callable[[], None]

    def run(self) -> Finished:
        """Run to the end."""
        settings, people = self.settings, people_of(self.settings.people)
        queries = default_queries(people, settings.questions, settings.seed)
        system = settings.system_in_words
        earlier = Journal(self.folder / "answers.jsonl", queries, SECRET, system).answers
        parts = [earlier]
        if len(earlier):
            self.tell(_looked(queries, earlier))

        def look(answers: Answers) -> None:
            self.check()
            if settings.slowly:
                sleep(PAUSE_SECONDS)
            parts.append(answers)
            self.tell(_looked(queries, Answers.join(parts)))

        size = max(1, settings.questions // LOOKS)
        watched = Watched(settings.target(people), size, look)
        return _finished(self._audited(people, queries, watched))

    def report(self) -> None:
        """Write the report of an attack that is at its end into its folder.

        All answers are there, so nothing is asked anew: they are decoded once more.
        """
        from countleak.audit.report.writing import write

        settings, people = self.settings, people_of(self.settings.people)
        queries = default_queries(people, settings.questions, settings.seed)
        result = self._audited(people, queries, settings.target(people))
        write(result, self.folder, system=settings.system_in_words, show_ids=True)

    def _audited(self, people: People, queries: Queries, target: Target) -> AuditResult:
        return audit(
            people,
            secret=SECRET,
            target=target,
            queries=queries,
            asking=Asking(seed=self.settings.seed),
            keeping=Keeping(self.folder, self.settings.system_in_words),
            decoder=self.settings.chosen_decoder(self._decoding),
        )

    def _decoding(self, done: int, total: int) -> None:
        self.check()
        self.tell(Decoding(done, total))


def _looked(queries: Queries, answers: Answers) -> Look:
    transcript = Transcript.of(queries, answers, SECRET.names)
    # On a busy machine several threads take ten times as long for such small matrices.
    with one_thread():
        guess = LeastSquares().decode(transcript)
    return Look(len(answers), _probability(guess))


def _finished(result: AuditResult) -> Finished:
    """What is shown of a result."""
    guess, score = result.guess, result.score
    assert score is not None
    return Finished(
        Look(len(result.transcript), _probability(guess)),
        guess.claimed,
        tuple(str(result).splitlines()),
        {
            "score": score.record(),
            "expected_right": guess.expected_right,
            "rests_on": guess.basis.record(),
            "people": result.people.columns(),
        },
        int((~result.transcript.released).sum()),
    )


def _probability(guess: Guess) -> NDArray[np.float64]:
    """How probable (n,) a 1 is; where a decoder knows only a margin, as far from even as that."""
    if guess.probability is not None:
        return guess.probability
    margin = np.zeros(guess.ids.size) if guess.margin is None else guess.margin
    return np.where(guess.values == 1, 0.5 + margin / 2, 0.5 - margin / 2)
