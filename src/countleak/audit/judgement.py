"""What is concluded from a guess and its score, whatever they were made of: how much leaks."""

from abc import ABC, abstractmethod

import numpy as np

from countleak.attack.guess import Guess, WithinBound
from countleak.audit.scores import Score
from countleak.errors import NoResult
from countleak.shares import percent

# A guess that should be right this much more often than it can have been is not to be trusted.
DOUBT = 0.05


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


class Judgement(ABC):
    """A guess about people and its ``score``, which is missing where the truth is not known."""

    score: Score | None

    @property
    @abstractmethod
    def guess(self) -> Guess:
        """The guess about everyone."""

    @property
    @abstractmethod
    def refused(self) -> str | None:
        """What the system said where it refused to answer more; None where it answered all."""

    @property
    @abstractmethod
    def answered(self) -> int:
        """How many questions were answered, suppressed answers among them."""

    @property
    @abstractmethod
    def unfit(self) -> str | None:
        """Why a low success shows nothing about the system; None where the model fits."""

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
        until = f" by the {self.answered} answers given" if self.refused else ""
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
        if self.unfit is not None:
            raise NoResult(self.unfit)
        return False

    @property
    def overrated(self) -> str | None:
        """That the guess should have been right far more often, where it should have."""
        interval = None if self.score is None else self.score.interval()
        if self.score is None or interval is None or self.confidence is None:
            return None
        if self.confidence <= interval[1] + DOUBT:
            return None
        right = percent(self.score.right / self.score.claims)
        return contradicted(
            f"{percent(self.confidence)} of the guesses should be right, but only {right} agree "
            "with the truth given"
        )

    def found_in_words(self) -> list[str]:
        """Success, confidence, rules and proofs, in a line each."""
        misfit = self.guess.basis.misfit
        if self.score is not None:
            lines = [str(self.score)]
        else:
            lines = ["The truth is not known here, so no success rate can be given."]
        if self.confidence is not None:
            lines.append(f"By its own probabilities {expected_in_words(self.guess)}.")
        elif self.score is None:
            why = f"the model does not fit these answers ({misfit})" if misfit else ""
            lines.append(
                f"There are no probabilities{f': {why}' if why else ''}; the guesses may be right "
                "all the same."
            )
        basis = self.guess.basis
        return [
            *lines,
            *rules_in_words(basis.stated, basis.inferred),
            *forced_in_words(self.guess),
        ]


def contradicted(what: str) -> str:
    """What the truth contradicts, and what follows."""
    return (
        f"{what}: the decoder's model does not fit these answers, or these people are not the "
        "system's; this audit shows nothing"
    )
