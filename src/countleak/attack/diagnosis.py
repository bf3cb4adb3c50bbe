"""What the answers alone say about the system that gave them: no truth is needed.

The bits are fitted first, under noise that may be anything reasonable (``decoders.robust`` in the
small: gross errors, an offset); what the fit leaves over is the noise. Every verdict carries the
figure it rests on.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.correlation import (
    MOST_ANSWERS,
    MOST_WHITENED,
    distinct,
    find_shared,
    innovations,
    repeats,
)
from countleak.attack.covariance import Shared, effective_share
from countleak.attack.groups import Group, group_labels, unequal_groups
from countleak.attack.law import Fit, choose_law, fit_normal, is_rounded_down, refitted
from countleak.attack.noise import DOWN, UNKNOWN, Below, Noise, Range, Shape, Threshold
from countleak.attack.posterior.evidence import are_whole, gather
from countleak.attack.posterior.fit import Starts, fit_secrets, quick_starts
from countleak.attack.posterior.sampling import Effort, Posterior
from countleak.attack.queries import Queries
from countleak.attack.readings import zeros_hidden
from countleak.attack.rules import Rules
from countleak.attack.transcript import Transcript
from countleak.errors import InputError
from countleak.progress import Progress, silent

# Fewer answers per person than this leave no residuals to speak of.
ENOUGH = 1.2
# An offset this many standard errors from 0 is there.
SURELY = 2.5
# Errors per person are reckoned with unless their chance is smaller.
PERHAPS = 0.05
# An error per person with a smaller SD is not worth a word.
NEXT_TO_NONE = 0.05
# Share of grossly wrong answers below which none is believed to be there.
FEW_WRONG = 0.004


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """A system's character, read from ``answers`` answers about ``people`` people.

    ``noise`` is what a decoder should assume. ``sigma`` and ``offset`` come with standard errors;
    ``kurtosis`` of the residuals is 3 for Gaussian, 6 for Laplace, 1.8 for uniform noise. ``by``
    names the parameter that tells groups of unequal noise apart, which may be the value asked
    about; each value has an offset, and ``offset`` is that which is most certain. ``sticky`` says
    whether equal questions got equal answers, None where no question was asked twice; all else is
    read from distinct ones then. ``shared`` is noise that answers have in common, ``per_person``
    the SD of an error that a person brings to every count, ``per_one`` that of one that only
    whoever counts brings, ``twice`` how many people are counted twice, ``per_person_chance`` that
    of there being any of these, and ``effective`` how much an answer says, next to one with noise
    of its own.
    ``residuals`` (k,) are kept for plots, ``starts`` for a decoder, which need not work them out
    again.
    """

    people: int
    answers: int
    suppressed: int
    noise: Noise
    sigma: float
    sigma_error: float
    offset: float
    offset_error: float
    kurtosis: float
    wrong: float
    whole: bool
    by: str | None = None
    groups: tuple[Group, ...] = ()
    sticky: bool | None = None
    repeated: int = 0
    shared: tuple[Shared, ...] = ()
    per_person: float = 0.0
    per_person_chance: float = 0.0
    effective: float = 1.0
    residuals: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    starts: Starts = ()
    per_one: float = 0.0
    twice: float = 0.0

    @property
    def has_offset(self) -> bool:
        """Whether the offset is more than chance."""
        return abs(self.offset) > SURELY * self.offset_error

    @property
    def has_errors_per_person(self) -> bool:
        """Whether an error per person is likelier than none."""
        return self.per_person_chance > 0.5

    @property
    def errors_per_person(self) -> str:
        """What people bring to every count besides their bit, in words."""
        parts = []
        if self.twice >= 0.5:
            parts.append(f"about {self.twice:.0f} of the people counted twice")
        if self.per_one >= max(self.per_person, NEXT_TO_NONE):
            parts.append(f"errors per person who counts of SD {self.per_one:.2f}")
        elif self.per_person >= NEXT_TO_NONE or not parts:
            parts.append(f"errors per person of SD {self.per_person:.2f}")
        return ", ".join(parts)

    @property
    def law(self) -> str:
        """The noise in words."""
        size = f"SD {self.sigma:.2f} ± {self.sigma_error:.2f}"
        shape, base = self.noise.shape, self.noise.base
        if shape is Shape.EXACT and base == 1:
            return "none: every answer is the exact count"
        if shape is Shape.EXACT:
            by_chance = " by chance" if self.noise.random_rounding else ""
            within = f"within {self.noise.reach} of the count"
            return f"rounding to multiples of {base}{by_chance}, {within}"
        if shape is Shape.UNIFORM:
            return f"uniform within ± {self.noise.bound} ({size}, kurtosis {self.kurtosis:.1f})"
        if self.noise.mixture is not None:
            return f"mixed, {size}: in SDs, {self.noise.mixture}"
        rounded = f", rounded to multiples of {base}" if base > 1 else ""
        rounded += ", rounded down" if self.noise.offset == DOWN else ""
        return f"{shape.value}, {size} (kurtosis {self.kurtosis:.1f}){rounded}"

    @property
    def suppression(self) -> str:
        """What is suppressed, in words; empty where nothing is."""
        match self.noise.threshold:
            case Threshold(mean):
                return f"counts below about {mean:g} suppressed"
            case Range(low, high):
                return f"counts from {low} to {high} suppressed"
            case Below(answer):
                return f"answers below {answer:g} suppressed"
        return "what is suppressed says nothing of its count" if self.suppressed else ""

    def __str__(self) -> str:
        offset = f"{self.offset:+.2f} ± {self.offset_error:.2f}"
        return (
            f"{self.answers} answers about {self.people} people, {self.suppressed} suppressed: "
            f"noise {self.law}, {'offset' if self.has_offset else 'no offset'} ({offset}), "
            f"{self.wrong:.1%} grossly wrong."
        )

    __repr__ = __str__

    @property
    def reasons(self) -> list[str]:
        """What of it decides how to decode, in words."""
        reasons = [f"{self.noise.shape.value} noise of SD {self.sigma:.2f}"]
        if self.noise.base > 1:
            reasons.append(f"rounded to multiples of {self.noise.base}")
        if self.by is not None:
            odd = ", ".join(f"{group.value:g}" for group in self.odd)
            reasons.append(f"noise differs by {self.by}" + (f" (odd: {odd})" if odd else ""))
        if self.sticky:
            reasons.append(f"{self.repeated} answers repeat others")
        reasons += [str(shared) for shared in self.shared]
        if self.has_errors_per_person:
            reasons.append(self.errors_per_person)
        if self.wrong:
            reasons.append(f"{self.wrong:.1%} of the answers grossly wrong")
        if self.has_offset:
            reasons.append(f"all answers off by {self.offset:+.2f}")
        if self.suppression:
            reasons.append(self.suppression)
        return reasons

    @property
    def odd(self) -> tuple[Group, ...]:
        """The groups that do not fit with the others."""
        return tuple(group for group in self.groups if group.odd)


def diagnose(
    transcript: Transcript,
    rules: Rules | None = None,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Diagnosis:
    """The character of the system that answered; what ``rules`` state is taken as it is.

    Rounds of every fit that it takes are reported to ``progress``.
    """
    rules = rules or Rules()
    rules.check(transcript)
    everything = zeros_hidden(transcript, rules)
    transcript = distinct(everything, rules.sticky)
    n, released = transcript.ids.size, transcript.released
    if not tells_noise(transcript):
        raise InputError(
            f"{released.sum()} released answers about {n} people leave nothing over to judge the "
            f"noise by; ask at least {int(ENOUGH * n) + 1}"
        )
    normal = fit_normal(transcript, rules, np.random.default_rng([seed, 6]), progress)
    fit, starts = normal.posterior, normal.starts
    about = transcript.about[released]
    residual = transcript.residuals(fit.probability) - fit.values.offsets[about]
    sigma, kurtosis, error = _moments(normal)
    if normal.noise.clamps:
        # What is left of the residuals between limits is less than the noise.
        sigma = float(fit.values.sigma[0])
    parts = _answered(transcript, residual)
    most = max(len(queries) for queries, _ in parts)
    shared = find_shared(parts)
    new = [innovations(queries, left, shared) for queries, left in parts]
    by, groups = unequal_groups(transcript, np.concatenate(new), shared)
    if shared and most <= MOST_WHITENED:
        starts = quick_starts(transcript, replace(normal.noise, shared=shared))
    # What is grossly wrong has a law of its own.
    near = np.abs(residual) < 5 * sigma
    rng = np.random.default_rng([seed, 7])
    refined = _refined(transcript, near, normal, by, shared, starts, rng, progress) or fit
    offset, offset_error = _surest_offset(refined)
    noise = _law(transcript, rules, normal, by, sigma, kurtosis, progress)
    if isinstance(noise.threshold, Threshold) and rules.suppressed is None:
        noise = replace(noise, threshold=_threshold(transcript, fit))
    normal_law = noise.shape is Shape.GAUSSIAN
    wrong = fit.values.wrong if fit.values.wrong > FEW_WRONG and normal_law else 0.0
    # Every draw has errors of one kind alone.
    errors = refined.values.per_person + refined.values.per_one
    per_person = errors if refined.per_person_chance > 0.5 else 0.0
    leading = [queries.take(np.arange(min(len(queries), MOST_ANSWERS))) for queries, _ in parts]
    shares = [effective_share(queries, shared, sigma, per_person) for queries in leading]
    effective = float(np.mean(shares))
    if noise.reach is None:
        has_offset = abs(offset) > SURELY * offset_error
        noise = replace(
            noise,
            offset=UNKNOWN if has_offset else 0.0,
            wrong=UNKNOWN if wrong or noise.shape is Shape.MIXTURE else 0.0,
            groups=None if by is None else group_labels(transcript, by),
        )
        noise = _with_common(noise, shared, refined.per_person_chance, effective, most)
        no_other = not has_offset or abs(offset - DOWN) < SURELY * offset_error
        if no_other and is_rounded_down(transcript, noise, starts):
            noise = replace(noise, offset=DOWN)
    again = repeats(everything)
    return Diagnosis(
        n, len(everything), int((~everything.released).sum()), noise, sigma, error, offset,
        offset_error, kurtosis, wrong, are_whole(transcript.b), by, groups, again.sticky,
        again.again, shared, refined.values.per_person, refined.per_person_chance, effective,
        residual, starts, refined.values.per_one, refined.values.twice,
    )  # fmt: skip


def tells_noise(transcript: Transcript) -> bool:
    """Whether there are enough released answers about each value, or most, to judge noise by."""
    return bool(transcript.b.size >= ENOUGH * transcript.ids.size * max(transcript.blocks - 1, 1))


def _answered(
    transcript: Transcript, residual: NDArray[np.float64]
) -> list[tuple[Queries, NDArray[np.float64]]]:
    """The released queries about each value and what a fit left over of their answers."""
    about, answered = transcript.about[transcript.released], transcript.where(transcript.released)
    rows = [np.flatnonzero(about == v) for v in range(transcript.blocks)]
    return [(answered.queries.take(at), residual[at]) for at in rows if at.size]


def _law(
    transcript: Transcript,
    rules: Rules,
    normal: Fit,
    by: str | None,
    sigma: float,
    kurtosis: float,
    progress: Progress,
) -> Noise:
    """The law that is stated, or else the likeliest; limits and suppression are those fitted."""
    if rules.shape is not None:
        fitted = normal.noise
        return replace(
            rules.noise(), floor=fitted.floor, ceiling=fitted.ceiling, threshold=fitted.threshold
        )
    if by is not None:
        # Noise of several sizes looks like noise of another shape.
        alike = replace(normal.noise, groups=group_labels(transcript, by))
        normal = refitted(transcript, alike, normal.starts, histogram=True, progress=progress)
    return choose_law(transcript, normal, sigma, kurtosis, progress)


def _surest_offset(fit: Posterior) -> tuple[float, float]:
    """Of the offsets of all values the one furthest from 0 in standard errors, and its error."""
    offsets, errors = fit.values.offsets, fit.offset_sd
    at = int(np.argmax(np.abs(offsets) / np.maximum(errors, 1e-9)))
    return float(offsets[at]), float(errors[at])


def _with_common(
    noise: Noise, shared: tuple[Shared, ...], per_person: float, effective: float, answers: int
) -> Noise:
    """The noise with what answers have in common; where that cannot be modelled, they say less.

    Where all is Gaussian the sampler weighs by itself whether there is an offset, or, with the
    chance ``per_person``, an error per person.
    """
    shown = noise.threshold is None and not noise.clamps
    plain = shown and noise.shape is Shape.GAUSSIAN and noise.wrong == 0.0 and noise.base == 1
    if not plain or answers > MOST_WHITENED:
        return replace(noise, offset=UNKNOWN if plain else noise.offset, effective=effective)
    errors = UNKNOWN if per_person > PERHAPS else 0.0
    return replace(noise, offset=UNKNOWN, shared=shared, per_person=errors)


def _threshold(transcript: Transcript, fit: Posterior) -> Threshold:
    """The likeliest mean of the threshold, given the counts that the fit believes in."""
    counts = transcript.counts(fit.probability)
    hidden, shown = counts[~transcript.released], counts[transcript.released]
    # The fitted counts are themselves off by about one person.
    blurred = [Threshold(mean, 1.0, 0.0) for mean in np.arange(0.5, 20.01, 0.25).tolist()]
    return Threshold(
        max(
            blurred, key=lambda t: t.log_suppressed(hidden).sum() + t.log_released(shown).sum()
        ).mean
    )


def _refined(
    transcript: Transcript,
    near: NDArray[np.bool_],
    normal: Fit,
    by: str | None,
    shared: tuple[Shared, ...],
    starts: Starts,
    rng: np.random.Generator,
    progress: Progress,
) -> Posterior | None:
    """A fit of the ``near`` answers, those wholly Gaussian: an offset, and errors per person.

    Where low counts are suppressed or raised the answers are off for that reason alone, and there
    is none.
    """
    shown = transcript.released.all() and not normal.noise.clamps
    if not shown or not near.any() or not tells_noise(transcript.where(near)):
        return None
    kept = transcript.where(near)
    noise = Noise(
        UNKNOWN,
        UNKNOWN,
        0.0,
        None if by is None else group_labels(kept, by),
        shared=shared if np.bincount(kept.about).max() <= MOST_WHITENED else (),
        per_person=UNKNOWN,
    )
    return fit_secrets(
        kept, gather(kept, noise), rng,
        effort=Effort(2, 3, 60, 150), starts=starts, progress=progress,
    )  # fmt: skip


def _moments(normal: Fit) -> tuple[float, float, float]:
    """Noise SD, kurtosis and the SD's error, from residuals met while sampling.

    Samples of the bits leave residuals as large as the noise; their mean would fit too well.
    """
    fit, (distance, met) = normal.posterior, normal.residuals
    away = distance - fit.values.offset
    # What counts as grossly wrong is told apart from noise by distance.
    near = np.abs(away) < (6.0 if fit.values.wrong > FEW_WRONG else 20.0) * fit.values.sigma[0]
    weight = np.where(near, met, 0.0) if (near & (met > 0)).any() else met
    total = weight.sum()
    mean = (weight * away).sum() / total
    variance = max(float((weight * (away - mean) ** 2).sum() / total), 1e-6)
    kurtosis = float((weight * (away - mean) ** 4).sum() / total / variance**2)
    sigma = float(np.sqrt(variance))
    return sigma, kurtosis, float(sigma * np.sqrt(max(kurtosis - 1, 0.1) / 4 / met.sum()))
