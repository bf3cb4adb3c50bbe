"""How much of the secret a guess recovered, next to guessing without any answer.

With ``right`` and ``wrong`` claims among n people, C = right / (right + wrong), and S the share
of the majority value among them, the majority baseline:

    accuracy   C, with Wilson's interval
               (k + z^2/2 ± z sqrt(k (N - k)/N + z^2/4)) / (N + z^2),  k right of N claims
    baseline   S
    advantage  (C - S) / (1 - S)            over guessing: 0 is guessing, 1 knowing everything
    kappa      100 (C - S) / (1 - S)        the same in percent, Aircloak challenge
    alpha      claims / (known + 1)         effectiveness; known = cells of prior knowledge used
    error      sum_b share_b |mean confidence_b - share right_b|   over bins b of confidence
    Brier      mean (probability - bit)^2
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.guess import Guess
from countleak.errors import InputError, ShapeError
from countleak.shares import percent


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval (1927) for a rate; z = 1.96 covers 95%. ``trials`` is above 0."""
    centre = (successes + z * z / 2) / (trials + z * z)
    spread = successes * (trials - successes) / trials + z * z / 4
    half = z / (trials + z * z) * sqrt(spread)
    # Rounding errors must not keep all from being all.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == trials else min(1.0, centre + half)


@dataclass(frozen=True, eq=False)
class Confusion:
    """Claims by truth: ``counts`` (t, k), rows the true values, columns the claimed ones.

    ``people`` (t,) is how many have each true value, claimed or not.
    """

    truths: tuple[str, ...]
    names: tuple[str, ...]
    counts: NDArray[np.int64]
    people: NDArray[np.int64]

    def of(self, truth: str, name: str) -> int:
        """How many with a true value were claimed to have another."""
        if truth not in self.truths or name not in self.names:
            return 0
        return int(self.counts[self.truths.index(truth), self.names.index(name)])

    def by_value(self) -> list[dict[str, str | int]]:
        """For each true value how many have it, and how many of them were claimed as what."""
        return [
            {
                "truth": truth,
                "people": int(self.people[t]),
                **{f"as {name}": int(self.counts[t, c]) for c, name in enumerate(self.names)},
            }
            for t, truth in enumerate(self.truths)
        ]


@dataclass(frozen=True)
class Errors:
    """How near numbers came: a claim is right within the share ``tolerance`` of the truth.

    ``covered`` people lie in their intervals, meant to hold ``level``; guessing everyone the mean
    has ``baseline_error`` on average, the guess ``mean_error``.
    """

    tolerance: float
    covered: int
    level: float
    r_squared: float
    mean_error: float
    baseline_error: float


@dataclass(frozen=True)
class Score:
    """Claims about ``people`` people, of which ``right`` are so.

    ``guessable`` people are right by guessing everyone the commonest value, or the mean of a
    number. Bits and values have a ``confusion``, numbers ``errors``.
    """

    people: int
    claims: int
    right: int
    guessable: int
    confusion: Confusion | None = None
    errors: Errors | None = None

    @property
    def wrong(self) -> int:
        """Claims that are not so."""
        return self.claims - self.right

    @property
    def baseline(self) -> float:
        """S: what guessing without answers gets right."""
        return self.guessable / self.people

    @property
    def accuracy(self) -> float | None:
        """C: the share of claims that are right; missing when nothing was claimed."""
        return self.right / self.claims if self.claims else None

    def interval(self, z: float = 1.96) -> tuple[float, float] | None:
        """Wilson's interval for the accuracy; missing when nothing was claimed."""
        return wilson(self.right, self.claims, z) if self.claims else None

    @property
    def kappa(self) -> float | None:
        """The advantage over guessing in percent; missing without claims, or where S is 1."""
        if not self.claims or self.guessable == self.people:
            return None
        # In whole numbers as long as possible, so that a perfect guess is exactly 100.
        gain = self.right * self.people - self.guessable * self.claims
        return 100 * gain / (self.claims * (self.people - self.guessable))

    @property
    def advantage(self) -> float | None:
        """How far from guessing to knowing everything: (C - S)/(1 - S); missing as kappa is."""
        return None if self.kappa is None else self.kappa / 100

    def alpha(self, known: int) -> float:
        """Effectiveness: claims per cell of prior knowledge, ``known`` of which were used."""
        return self.claims / (known + 1)

    @property
    def false_positives(self) -> int:
        """Claims of a 1 that are 0."""
        return 0 if self.confusion is None else self.confusion.of("0", "1")

    @property
    def false_negatives(self) -> int:
        """Claims of a 0 that are 1."""
        return 0 if self.confusion is None else self.confusion.of("1", "0")

    def record(self) -> dict[str, Any]:
        """The score as plain fields."""
        common = {"accuracy": self.accuracy, "interval": self.interval(), "baseline": self.baseline}
        if self.errors is not None:
            return {
                "people": self.people,
                "tolerance": self.errors.tolerance,
                "within": self.right,
                **common,
                "coverage": self.errors.covered / self.people,
                "level": self.errors.level,
                "r_squared": self.errors.r_squared,
                "mean_error": self.errors.mean_error,
                "baseline_error": self.errors.baseline_error,
                "advantage": self.advantage,
            }
        counted = {"people": self.people, "claims": self.claims, "right": self.right}
        if self.confusion is not None and self.confusion.names != ("0", "1"):
            by_value = self.confusion.by_value()
            return {**counted, **common, "advantage": self.advantage, "by_value": by_value}
        return {
            **counted,
            "wrong": self.wrong,
            **common,
            "false_positives": self.false_positives,
            "false_negatives": self.false_negatives,
            "kappa": self.kappa,
            "advantage": self.advantage,
            "alpha_ids_known": self.alpha(self.people),
            "alpha_ids_free": self.alpha(0),
        }

    def __str__(self) -> str:
        interval = self.interval()
        if self.accuracy is None or interval is None:
            return f"No claim about any of {self.people} people."
        within = "" if self.errors is None else f" within {self.errors.tolerance:.0%}"
        gain = self.advantage
        learned = "" if gain is None else f", an advantage over guessing of {percent(gain)}"
        return (
            f"{self.right} of {self.claims} secrets recovered{within} ({percent(self.accuracy)}, "
            f"95% interval {percent(interval[0])} to {percent(interval[1])}); guessing without any "
            f"answer gets {percent(self.baseline)}{learned}."
        )


def score(guess: Guess, truth: NDArray[Any], *, tolerance: float = 0.1) -> Score:
    """A guess compared with the truth (n,) of the same people in the same order.

    Numbers are right within the share ``tolerance`` of the truth.
    """
    if guess.values.shape != truth.shape:
        raise ShapeError(f"a guess about {guess.values.size} people, but {truth.size} secrets")
    if guess.intervals is not None:
        return _score_numbers(guess, truth.astype(np.float64), tolerance)
    names = guess.names or ("0", "1")
    claimed, values, true = guess.claimed, guess.values.astype(np.str_), truth.astype(np.str_)
    truths = tuple(str(value) for value in np.unique(true)) if guess.names else ("0", "1")
    counts = [
        [int(((true == t) & (values == name) & claimed).sum()) for name in names] for t in truths
    ]
    held = np.array([int((true == t).sum()) for t in truths])
    right = int(((true == values) & claimed).sum())
    confusion = Confusion(truths, names, np.array(counts), held)
    return Score(truth.size, int(claimed.sum()), right, int(held.max()), confusion)


def _score_numbers(guess: Guess, truth: NDArray[np.float64], tolerance: float) -> Score:
    """The mean that the baseline guesses is the true one, which an attacker would have to learn."""
    assert guess.intervals is not None
    if not tolerance > 0:
        raise InputError(f"the tolerance is {tolerance:g}; it must be above 0")
    off, off_mean = np.abs(guess.values - truth), np.abs(truth.mean() - truth)
    variance = float((off_mean**2).sum())
    low, high = guess.intervals.low, guess.intervals.high
    errors = Errors(
        tolerance,
        int(((low <= truth) & (truth <= high)).sum()),
        guess.intervals.level,
        1 - float((off**2).sum()) / variance if variance else float(not off.any()),
        float(off.mean()),
        float(off_mean.mean()),
    )
    return Score(
        truth.size,
        truth.size,
        int((off <= tolerance * np.abs(truth)).sum()),
        int((off_mean <= tolerance * np.abs(truth)).sum()),
        errors=errors,
    )


@dataclass(frozen=True)
class Bin:
    """Claims of about the same confidence: how many, how sure on average, how many right."""

    claims: int
    confidence: float
    right: int


@dataclass(frozen=True)
class Calibration:
    """Whether probabilities mean what they say: a claim made with 90% is right 9 times of 10.

    ``error`` is the expected calibration error over the bins, ``brier`` the mean squared error.
    """

    bins: tuple[Bin, ...]
    error: float
    brier: float


def calibration(
    probability: NDArray[np.float64], secret: NDArray[np.integer[Any]], bins: int = 10
) -> Calibration:
    """How probabilities (n,) of a 1 compare with the true bits (n,), in bins of confidence.

    The confidence of a claim is the probability of the value claimed, so it starts at 1/2.
    """
    if probability.shape != secret.shape:
        raise ShapeError(f"{probability.size} probabilities, but {secret.size} secrets")
    right = (probability >= 0.5) == (secret == 1)
    squares = float(((probability - secret) ** 2).mean())
    return _calibrated(np.maximum(probability, 1 - probability), right, 0.5, squares, bins)


def calibration_of(guess: Guess, truth: NDArray[Any]) -> Calibration | None:
    """The same of a guess about bits or values; missing where it has no probabilities.

    The squared error of several values is that summed over them.
    """
    if guess.probability is None or guess.confidence is None or guess.intervals is not None:
        return None
    if not guess.names:
        return calibration(guess.probability, truth)
    true = truth.astype(np.str_)
    held = np.array([true == name for name in guess.names]).T
    squares = float(((guess.probability - held) ** 2).sum(axis=1).mean())
    right = guess.values.astype(np.str_) == true
    return _calibrated(guess.confidence, right, 1 / len(guess.names), squares, 10)


def _calibrated(
    confidence: NDArray[np.float64],
    right: NDArray[np.bool_],
    least: float,
    brier: float,
    bins: int,
) -> Calibration:
    place = ((confidence - least) / (1 - least) * bins).astype(np.int64).clip(0, bins - 1)
    filled = tuple(
        Bin(int(at.sum()), float(confidence[at].mean()), int(right[at].sum()))
        for at in (place == k for k in range(bins))
        if at.any()
    )
    error = sum(abs(b.confidence * b.claims - b.right) for b in filled) / confidence.size
    return Calibration(filled, error, brier)
