"""What an audit found: in a sentence, as a score, and one row per person."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.guess import Guess, WithinBound
from countleak.attack.queries.ids import id_list
from countleak.attack.secrets import Secret
from countleak.attack.transcript import Transcript
from countleak.audit.people import People
from countleak.audit.scores import Score
from countleak.audit.targets import Target
from countleak.errors import MissingExtra, NoResult
from countleak.shares import percent

# A guess that should be right this much more often than it can have been is not to be trusted.
DOUBT = 0.05


@dataclass(frozen=True, eq=False)
class Step:
    """What was concluded after some answers, how sure it is, and whether that is enough.

    ``refused`` is what the system said where it did not answer all that it was asked.
    """

    transcript: Transcript
    guess: Guess
    reached: bool
    refused: str | None = None

    @property
    def confidence(self) -> float | None:
        """The share of guesses expected to be right; missing where the decoder cannot tell."""
        return self.guess.expected_right


@dataclass(frozen=True, eq=False)
class GuessedPeople:
    """One row per person: the guess, how probable it is, and whether it is proven or implied."""

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
            "implied": guess.implied.tolist(),
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


def expected_in_words(guess: Guess) -> str:
    """How many guesses should be right, with an interval that doubts the model."""
    assert guess.expected_right is not None and guess.expected_interval is not None
    low, high = guess.expected_interval
    between = "" if low == high else f" ({percent(low)} to {percent(high)})"
    return f"{percent(guess.expected_right)}{between} of the guesses should be right"


def rules_in_words(stated: tuple[str, ...], inferred: tuple[str, ...]) -> list[str]:
    """What is stated of a system and what was inferred, each labelled so, where there is any."""
    labelled = {"Stated": stated, "Inferred from the answers": inferred}
    return [f"{label}: {'; '.join(rules)}." for label, rules in labelled.items() if rules]


def forced_in_words(guess: Guess) -> list[str]:
    """For how many people no other value fits, and under what; nothing where there is nobody."""
    people = int(guess.forced.sum())
    if not people:
        return []
    if guess.proven.any():
        return [f"{people} people's values are proven: under the rules stated no other fits."]
    condition = guess.basis.assuming or "the system was read rightly"
    return [f"{people} people's values are implied, if {condition}."]


def contradiction(guess: Guess) -> str | None:
    """That no values at all fit the answers under what was stated, where it is so."""
    if guess.claimed.any() or not isinstance(guess.basis, WithinBound) or not guess.basis.stated:
        return None
    return (
        f"no values fit the answers if {' and '.join(guess.basis.stated)}, as stated; check that, "
        "or state less"
    )


def _advantage(share: float, baseline: float) -> float:
    return (share - baseline) / (1 - baseline)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """An audit of the people ``audited``: its steps, the last of which counts, and its score.

    ``score`` and ``truth`` (n,), what everyone has, are missing where the truth is not known.
    ``target`` is what was asked and ``decoder`` what made the guesses, for who reports on it.
    """

    audited: People
    secret: Secret
    steps: tuple[Step, ...]
    score: Score | None
    truth: NDArray[Any] | None = None
    target: Target | None = None
    decoder: Decoder | None = None

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
    def refused(self) -> str | None:
        """What the system said where it refused to answer more; None where it answered all."""
        return self.steps[-1].refused

    @property
    def confidence(self) -> float | None:
        """The share of guesses expected to be right; missing where the decoder cannot tell."""
        return self.guess.expected_right

    @property
    def advantage(self) -> float | None:
        """The advantage over guessing; missing where the truth or a claim is, or all are alike."""
        return None if self.score is None else self.score.advantage

    @property
    def advantage_interval(self) -> tuple[float, float] | None:
        """Where the advantage lies, with 95% probability; missing as it is."""
        interval = None if self.score is None else self.score.interval()
        if interval is None or self.advantage is None:
            return None
        assert self.score is not None
        low, high = (_advantage(share, self.score.baseline) for share in interval)
        return low, high

    @property
    def least_expected(self) -> float | None:
        """The advantage to expect at least by the decoder's own probabilities, model in doubt."""
        between, guess = self.guess.expected_interval, self.guess
        if between is None or guess.intervals is not None or not guess.claimed.all():
            return None
        commonest = np.unique(guess.values, return_counts=True)[1].max() / guess.values.size
        return None if commonest == 1 else _advantage(between[0], float(commonest))

    @property
    def forced_share(self) -> float:
        """The share of people whose value is proven or implied, whatever the truth."""
        return float(self.guess.forced.mean())

    def verdict_in_words(self, allowed: float) -> str:
        """Whether more leaks than is ``allowed``, and what was compared; raises as that does."""
        verdict = "FAILED" if self.leaks_more_than(allowed) else "passed"
        if self.score is not None:
            assert self.advantage is not None and self.advantage_interval is not None
            low, high = (percent(end) for end in self.advantage_interval)
            leaked = f"the advantage over guessing is {percent(self.advantage)} ({low} to {high})"
        elif self.forced_share > allowed:
            how = "proven" if self.guess.proven.any() else "implied"
            leaked = f"the values of {percent(self.forced_share)} of the people are {how}"
        else:
            least = percent(self.least_expected or 0.0)
            leaked = f"by its own probabilities the advantage over guessing is {least} or more"
        until = f" by the {len(self.transcript)} answers given" if self.refused else ""
        return f"{verdict}: {leaked}{until}; {percent(allowed)} is allowed"

    def leaks_more_than(self, allowed: float) -> bool:
        """Whether the advantage over guessing may be larger than ``allowed``, by its interval.

        Without the truth, whether the values of more people than that share are proven or implied,
        or the decoder's own probabilities promise more at the least. It is never False then, for
        what is not implied may leak all the same.

        Raises NoResult where that cannot be told: without claims, where all are alike, or
        where the attack should have succeeded by its own probabilities but did not. Then its
        model does not fit the answers, or the people are not the system's, and nothing is shown.
        """
        if self.score is None:
            if self.forced_share > allowed or (self.least_expected or 0.0) > allowed:
                return True
            raise NoResult(
                f"the truth is not known here, and the values of {percent(self.forced_share)} of "
                f"the people are proven or implied, not more than the {percent(allowed)} allowed: "
                "this audit can neither pass nor fail; add the column of the secret to the people"
            )
        interval = self.score.interval()
        if interval is None:
            raise NoResult("the attack came to no conclusion, so this audit shows nothing")
        if self.advantage is None:
            raise NoResult(
                "everyone has the same value, so there is no advantage over guessing to measure; "
                "audit another secret"
            )
        assert self.advantage_interval is not None
        if self.advantage_interval[1] > allowed:
            return True
        if self.confidence is not None and self.confidence > interval[1] + DOUBT:
            right = percent(self.score.right / self.score.claims)
            self._contradict(
                f"{percent(self.confidence)} of the guesses should be right, but only {right} "
                "agree with the truth given"
            )
        basis = self.guess.basis
        if basis.misfit:
            raise NoResult(
                f"the model does not fit these answers ({basis.misfit}): this audit shows nothing"
            )
        if isinstance(basis, WithinBound):
            # Whatever the probabilities, the bound itself is what the truth can contradict.
            off = float(np.abs(self.transcript.residuals(self._true_bits())).max(initial=0.0))
            if off > basis.bound + 1e-9:
                self._contradict(
                    f"no answer should be further than {basis.bound:g} from its count, but by the "
                    f"truth given one is {off:g} away"
                )
        return False

    def _true_bits(self) -> NDArray[np.float64]:
        """The truth as bits: everyone's, or for each value of the secret in turn who has it."""
        truth = self.audited.truth(self.secret) if self.truth is None else self.truth
        names = self.transcript.names
        held = [truth == name for name in names] if names else [truth]
        return np.concatenate(held).astype(np.float64)

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
        if self.refused:
            lines.append(
                f"Asking ended after {len(self.transcript)} answers, for the system refused: "
                f"{self.refused}"
            )
        misfit = self.guess.basis.misfit
        if self.score is not None:
            lines.append(str(self.score))
        else:
            lines.append("The truth is not known here, so no success rate can be given.")
        if self.confidence is not None:
            lines.append(f"By its own probabilities {expected_in_words(self.guess)}.")
        elif self.score is None:
            why = f"the model does not fit these answers ({misfit})" if misfit else ""
            lines.append(
                f"There are no probabilities{f': {why}' if why else ''}; the guesses may be right "
                "all the same."
            )
        basis = self.guess.basis
        lines += [*rules_in_words(basis.stated, basis.inferred), *forced_in_words(self.guess)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<audit: {' '.join(str(self).split())}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())
        return f"<div><strong>countleak audit</strong>{lines}</div>"
