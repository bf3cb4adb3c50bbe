"""Which law the noise follows: every candidate is fitted, and the answers decide by likelihood.

A bound that some bits happen to keep to is no law: with few answers per person there are bits for
almost any. A bounded law is believed where it makes the answers likelier than normal noise,
rounded to the same base, by more than chance would; so is a mixture, which can have any shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.mixture import FittedMixture, fit_mixture
from countleak.attack.noise import (
    DOWN,
    LARGEST_STEP,
    UNKNOWN,
    Noise,
    Shape,
    Values,
    log_released,
)
from countleak.attack.posterior.evidence import Evidence, are_whole, gather
from countleak.attack.posterior.fit import Starts, fit_secrets, quick_starts
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.programs import Objective, Problem, Status
from countleak.attack.readings import readings
from countleak.attack.rules import Rules
from countleak.attack.solvers.highs import Highs
from countleak.attack.transcript import Transcript
from countleak.progress import Progress, silent

# A mixture is fitted to residuals so many times, each time under the one before.
SHARPENED = 3
# Residuals of more SDs are gross errors, not noise.
WIDEST = 8.0
# Nats by which a bounded law must lead, and by which Laplace noise must.
LEAD, SHARPER = 6.0, 3.0
# Residuals of more kurtosis are not those of uniform noise, unless answers are few ...
FLAT = 2.5
# ... per person, where residuals are blurred by what is not known of the bits.
FEW = 4.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A law as ``noise``, and the posterior under it."""

    noise: Noise
    evidence: Evidence
    posterior: Posterior
    starts: Starts

    @property
    def residuals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Residuals (k,), in people, of answers that were neither clamped nor suppressed.

        And how often (k,) each was met, on average over samples.
        """
        distance, often = self.by_source
        return distance.ravel(), often.ravel()

    @property
    def by_source(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same by source, (s, k) each; residuals as if all had the mean offset and SD."""
        e, values = self.evidence, self.posterior.values
        whole = np.arange(-e.reach, e.reach + 1, dtype=np.float64)
        shift = np.arange(e.fractions) / e.fractions
        apart = (values.offset - values.offsets)[e.part_of]
        met = self.posterior.residuals[: e.part_of.size * e.fractions]
        # Around the offset; noise of another size is brought to the same.
        size = (values.sigma.mean() / values.sigma)[e.group_of]
        away = (whole[None, :] + shift[:, None]).ravel() + apart[:, None] - values.offset
        distance = values.offset + away * size[:, None]
        return distance, met.reshape(e.part_of.size, -1)


def fit_normal(
    transcript: Transcript, rules: Rules, rng: np.random.Generator, progress: Progress = silent
) -> Fit:
    """The fit of normal noise, with gross errors and an offset, that makes the answers likeliest.

    What is not stated of the lowest answer and of suppression is read off the answers; where two
    readings are possible both are fitted. Rounds of each fit are reported to ``progress``.
    """
    fits = []
    starts: Starts = ()
    for noise, pattern in readings(transcript, rules):
        starts = starts or quick_starts(transcript, noise)
        evidence = gather(transcript, noise)
        posterior = fit_secrets(
            transcript, evidence, rng,
            effort=_effort(transcript), starts=starts, histogram=True, progress=progress,
        )  # fmt: skip
        fits.append((posterior.evidence + pattern, Fit(noise, evidence, posterior, starts)))
    return max(fits, key=lambda fit: fit[0])[1]


def choose_law(
    transcript: Transcript,
    normal: Fit,
    sigma: float,
    kurtosis: float,
    progress: Progress = silent,
) -> Noise:
    """The law of the noise: that of ``normal``, Laplace, or a bounded one if the answers say so.

    ``sigma`` and ``kurtosis`` are those of the residuals of ``normal``. Rounds of each fit are
    reported to ``progress``.
    """
    best, most = normal.noise, normal.posterior.evidence + LEAD
    for noise in _candidates(transcript, normal.noise, sigma, kurtosis):
        fit = refitted(transcript, noise, normal.starts, progress=progress).posterior
        if fit.evidence > most:
            best, most = noise, fit.evidence
    laplace = _gain_of_laplace(normal) if normal.noise.base == 1 else 0.0
    mixed = _mixed(transcript, normal, laplace, progress)
    if mixed is not None and mixed[1] > most:
        return mixed[0]
    if best is normal.noise and laplace > SHARPER:
        return replace(best, shape=Shape.LAPLACE, wrong=0.0)
    return best


def is_rounded_down(transcript: Transcript, noise: Noise, starts: Starts) -> bool:
    """Whether whole answers with Laplace noise were rounded down rather than to the nearest.

    Bits can hide that: one person fewer is half a person less in a count of a random half. So both
    are fitted. Of normal noise the sampler itself weighs whether there is an offset.
    """
    if noise.shape is not Shape.LAPLACE or noise.base > 1 or not are_whole(transcript.b):
        return False
    nearest, down = (
        refitted(transcript, replace(noise, offset=offset), starts) for offset in (0.0, DOWN)
    )
    return down.posterior.evidence > nearest.posterior.evidence


def refitted(
    transcript: Transcript,
    noise: Noise,
    starts: Starts,
    histogram: bool = False,
    progress: Progress = silent,
) -> Fit:
    """The fit of another law, from the starts of the first."""
    rng, evidence = np.random.default_rng(8), gather(transcript, noise)
    posterior = fit_secrets(
        transcript,
        evidence,
        rng,
        effort=_effort(transcript),
        starts=starts,
        histogram=histogram,
        progress=progress,
    )
    return Fit(noise, evidence, posterior, starts)


def _mixed(
    transcript: Transcript, normal: Fit, laplace: float, progress: Progress
) -> tuple[Noise, float] | None:
    """A mixture and its evidence, less the price of its parameters, where it may explain more.

    Residuals of the normal fit are blurred by bits in doubt, those of the mixture's less.
    """
    noise = normal.noise
    few = transcript.b.size < FEW * transcript.ids.size * transcript.blocks
    if few or noise.base > 1 or noise.clamps:
        return None
    fit, fitted = normal, _mixture_of(normal)
    if fitted.gain <= max(LEAD, laplace + SHARPER):
        return None
    for _ in range(SHARPENED):
        law = replace(
            noise, sigma=UNKNOWN, wrong=UNKNOWN, shape=Shape.MIXTURE, mixture=fitted.mixture
        )
        fit = refitted(transcript, law, normal.starts, histogram=True, progress=progress)
        fitted = _mixture_of(fit)
    return fit.noise, fit.posterior.evidence - fitted.price


def _mixture_of(fit: Fit) -> FittedMixture:
    """The mixture that the residuals of a fit speak for."""
    distance, often = fit.residuals
    away = np.abs(distance - fit.posterior.values.offset)
    # What is grossly wrong has a law of its own.
    near = away < WIDEST * fit.posterior.values.sigma.mean()
    return fit_mixture(distance[near], often[near])


def _effort(transcript: Transcript) -> Effort:
    few = transcript.released.sum() < FEW * transcript.ids.size * transcript.blocks
    return Effort(2, 6, 80, 60) if few else Effort(2, 3, 60, 50)


def _bounded(noise: Noise, shape: Shape, bound: int | None = None, random: bool = False) -> Noise:
    return replace(
        noise, sigma=UNKNOWN, offset=0.0, wrong=0.0, shape=shape, bound=bound,
        random_rounding=random,
    )  # fmt: skip


def _candidates(
    transcript: Transcript, normal: Noise, sigma: float, kurtosis: float
) -> Iterator[Noise]:
    """Bounded laws that the answers allow: rounding alone, or uniform noise.

    Noise uniform on the whole numbers within ± e has SD sqrt(e (e + 1) / 3) and kurtosis below 1.8.
    """
    laws: list[Noise] = []
    if normal.base > 1:
        laws = [_bounded(normal, Shape.EXACT, random=random) for random in (False, True)]
    elif _may_be_flat(transcript, kurtosis):
        likely = max(1, round(np.sqrt(0.25 + 3 * sigma**2) - 0.5))
        bounds = range(max(likely - 1, 1), min(likely + 2, LARGEST_STEP) + 1)
        laws = [_bounded(normal, Shape.UNIFORM, bound) for bound in bounds]
    allowed = 0
    for noise in laws:
        assert noise.reach is not None
        if allowed < 2 and _allows(transcript, noise.reach):
            allowed += 1
            yield noise


def _may_be_flat(transcript: Transcript, kurtosis: float) -> bool:
    answers = transcript.b.size
    if answers < FEW * transcript.ids.size * transcript.blocks:
        return kurtosis < 3
    return kurtosis < FLAT and (3 - kurtosis) / np.sqrt(24 / answers) > 3


def _allows(transcript: Transcript, bound: float) -> bool:
    """Whether any x of the box keeps all residuals within the bound."""
    A = transcript.over_bits[transcript.released]
    problem = Problem(A, transcript.b, Objective.NONE, float(bound))
    return Highs().solve(problem).status is Status.FEASIBLE


def log_chance_of_exact(transcript: Transcript) -> float:
    """The log of how many random secrets of everyone would give any whole answers exactly.

    A count of w people of whom each has the value with probability p has variance w p (1 - p), and
    its likeliest value the chance 1/sqrt(2 pi) over the SD.
    """
    questions = np.column_stack([transcript.about[transcript.released], transcript.A])
    distinct = np.unique(questions, axis=0)[:, 1:].astype(np.int64)
    rate = 1 / max(transcript.blocks, 2)
    variance = np.maximum(np.abs(distinct).sum(axis=1), 1) * rate * (1 - rate)
    chances = np.maximum(0.5 * np.log(2 * np.pi * variance), 0.0)
    return float(transcript.ids.size * np.log(1 / rate) - chances.sum())


def _gain_of_laplace(normal: Fit) -> float:
    """By how many nats Laplace noise explains residuals better than normal with gross errors."""
    evidence, fit = normal.evidence, normal.posterior
    distance, often = normal.residuals

    def likelihood(values: Values, noise: Noise) -> float:
        return float(often @ log_released(distance, values, noise, evidence.whole)[0])

    gaussian = likelihood(fit.values, Noise())
    scales = float(fit.values.sigma.mean()) * np.geomspace(0.7, 1.6, 19)
    laplace = Noise(shape=Shape.LAPLACE)
    of_scale = (replace(fit.values, sigma=np.array([s]), wrong=0.0) for s in scales)
    return max(likelihood(values, laplace) for values in of_scale) - gaussian
