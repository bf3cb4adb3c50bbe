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
from countleak.audit.judgement import Judgement, contradicted, contradiction
from countleak.audit.people import People
from countleak.audit.scores import Score
from countleak.audit.targets import Target
from countleak.errors import MissingExtra
from countleak.foreign import brief

# So many answers are alike by no chance.
MANY = 10


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


@dataclass(frozen=True, eq=False)
class AuditResult(Judgement):
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
    def answered(self) -> int:
        """How many questions were answered, suppressed answers among them."""
        return len(self.transcript)

    @property
    def unfit(self) -> str | None:
        """Why a low success shows nothing about the system; None where the model fits."""
        if (overrated := self.overrated) is not None:
            return overrated
        basis = self.guess.basis
        if basis.misfit:
            return (
                f"the model does not fit these answers ({basis.misfit}): this audit shows nothing"
            )
        if isinstance(basis, WithinBound):
            # Whatever the probabilities, the bound itself is what the truth can contradict.
            off = float(np.abs(self.transcript.residuals(self._true_bits())).max(initial=0.0))
            if off > basis.bound + 1e-9:
                return contradicted(
                    f"no answer should be further than {basis.bound:g} from its count, but by the "
                    f"truth given one is {off:g} away"
                )
        return None

    def _true_bits(self) -> NDArray[np.float64]:
        """The truth as bits: everyone's, or for each value of the secret in turn who has it."""
        truth = self.audited.truth(self.secret) if self.truth is None else self.truth
        names = self.transcript.names
        held = [truth == name for name in names] if names else [truth]
        return np.concatenate(held).astype(np.float64)

    def __str__(self) -> str:
        suppressed = int(np.sum(~self.transcript.released))
        lines = [
            f"{len(self.transcript)} answers about {len(self.audited)} people, {suppressed} "
            f"suppressed; secret: {brief(str(self.secret))}."
        ]
        if self.refused:
            lines.append(
                f"Asking ended after {len(self.transcript)} answers, for the system refused: "
                f"{self.refused}"
            )
        return "\n".join([*lines, *self.found_in_words()])

    def __repr__(self) -> str:
        return f"<audit: {' '.join(str(self).split())}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())
        return f"<div><strong>countleak audit</strong>{lines}</div>"


def nothing_shown(result: AuditResult, *, is_live: bool) -> str | None:
    """Why an audit shows nothing, where nothing was answered or concluded; that is no pass."""
    transcript = result.transcript
    if not transcript.released.any():
        return (
            "every answer was suppressed, so this audit shows nothing; check the table and the "
            "people, or ask about more people"
        )
    if is_live and not transcript.values[transcript.released].any():
        return (
            "every answer is 0, so this audit shows nothing; check that the table holds these "
            "people"
        )
    if is_live and not result.guess.forced.any() and _are_alike(transcript):
        return (
            "every answer is the same, so this audit shows nothing; check that the system counts "
            "whom a question is about"
        )
    if not result.guess.claimed.any():
        status = result.guess.basis.record().get("status", "no claim")
        return (
            contradiction(result.guess)
            or f"the attack came to no conclusion ({status}), so this audit shows nothing"
        )
    return None


def _are_alike(transcript: Transcript) -> bool:
    """Whether questions about more people and about fewer all got the same answer."""
    values, sizes = transcript.values[transcript.released], transcript.A.sum(axis=1, dtype=np.int64)
    return values.size >= MANY and bool(np.ptp(values) == 0 < np.ptp(sizes))
