"""Whether a model fits the answers it was fitted to: looked at before anything is concluded.

A sample of the posterior is to the answers what the truth is, if the model is right. So answers
are drawn from the model at every sample, and figures of the real ones are compared with figures of
those (posterior predictive checks: Rubin 1984): how residuals are distributed, whether they go
with the turn of the question, the size of its set or its count, how much is suppressed, and
whether the same people count in the later answers as in the earlier ones (``halves``).

One more figure says how far probabilities can be believed. The scores g of the answers, by how
much each would have its count moved, have sums s = A'g whose covariance V is the information of
the answers about everyone (White 1982: where that fails, probabilities are too sure). s' V^-1 s,
over its freedom, is then about 1. Where it is more, by a factor, answers say less than the model
believes, by that factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from countleak.attack.halves import Halves
from countleak.attack.noise import UNKNOWN
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.gram import Gram
from countleak.attack.posterior.ladders import Sample
from countleak.attack.posterior.sampling import Posterior
from countleak.attack.predictive import Replay
from countleak.attack.solvers.machine import one_thread
from countleak.attack.transcript import Transcript

# Directions in which answers say next to nothing are left out.
FLAT = 1e-9
# Probabilities are widened where the inflation is so many deviations above 1 ...
DEVIATIONS = 4.0
# ... and withdrawn where it is larger than this, or another figure is so many deviations off.
HOPELESS, FAR_OFF = 3.0, 6.0
# So many samples are looked at, and so many answers drawn at each.
LOOKED_AT, DRAWN = 12, 3
# Probabilities are read to this much.
LEAST = 1e-12
# Fewer residuals have no distribution.
LEAST_RESIDUALS = 8

FIGURES = {
    "spread": "residuals are not distributed like its noise",
    "turn": "answers asked for one after the other are off together",
    "size": "answers about larger sets are off in one direction",
    "count": "answers do not grow with their counts as they should",
    "hidden": "not as much is suppressed as its rule says",
    "halves": "people count otherwise in the later answers than in the earlier ones",
}


@dataclass(frozen=True)
class Check:
    """How far real answers are from those of the model.

    ``inflation`` is how much larger sums of scores are than they should be, 1 if the model is
    right; chance alone makes it vary by ``deviation``. ``off`` says by how many deviations each of
    the FIGURES is off. ``alone`` is the chance of each person of an error unlike those of all
    others: where people have errors of an unknown law, n of them say no more (Laplace's rule).
    """

    inflation: float
    deviation: float
    off: dict[str, float]
    alone: float = 0.0

    @property
    def misfit(self) -> str:
        """Why nothing of the probabilities is left, in words; empty where they hold."""
        reasons = [FIGURES[name] for name, size in self.off.items() if abs(size) > FAR_OFF]
        if self.inflation > HOPELESS:
            reasons.append(self.doubt)
        return "; ".join(reasons)

    @property
    def doubt(self) -> str:
        """Why probabilities are widened, in words; empty where they are not."""
        if self.inflation <= 1 + DEVIATIONS * self.deviation:
            return ""
        return f"errors go together {self.inflation:.1f} times as much as its noise says"

    def applied(
        self, probability: NDArray[np.float64], known: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Probabilities as far as they can be believed; those of ``known`` people (n,) stay."""
        believed = self._believed(probability)
        if known is not None and known.any():
            believed = believed.copy()
            believed[known] = probability[known]
        return believed

    def _believed(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Doubt about everyone is mixed in, and log-odds shrink by the inflation."""
        if self.alone:
            values = probability.shape[1] if probability.ndim == 2 else 2
            probability = probability + self.alone * (1 / values - probability)
        if not self.doubt:
            return probability
        inside = np.clip(probability, LEAST, 1 - LEAST)
        if probability.ndim == 2:
            return np.asarray(softmax(np.log(inside) / self.inflation, axis=1))
        return np.asarray(expit(logit(inside) / self.inflation))


def check_fit(
    transcript: Transcript, evidence: Evidence, posterior: Posterior, seed: int = 0
) -> Check:
    """The check of a fit of bits or values."""
    every = max(1, len(posterior.samples) // LOOKED_AT)
    samples = posterior.samples[::every]
    with one_thread():
        inflation, freedom = 1.0, 1
        if evidence.noise.reach is None:
            inflation, freedom = _inflation(evidence, samples, transcript.blocks)
        off = _compared(transcript, evidence, samples, np.random.default_rng([seed, 12]))
    unknown = posterior.per_person_chance if evidence.noise.per_person is UNKNOWN else 0.0
    alone = unknown / (evidence.n // transcript.blocks + 2)
    return Check(inflation, float(np.sqrt(2 / max(freedom, 1))), off, alone)


def _compared(
    transcript: Transcript,
    evidence: Evidence,
    samples: Sequence[Sample],
    rng: np.random.Generator,
) -> dict[str, float]:
    """By how many deviations each figure of the real answers is off those drawn."""
    if evidence.noise.reach == 0 or transcript.b.size < LEAST_RESIDUALS:
        return {}
    replay = Replay(transcript, evidence.noise, evidence.whole)
    halves = Halves.of(transcript)
    seen = [_Residuals.of(transcript, sample, halves) for sample in samples]
    drawn = [
        _Residuals.of(replay.answered(sample.counted, sample.values, rng), sample, halves)
        for sample in samples
        for _ in range(DRAWN)
    ]
    drawn = [each for each in drawn if each.left.size >= LEAST_RESIDUALS]
    if not drawn:
        return {}
    law = np.sort(np.concatenate([each.left for each in drawn]))
    off = {}
    for name in FIGURES:
        real = np.mean([each.figure(name, law) for each in seen])
        like = np.array([each.figure(name, law) for each in drawn])
        off[name] = float((real - like.mean()) / max(like.std(), 1e-9)) if like.std() else 0.0
    return off


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What a sample leaves over of released answers, in SDs, with the sizes and counts they had.

    ``hidden`` is the share of answers that are suppressed, ``apart`` how far people count otherwise
    in the later half of the answers.
    """

    left: NDArray[np.float64]
    sizes: NDArray[np.float64]
    counts: NDArray[np.float64]
    hidden: float
    apart: float

    @classmethod
    def of(cls, transcript: Transcript, sample: Sample, halves: Halves) -> "_Residuals":
        x, shown = sample.counted, transcript.released
        counts, scale = transcript.counts(x), float(sample.values.sigma.mean())
        left = transcript.residuals(x) - sample.values.offsets[transcript.about[shown]]
        sizes = transcript.queries.sizes
        hidden, everywhere = float((~shown).mean()), np.zeros(len(transcript))
        everywhere[shown] = left
        apart = halves.apart(everywhere)
        return cls(left / scale, sizes[shown].astype(np.float64), counts[shown], hidden, apart)

    def figure(self, name: str, law: NDArray[np.float64]) -> float:
        """One of FIGURES; ``law`` are residuals of the model, in order."""
        match name:
            case "spread":
                return _distance(np.sort(self.left), law)
            case "turn":
                return _together(self.left[:-1], self.left[1:])
            case "size":
                return _together(self.left, self.sizes)
            case "count":
                return _together(self.left, self.counts)
            case "halves":
                return self.apart
        return self.hidden


def _distance(left: NDArray[np.float64], law: NDArray[np.float64]) -> float:
    """The largest distance between two distributions (Kolmogorov), both in order."""
    grid = np.unique(law[:: max(1, law.size // 2000)])
    own = np.searchsorted(left, grid, side="right") / left.size
    return float(np.abs(own - np.searchsorted(law, grid, side="right") / law.size).max())


def _together(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The correlation of two figures; 0 where one does not vary."""
    if min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _inflation(evidence: Evidence, samples: Sequence[Sample], blocks: int) -> tuple[float, int]:
    """The mean square of standardised sums of scores, and its freedom."""
    if evidence.is_gaussian:
        return _by_sums(Gram.of(evidence, blocks), samples)
    squares, freedom = _by_table(evidence, samples)
    # Answers that say less already need not say less again.
    return squares * evidence.noise.effective, freedom


def _by_sums(gram: Gram, samples: Sequence[Sample]) -> tuple[float, int]:
    squares, freedom = [], 0
    for sample in samples:
        values, x = sample.values, sample.counted
        weighed = gram.weighed(1 / values.sigma**2, values.per_person)
        eigenvalues = weighed.eigen[0]
        variance = eigenvalues / (1 + values.per_person**2 * eigenvalues)
        moved = weighed.turned(weighed.with_b - gram.to_bits(values.offsets) * weighed.with_one)
        left = moved - variance * weighed.turned(x)
        there = variance > FLAT * max(float(variance.max()), FLAT)
        freedom = int(there.sum())
        squares.append(float((left[there] ** 2 / variance[there]).mean()) if freedom else 1.0)
    return float(np.mean(squares)), freedom


def _by_table(evidence: Evidence, samples: Sequence[Sample]) -> tuple[float, int]:
    """The same under any noise; the information of an answer is that met on its line."""
    A = evidence.block(0, evidence.n)
    sums, met, often = [], np.zeros(evidence.lines), np.zeros(evidence.lines)
    for sample in samples:
        table = evidence.table(sample.values)
        slope = np.zeros_like(table)
        slope[:, 1:-1] = (table[:, :-2] - table[:, 2:]) / 2
        g = slope.ravel()[evidence.cells(sample.x)]
        sums.append(A.T @ g)
        met += np.bincount(evidence.line, g**2, evidence.lines)
        often += np.bincount(evidence.line, minlength=evidence.lines)
    information = np.divide(met, often, out=np.zeros_like(met), where=often > 0)
    values, vectors = np.linalg.eigh((A * information[evidence.line][:, None]).T @ A)
    there = values > FLAT * max(float(values[-1]), FLAT)
    if not there.any():
        return 1.0, 0
    squares = [((vectors[:, there].T @ s) ** 2 / values[there]).mean() for s in sums]
    return float(np.mean(squares)), int(there.sum())
