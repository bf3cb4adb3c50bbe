"""What the answers alone say about the system that gave them: no truth is needed.

The bits are fitted first, under noise that may be anything reasonable (``decoders.robust`` in the
small: gross errors, an offset); what the fit leaves over is the noise. Every verdict carries the
figure it rests on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from countleak.attack.noise import UNKNOWN, Noise, Shape, Threshold, Values, log_released
from countleak.attack.posterior.evidence import Evidence, are_whole, gather
from countleak.attack.posterior.fit import Starts, fit_bits, quick_starts
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.programs import Objective, Problem, Status
from countleak.attack.solvers.highs import Highs
from countleak.attack.transcript import Transcript
from countleak.errors import InputError

# Fewer answers per person than this leave no residuals to speak of.
ENOUGH = 1.2
# A group of queries is odd when its noise is this much larger than the typical group's ...
ODD = 1.25
# ... and chance alone would make it so less often than this.
ODDS = 1e-3
# Systems that raise low answers raise them to no more than this.
LOW = 5
# An offset this many standard errors from 0 is there.
SURELY = 2.5
# Share of grossly wrong answers below which none is believed to be there.
FEW_WRONG = 0.004


@dataclass(frozen=True)
class Group:
    """Queries that share a value of a parameter: their noise, and whether it is odd."""

    value: float
    answers: int
    sigma: float
    odd: bool


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """A system's character, read from ``answers`` answers about ``people`` people.

    ``sigma`` and ``offset`` come with standard errors; ``kurtosis`` of the residuals is 3 for
    Gaussian, 6 for Laplace, 1.8 for uniform noise. ``bound`` is the largest distance of an answer
    from its count, where there is one, ``base`` what answers are multiples of. ``by`` names the
    parameter that tells groups of unequal noise apart. ``sticky`` says whether equal questions got
    equal answers, None where no question was asked twice. ``residuals`` (k,) are kept for plots,
    ``starts`` for a decoder, which need not work them out again.
    """

    people: int
    answers: int
    suppressed: int
    shape: Shape
    sigma: float
    sigma_error: float
    offset: float
    offset_error: float
    kurtosis: float
    wrong: float
    whole: bool
    bound: float | None = None
    base: int | None = None
    floor: float | None = None
    threshold: Threshold | None = None
    by: str | None = None
    groups: tuple[Group, ...] = ()
    sticky: bool | None = None
    repeated: int = 0
    residuals: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    starts: Starts = ()

    @property
    def has_offset(self) -> bool:
        """Whether the offset is more than chance."""
        return abs(self.offset) > SURELY * self.offset_error

    @property
    def law(self) -> str:
        """The noise in words."""
        size = f"SD {self.sigma:.2f} ± {self.sigma_error:.2f}"
        if self.shape is Shape.ROUNDED:
            return f"rounding to multiples of {self.base}, within {self.bound:g} of the count"
        if self.shape is Shape.UNIFORM:
            return f"uniform within ± {self.bound:g} ({size}, kurtosis {self.kurtosis:.1f})"
        return f"{self.shape.value}, {size} (kurtosis {self.kurtosis:.1f})"

    def __str__(self) -> str:
        offset = f"{self.offset:+.2f} ± {self.offset_error:.2f}"
        return (
            f"{self.answers} answers about {self.people} people, {self.suppressed} suppressed: "
            f"noise {self.law}, {'offset' if self.has_offset else 'no offset'} ({offset}), "
            f"{self.wrong:.1%} grossly wrong."
        )

    __repr__ = __str__

    @property
    def odd(self) -> tuple[Group, ...]:
        """The groups that do not fit with the others."""
        return tuple(group for group in self.groups if group.odd)


def diagnose(transcript: Transcript, *, seed: int = 0) -> Diagnosis:
    """The character of the system that answered."""
    n, released, values = transcript.ids.size, transcript.released, transcript.b
    if released.sum() < ENOUGH * n:
        raise InputError(
            f"{released.sum()} released answers about {n} people leave nothing over to judge the "
            f"noise by; ask at least {int(ENOUGH * n) + 1}"
        )
    whole = are_whole(values)
    base = _base(values) if whole else None
    floor = lowest_answer(values)
    threshold = None if released.all() else Threshold()
    noise = Noise(UNKNOWN, UNKNOWN, UNKNOWN, floor=floor, threshold=threshold)
    starts = quick_starts(transcript, noise)
    evidence = gather(transcript, noise)
    rng = np.random.default_rng([seed, 6])
    fit = fit_bits(
        transcript, evidence, rng, effort=Effort(2, 3, 60, 50), starts=starts, histogram=True
    )
    if threshold is not None:
        threshold = _threshold(transcript, fit)
    residual = values - transcript.A @ fit.probability - fit.values.offset
    sigma, kurtosis, error = _moments(evidence, fit, residual)
    by, groups = _groups(transcript, residual)
    offset, offset_error = _offset(transcript, residual, sigma, fit, by, starts, seed)
    bound = _bound(transcript, base, sigma, kurtosis)
    shape = Shape.GAUSSIAN
    if bound is not None:
        shape = Shape.UNIFORM if base is None else Shape.ROUNDED
    elif _is_laplace(evidence, fit):
        shape = Shape.LAPLACE
    wrong = fit.values.wrong if fit.values.wrong > FEW_WRONG and shape is Shape.GAUSSIAN else 0.0
    sticky, repeated = _stickiness(transcript)
    return Diagnosis(
        n, len(transcript), int((~released).sum()), shape, sigma, error,
        offset, offset_error, kurtosis, wrong, whole, bound, base, floor, threshold, by, groups,
        sticky, repeated, residual, starts,
    )  # fmt: skip


def _base(values: NDArray[np.float64]) -> int | None:
    """What all answers are multiples of, if it is 2 or more."""
    if values.size < 20:
        return None
    base = int(np.gcd.reduce(np.abs(values).astype(np.int64)))
    return base if base >= 2 else None


def lowest_answer(values: NDArray[np.float64]) -> float | None:
    """The lowest answer the system gives, where answers pile up at it or none falls below 0."""
    lowest = float(values.min())
    at, next_up = int((values == lowest).sum()), int((values == lowest + 1).sum())
    if at > values.size / 2:
        return None
    piled = 0 < lowest <= LOW and at >= 5 and at > 3 * next_up
    return lowest if lowest == 0 or piled else None


def _threshold(transcript: Transcript, fit: Posterior) -> Threshold:
    """The likeliest mean of the threshold, given the counts that the fit believes in."""
    counts = transcript.queries.dot(fit.probability)
    hidden, shown = counts[~transcript.released], counts[transcript.released]
    # The fitted counts are themselves off by about one person.
    blurred = [Threshold(mean, 1.0, 0.0) for mean in np.arange(0.5, 20.01, 0.25).tolist()]
    return Threshold(
        max(
            blurred, key=lambda t: t.log_suppressed(hidden).sum() + t.log_released(shown).sum()
        ).mean
    )


def _offset(
    transcript: Transcript,
    residual: NDArray[np.float64],
    sigma: float,
    fit: Posterior,
    by: str | None,
    starts: Starts,
    seed: int,
) -> tuple[float, float]:
    """What all answers are off by, and its error: from those that are wholly Gaussian.

    Where low counts are suppressed the answers that remain are off for that reason alone, and the
    fit that knows it is believed.
    """
    near = np.abs(residual) < 5 * sigma
    if not transcript.released.all() or near.sum() < ENOUGH * transcript.ids.size:
        return fit.values.offset, fit.offset_sd
    kept = transcript.where(near)
    noise = Noise(UNKNOWN, UNKNOWN, 0.0, None if by is None else kept.queries.groups_by(by))
    rng = np.random.default_rng([seed, 7])
    refined = fit_bits(kept, gather(kept, noise), rng, effort=Effort(2, 3, 60, 150), starts=starts)
    return refined.values.offset, refined.offset_sd


def _moments(
    evidence: Evidence, fit: Posterior, residual: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Noise SD, kurtosis and the SD's error, from residuals met while sampling.

    Samples of the bits leave residuals as large as the noise; their mean would fit too well.
    """
    met = fit.residuals[: evidence.fractions]
    whole = np.arange(-evidence.reach, evidence.reach + 1)[None, :]
    distance = whole + (np.arange(evidence.fractions) / evidence.fractions)[:, None]
    away = distance - fit.values.offset
    # What counts as grossly wrong is told apart from noise by distance.
    near = np.abs(away) < (6.0 if fit.values.wrong > FEW_WRONG else 20.0) * fit.values.sigma[0]
    weight = np.where(near, met, 0.0) if (near & (met > 0)).any() else met
    total = weight.sum()
    mean = (weight * away).sum() / total
    variance = max(float((weight * (away - mean) ** 2).sum() / total), 1e-6)
    kurtosis = float((weight * (away - mean) ** 4).sum() / total / variance**2)
    sigma = float(np.sqrt(variance))
    return sigma, kurtosis, float(sigma * np.sqrt(max(kurtosis - 1, 0.1) / 4 / residual.size))


def _is_laplace(evidence: Evidence, fit: Posterior) -> bool:
    """Whether Laplace noise explains the residuals better than Gaussian with gross errors."""
    met = fit.residuals[: evidence.fractions]
    distance = np.arange(-evidence.reach, evidence.reach + 1, dtype=np.float64)
    shift = np.arange(evidence.fractions) / evidence.fractions

    def likelihood(values: Values, shape: Shape) -> float:
        lines = [log_released(distance + s, values, shape, evidence.whole)[0] for s in shift]
        return float((met * np.array(lines)).sum())

    gaussian = likelihood(fit.values, Shape.GAUSSIAN)
    scales = float(fit.values.sigma[0]) * np.geomspace(0.7, 1.6, 19)
    laplace = max(
        likelihood(Values(np.array([s]), fit.values.offset, 0.0), Shape.LAPLACE) for s in scales
    )
    return laplace > gaussian + 3


def _groups(
    transcript: Transcript, residual: NDArray[np.float64]
) -> tuple[str | None, tuple[Group, ...]]:
    """The parameter by whose values the noise differs most, if by more than chance."""
    tame = np.clip(residual, -4 * residual.std(), 4 * residual.std())
    labels = {
        name: values[transcript.released]
        for name, values in transcript.queries.parameters.items()
        if values.dtype.kind in "iuf"
    }
    most = max(2, min(60, tame.size // 15))
    labels = {name: at for name, at in labels.items() if 2 <= np.unique(at).size <= most}
    best, limit = None, ODDS / max(1, len(labels))
    for name, at in labels.items():
        p = _unequal(tame, at)
        if p < limit:
            best, limit = name, p
    return (None, ()) if best is None else (best, tuple(_noise_of_groups(tame, labels[best])))


def _unequal(residual: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    """The chance of such unequal variances among groups of equal noise (likelihood ratio)."""
    parts = [residual[labels == value] for value in np.unique(labels)]
    common = (residual**2).mean()
    ratio = sum(part.size * np.log(common / max((part**2).mean(), 1e-9)) for part in parts)
    return float(chdtrc(len(parts) - 1, max(ratio, 0.0)))


def _noise_of_groups(residual: NDArray[np.float64], labels: NDArray[np.float64]) -> Iterator[Group]:
    values = np.unique(labels)
    variance = np.array([(residual[labels == value] ** 2).mean() for value in values])
    usual = float(np.median(variance))
    for value, own in zip(values.tolist(), variance, strict=True):
        size = int((labels == value).sum())
        chance = fdtrc(size, max(residual.size - size, 1), own / usual)
        odd = bool(np.sqrt(own / usual) > ODD and chance < ODDS)
        yield Group(value, size, float(np.sqrt(own)), odd)


def _bound(transcript: Transcript, base: int | None, sigma: float, kurtosis: float) -> float | None:
    """The hard bound of the noise, if the residuals look like one and the answers allow it.

    Rounding to a base leaves half of it, or all but one where it is random. Noise uniform on the
    whole numbers within ± e has SD sqrt(e (e + 1) / 3) and kurtosis below 1.8.
    """
    A, b = transcript.A, transcript.b
    if base is not None:
        for bound in (base // 2, base - 1):
            if bound and _allows(A, b, bound):
                return float(bound)
        return None
    surprise = (3.0 - kurtosis) / np.sqrt(24 / b.size)
    if kurtosis > 2.5 or surprise < 3:
        return None
    likely = max(1, round(np.sqrt(0.25 + 3 * sigma**2) - 0.5))
    for bound in range(likely, likely + 3):
        if _allows(A, b, bound):
            return float(bound)
    return None


def _allows(A: NDArray[np.int8], b: NDArray[np.float64], bound: float) -> bool:
    """Whether any x of the box keeps all residuals within the bound."""
    problem = Problem(A, b, Objective.NONE, float(bound))
    return Highs().solve(problem).status is Status.FEASIBLE


def _stickiness(transcript: Transcript) -> tuple[bool | None, int]:
    """Whether equal questions got equal answers, and how many were asked again."""
    queries = transcript.queries
    answers: dict[tuple[object, ...], list[float]] = {}
    for at, value in enumerate(transcript.values.tolist()):
        # Two questions about the same people are not one: noise may depend on the words.
        words = tuple(values[at] for values in queries.parameters.values())
        question = (queries.matrix[at].tobytes(), int(transcript.about[at]), words)
        answers.setdefault(question, []).append(value)
    again = [values for values in answers.values() if len(values) > 1]
    if not again:
        return None, 0
    same = sum(len({repr(v) for v in values}) == 1 for values in again)
    return same > 0.9 * len(again), sum(len(values) - 1 for values in again)
