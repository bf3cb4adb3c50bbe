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

from countleak.decoders import Guess
from countleak.errors import ShapeError


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
