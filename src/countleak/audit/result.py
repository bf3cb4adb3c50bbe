"""What an audit found: in a sentence, as a score, and one row per person."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from countleak.attack.guess import Guess, WithinBound
from countleak.attack.queries.ids import id_list
from countleak.attack.secrets import Secret
from countleak.attack.transcript import Transcript
from countleak.audit.people import People
from countleak.audit.scores import Score, percent
from countleak.errors import MissingExtra, NoResult

# A guess that should be right this much more often than it can have been is not to be trusted.
DOUBT = 0.05


@dataclass(frozen=True, eq=False)
class Step:
    """What was concluded after some answers, how sure it is, and whether that is enough."""

    transcript: Transcript
    guess: Guess
    reached: bool

    @property
    def confidence(self) -> float | None:
        """The share of guesses expected to be right; missing where the decoder cannot tell."""
        return self.guess.expected_right


@dataclass(frozen=True, eq=False)
class GuessedPeople:
    """One row per person: the guess, the probability that it is right, and whether it is proven."""

    people: People
    guess: Guess

    def __len__(self) -> int:
        return len(self.people)

    def __repr__(self) -> str:
        return f"<{self.guess!r}; to_frame() gives one row per person>"

    def columns(self) -> dict[str, list[Any]]:
        """The rows as named columns; a person about whom nothing is claimed has no guess."""
        guess, ids = self.guess, id_list(self.guess.ids)
        key = self.people.key
        keys = [ids] if len(key) == 1 else list(zip(*guess.ids.tolist(), strict=True))
        claimed, confidence = guess.claimed.tolist(), guess.confidence
        values = zip(guess.values.tolist(), claimed, strict=True)
        return {
            **{name: list(parts) for name, parts in zip(key, keys, strict=True)},
            "guess": [value if is_claimed else None for value, is_claimed in values],
            "probability": [None] * len(ids) if confidence is None else confidence.tolist(),
            "proven": guess.proven.tolist(),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a polars or pandas frame, by ``backend`` or whichever is installed."""
        try:
            import narwhals as nw
        except ImportError:
            raise MissingExtra("a frame of people", "frames") from None
        for name in (backend,) if backend else ("polars", "pandas"):
            try:
                return nw.from_dict(self.columns(), backend=name).to_native()  # type: ignore[arg-type]
            except ImportError:
                continue
        raise MissingExtra("a frame of people", "frames")


@dataclass(frozen=True, eq=False)
class AuditResult:
    """An audit of the people ``audited``: its steps, the last of which counts, and its score.

    ``score`` is missing where the truth is not known.
    """

    audited: People
    secret: Secret
    steps: tuple[Step, ...]
    score: Score | None

    @property
    def transcript(self) -> Transcript:
        """All that was asked and answered."""
        return self.steps[-1].transcript

    @property
    def guess(self) -> Guess:
        """The guess about everyone."""
        return self.steps[-1].guess

    @property
    def people(self) -> GuessedPeople:
        """One row per person."""
        return GuessedPeople(self.audited, self.guess)

    @property
    def confidence(self) -> float | None:
        """The share of guesses expected to be right; missing where the decoder cannot tell."""
        return self.guess.expected_right

    @property
    def advantage(self) -> float | None:
        """The advantage over guessing; missing where the truth or a claim is, or all are alike."""
        return None if self.score is None else self.score.advantage

    def leaks_more_than(self, allowed: float) -> bool:
        """Whether the advantage over guessing is larger than ``allowed``.

        Raises NoResult where that cannot be told: without truth or claims, where all are alike,
        or where the attack should have succeeded by its own probabilities but did not. Then its
        model does not fit the answers, or the people are not the system's, and nothing is shown.
        """
        if self.score is None:
            raise NoResult("the truth is not known here, so this audit can neither pass nor fail")
        interval = self.score.interval()
        if interval is None:
            raise NoResult("the attack came to no conclusion, so this audit shows nothing")
        if self.advantage is None:
            raise NoResult(
                "everyone has the same value, so there is no advantage over guessing to measure; "
                "audit another secret"
            )
        if self.advantage > allowed:
            return True
        if self.confidence is not None and self.confidence > interval[1] + DOUBT:
            right = percent(self.score.right / self.score.claims)
            self._contradict(
                f"{percent(self.confidence)} of the guesses should be right, but only {right} "
                "agree with the truth given"
            )
        basis = self.guess.basis
        if isinstance(basis, WithinBound):
            # Without probabilities the bound itself is what the truth can contradict.
            truth = self.audited.truth(self.secret).astype(np.float64)
            off = float(np.abs(self.transcript.b - self.transcript.A @ truth).max(initial=0.0))
            if off > basis.bound + 1e-9:
                self._contradict(
                    f"no answer should be further than {basis.bound:g} from its count, but by the "
                    f"truth given one is {off:g} away"
                )
        return False

    def _contradict(self, what: str) -> None:
        raise NoResult(
            f"{what}: the decoder's model does not fit these answers, or these people are not the "
            "system's; this audit shows nothing"
        )

    def __str__(self) -> str:
        suppressed = int(np.sum(~self.transcript.released))
        lines = [
            f"{len(self.transcript)} answers about {len(self.audited)} people, {suppressed} "
            f"suppressed; secret: {self.secret}."
        ]
        if self.score is not None:
            lines.append(str(self.score))
        else:
            lines.append("The truth is not known here, so no success rate can be given.")
        if self.confidence is not None:
            expected = percent(self.confidence)
            lines.append(f"By its own probabilities {expected} of the guesses should be right.")
        elif self.score is None:
            lines.append(
                "This decoder gives no probabilities: the guesses may be right all the same."
            )
        if self.guess.proven.any():
            lines.append(f"{int(self.guess.proven.sum())} people have no other value that fits.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<audit: {' '.join(str(self).split())}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())
        return f"<div><strong>countleak audit</strong>{lines}</div>"
