"""Answers as a model would have given them: what real ones are compared with."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from countleak.attack.covariance import correlation
from countleak.attack.noise import WRONG_SPREAD, Below, Noise, Range, Shape, Threshold, Values
from countleak.attack.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Replay:
    """The questions of a transcript, answered again by a system with this noise."""

    transcript: Transcript
    noise: Noise
    whole: bool

    def answered(
        self, x: NDArray[np.float64], values: Values, rng: np.random.Generator
    ) -> Transcript:
        """The answers where bits count as x (n,) and what is open of the noise has these values."""
        transcript, noise = self.transcript, self.noise
        true = transcript.counts(x) + transcript.share
        errors = transcript.counts(values.per_person * rng.normal(size=x.size))
        noisy = true + errors + values.offsets[transcript.about] + self._noise(values, rng)
        if self.whole:
            noisy = _rounded(noisy, noise, rng)
        gross = rng.random(true.size) < values.wrong
        spread = rng.uniform(-WRONG_SPREAD / 2, WRONG_SPREAD / 2, true.size)
        answers = np.where(gross, true + (np.rint(spread) if self.whole else spread), noisy)
        low = -np.inf if noise.floor is None else noise.floor
        answers = np.clip(answers, low, np.inf if noise.ceiling is None else noise.ceiling)
        released = ~_suppressed(true, answers, noise, rng)
        if noise.threshold is None:
            released &= transcript.released
        return replace(transcript, values=np.where(released, answers, np.nan), released=released)

    @cached_property
    def _factors(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """The rows about each value, and the Cholesky factor of the correlation of their noise."""
        rows = [np.flatnonzero(self.transcript.about == v) for v in range(self.transcript.blocks)]
        shared, queries = self.noise.shared, self.transcript.queries
        return [
            (at, np.asarray(np.linalg.cholesky(correlation(shared, queries.take(at)))))
            for at in rows
            if at.size
        ]

    def _noise(self, values: Values, rng: np.random.Generator) -> NDArray[np.float64]:
        """Noise (m,) before rounding, in people."""
        m, noise = len(self.transcript), self.noise
        sigma = values.sigma[np.zeros(m, np.int64) if noise.groups is None else noise.groups]
        match noise.shape:
            case Shape.EXACT:
                return np.zeros(m)
            case Shape.UNIFORM:
                bound = noise.bound or 0
                if bound == int(bound):
                    return rng.integers(-int(bound), int(bound) + 1, m).astype(np.float64)
                return rng.uniform(-bound, bound, m)
            case Shape.LAPLACE:
                return np.asarray(rng.laplace(0.0, sigma / np.sqrt(2)))
            case Shape.MIXTURE:
                assert noise.mixture is not None
                parts = noise.mixture.parts
                at = rng.choice(len(parts), size=m, p=[part.weight for part in parts])
                centre = np.array([part.centre for part in parts])[at]
                scale = np.array([part.scale for part in parts])[at]
                return np.asarray(sigma * (centre + scale * rng.normal(size=m)))
        drawn = rng.normal(size=m)
        for at, factor in self._factors if noise.shared else ():
            drawn[at] = factor @ drawn[at]
        return np.asarray(sigma * drawn)


def _rounded(
    noisy: NDArray[np.float64], noise: Noise, rng: np.random.Generator
) -> NDArray[np.float64]:
    steps = noisy / noise.base
    shift = rng.random(noisy.size) if noise.random_rounding else 0.5
    return np.asarray(noise.base * np.floor(steps + shift))


def _suppressed(
    counts: NDArray[np.float64],
    answers: NDArray[np.float64],
    noise: Noise,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which counts (m,), to be answered so, would be suppressed."""
    match noise.threshold:
        case Below(lowest):
            return np.asarray(answers < lowest)
        case Range(low, high):
            return np.asarray((counts >= low) & (counts <= high))
        case Threshold(mean, sd, minimum):
            return np.asarray(counts < np.maximum(rng.normal(mean, sd, counts.size), minimum))
    return np.zeros(counts.size, np.bool_)
