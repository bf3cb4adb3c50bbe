"""How much of the secret a guess recovered, next to guessing without any answer.

With ``right`` and ``wrong`` claims among n people, C = right / (right + wrong), and S the share
of the majority bit among them:

    accuracy   C, with Wilson's interval
               (k + z^2/2 ± z sqrt(k (N - k)/N + z^2/4)) / (N + z^2),  k right of N claims
    baseline   S
    kappa      100 (C - S) / (1 - S)        confidence improvement, Aircloak challenge
    alpha      claims / (known + 1)         effectiveness; known = cells of prior knowledge used
    error      sum_b share_b |mean confidence_b - share right_b|   over bins b of confidence
    Brier      mean (probability - bit)^2
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Guess
from countleak.attack.decoders.categorical import Categories
from countleak.attack.decoders.sums import Amounts
from countleak.errors import InputError, ShapeError


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval (1927) for a rate; z = 1.96 covers 95%. ``trials`` is above 0."""
    centre = (successes + z * z / 2) / (trials + z * z)
    spread = successes * (trials - successes) / trials + z * z / 4
    half = z / (trials + z * z) * sqrt(spread)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Score:
    """Claims about ``people`` people, split by what was claimed and whether it is so."""

    people: int
    true_positives: int
    true_negatives: int
    false_positives: int
    false_negatives: int
    ones: int

    @property
    def right(self) -> int:
        """Claims that are so."""
        return self.true_positives + self.true_negatives

    @property
    def wrong(self) -> int:
        """Claims that are not so."""
        return self.false_positives + self.false_negatives

    @property
    def claims(self) -> int:
        """People about whom something was claimed."""
        return self.right + self.wrong

    @property
    def baseline(self) -> float:
        """S: the share of the majority bit, what guessing without answers gets right."""
        return max(self.ones, self.people - self.ones) / self.people

    @property
    def accuracy(self) -> float | None:
        """C: the share of claims that are so; missing when nothing was claimed."""
        return self.right / self.claims if self.claims else None

    def interval(self, z: float = 1.96) -> tuple[float, float] | None:
        """Wilson's interval for the accuracy; missing when nothing was claimed."""
        return wilson(self.right, self.claims, z) if self.claims else None

    @property
    def kappa(self) -> float | None:
        """Confidence improvement in percent; missing without claims or where S is 1 already."""
        if self.accuracy is None or self.baseline == 1.0:
            return None
        # In whole numbers as long as possible, so that a perfect guess is exactly 100.
        majority = max(self.ones, self.people - self.ones)
        gain = self.right * self.people - majority * self.claims
        return 100 * gain / (self.claims * (self.people - majority))

    def alpha(self, known: int) -> float:
        """Effectiveness: claims a cell of prior knowledge, ``known`` of which were used."""
        return self.claims / (known + 1)


def score(guess: Guess, secret: NDArray[np.int8]) -> Score:
    """A guess compared with the true bits (n,) of the same people in the same order."""
    if guess.values.shape != secret.shape:
        raise ShapeError(f"a guess about {guess.values.size} people, but {secret.size} secrets")
    said_one, is_one, claimed = guess.values == 1, secret == 1, guess.claimed
    return Score(
        people=secret.size,
        true_positives=int((claimed & said_one & is_one).sum()),
        true_negatives=int((claimed & ~said_one & ~is_one).sum()),
        false_positives=int((claimed & said_one & ~is_one).sum()),
        false_negatives=int((claimed & ~said_one & is_one).sum()),
        ones=int(is_one.sum()),
    )


@dataclass(frozen=True, eq=False)
class CategoryScore:
    """Claims about ``people`` people whose secret is one of several values.

    ``met`` (t, k) counts claims: rows are the true values ``truths``, columns the claimed
    ``names``; ``held`` (t,) how many people have each true value.
    """

    people: int
    truths: tuple[str, ...]
    names: tuple[str, ...]
    met: NDArray[np.int64]
    held: NDArray[np.int64]

    @property
    def claims(self) -> int:
        """People about whom something was claimed."""
        return int(self.met.sum())

    @property
    def right(self) -> int:
        """Claims that are so."""
        return sum(
            int(self.met[t, self.names.index(name)])
            for t, name in enumerate(self.truths)
            if name in self.names
        )

    @property
    def accuracy(self) -> float | None:
        """The share of claims that are so; missing when nothing was claimed."""
        return self.right / self.claims if self.claims else None

    def interval(self, z: float = 1.96) -> tuple[float, float] | None:
        """Wilson's interval for the accuracy; missing when nothing was claimed."""
        return wilson(self.right, self.claims, z) if self.claims else None

    @property
    def baseline(self) -> float:
        """The share of the commonest value: what guessing without answers gets right."""
        return int(self.held.max()) / self.people

    def by_value(self) -> list[dict[str, str | int]]:
        """For each true value how many have it, how many of them were claimed as what."""
        return [
            {
                "truth": name,
                "people": int(self.held[t]),
                **{f"as {claim}": int(self.met[t, c]) for c, claim in enumerate(self.names)},
            }
            for t, name in enumerate(self.truths)
        ]


def score_categories(guess: Categories, truth: NDArray[np.str_]) -> CategoryScore:
    """A guess compared with the true values (n,) of the same people in the same order."""
    if truth.shape != guess.ids.shape:
        raise ShapeError(f"a guess about {guess.ids.size} people, but {truth.size} values")
    truths = tuple(str(value) for value in np.unique(truth))
    said, claimed = guess.values, guess.claimed
    met = [
        [int(((truth == true) & (said == name) & claimed).sum()) for name in guess.names]
        for true in truths
    ]
    held = np.array([(truth == true).sum() for true in truths])
    return CategoryScore(truth.size, truths, guess.names, np.array(met), held)


@dataclass(frozen=True)
class AmountScore:
    """How near the numbers of ``people`` people came, beside guessing everyone the mean.

    ``within`` and ``baseline_within`` count those off by at most the share ``tolerance`` of the
    truth, ``covered`` those whose interval, meant to hold ``level``, does hold it.
    """

    people: int
    tolerance: float
    within: int
    baseline_within: int
    covered: int
    level: float
    r_squared: float
    mean_error: float
    baseline_error: float

    @property
    def accuracy(self) -> float:
        """The share of people within the tolerance."""
        return self.within / self.people

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's interval for that share."""
        return wilson(self.within, self.people, z)

    @property
    def baseline(self) -> float:
        """The share that guessing the mean gets within the tolerance."""
        return self.baseline_within / self.people

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        return self.covered / self.people


def score_amounts(
    guess: Amounts, truth: NDArray[np.float64], tolerance: float = 0.1
) -> AmountScore:
    """A guess compared with the true numbers (n,) of the same people in the same order.

    The mean that the baseline guesses is the true one, which an attacker would have to learn.
    """
    if truth.shape != guess.ids.shape:
        raise ShapeError(f"a guess about {guess.ids.size} people, but {truth.size} numbers")
    if not tolerance > 0:
        raise InputError(f"the tolerance is {tolerance:g}; it must be above 0")
    off, off_mean = np.abs(guess.values - truth), np.abs(truth.mean() - truth)
    variance = float((off_mean**2).sum())
    return AmountScore(
        truth.size,
        tolerance,
        int((off <= tolerance * np.abs(truth)).sum()),
        int((off_mean <= tolerance * np.abs(truth)).sum()),
        int(((guess.low <= truth) & (truth <= guess.high)).sum()),
        guess.level,
        1 - float((off**2).sum()) / variance if variance else float(not off.any()),
        float(off.mean()),
        float(off_mean.mean()),
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
    probability: NDArray[np.float64], secret: NDArray[np.int8], bins: int = 10
) -> Calibration:
    """How probabilities (n,) of a 1 compare with the true bits (n,), in bins of confidence.

    The confidence of a claim is the probability of the value claimed, so it starts at 1/2.
    """
    if probability.shape != secret.shape:
        raise ShapeError(f"{probability.size} probabilities, but {secret.size} secrets")
    confidence = np.maximum(probability, 1 - probability)
    right = (probability >= 0.5) == (secret == 1)
    place = np.minimum(((2 * confidence - 1) * bins).astype(np.int64), bins - 1)
    found = tuple(
        Bin(int(at.sum()), float(confidence[at].mean()), int(right[at].sum()))
        for at in (place == k for k in range(bins))
        if at.any()
    )
    error = sum(abs(b.confidence * b.claims - b.right) for b in found) / secret.size
    return Calibration(found, error, float(((probability - secret) ** 2).mean()))
