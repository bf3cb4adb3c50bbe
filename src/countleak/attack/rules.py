"""What is stated of a system, and what that leaves possible.

Whoever runs a system knows what it does with a count; an attacker may have read it in its manual.
Decoders use exactly what is stated and infer the rest. Only from stated rules is anything *proven*;
what follows from inferred ones is *implied*, if they are right.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from countleak.attack.noise import (
    DOWN,
    UNKNOWN,
    Below,
    Noise,
    Range,
    Shape,
    Suppression,
    Threshold,
    Unknown,
)
from countleak.attack.perturbation import Perturbation
from countleak.attack.solvers.intervals import CountIntervals
from countleak.attack.transcript import Transcript
from countleak.errors import InputError

# How laws are called in a sentence.
NAMES = {Shape.GAUSSIAN: "normal", Shape.LAPLACE: "Laplace", Shape.MIXTURE: "of no simple shape,"}
# An end of an interval that is nearer to a whole number than this may be that number.
EDGE = 1e-6


@dataclass(frozen=True)
class Rules:
    """What a system does with a count, as far as it is stated; None where it is not.

    ``shape`` is the law of its noise, with ``sigma`` its SD or ``bound`` the largest it can be; a
    bound alone says nothing else of the law. Answers are rounded to the nearest multiple of
    ``base``, or up or down by chance. ``suppressed`` says which counts are not answered, ``floor``
    is the lowest answer given. ``sticky`` noise is the same for a question asked again, and with
    ``keys`` it is the same for any question about the same people.
    """

    shape: Shape | None = None
    sigma: float | None = None
    bound: float | None = None
    base: int | None = None
    random_rounding: bool = False
    suppressed: Suppression | None = None
    floor: float | None = None
    sticky: bool | None = None
    keys: Perturbation | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None and self.shape is None:
            object.__setattr__(self, "shape", Shape.GAUSSIAN)
        if self.sigma is not None and self.shape in (Shape.UNIFORM, Shape.EXACT):
            raise InputError(f"{self.shape.value} noise has no SD to state")
        if self.keys is not None:
            object.__setattr__(self, "shape", Shape.UNIFORM)
            object.__setattr__(self, "bound", float(self.keys.bound))
        if self.random_rounding and self.base is None:
            raise InputError("random rounding needs the base that answers are multiples of")
        self.noise()
        self.limits()

    def noise(self) -> Noise:
        """The noise that is stated; where no law is, normal noise of unknown size."""
        sigma: float | Unknown = UNKNOWN if self.sigma is None else self.sigma
        is_open = self.shape is None
        return Noise(
            sigma,
            shape=self.shape or Shape.GAUSSIAN,
            floor=self.floor,
            threshold=self.suppressed,
            bound=None if is_open else self.bound,
            base=1 if self.base is None else self.base,
            # How normal noise is rounded makes no difference to speak of.
            random_rounding=self.random_rounding and not is_open,
        )

    def limits(self) -> Noise | None:
        """What is stated of how far answers can be from their counts; None where nothing is."""
        stated = self.noise()
        if self.shape is not None or self.bound is None:
            return None if stated.reach is None else stated
        return replace(
            stated,
            sigma=UNKNOWN,
            shape=Shape.UNIFORM,
            bound=self.bound,
            random_rounding=self.random_rounding,
        )

    def state(self, noise: Noise) -> bool:
        """Whether all that bounds the counts under ``noise`` is stated here."""
        # A bound that is stated alone bounds counts as well as that of a stated law.
        shape = Shape.UNIFORM if self.shape is None and self.bound is not None else self.shape
        law = shape is not None and shape is noise.shape and self.bound == noise.bound
        rounding = (self.base or 1) == noise.base and self.random_rounding == noise.random_rounding
        # A threshold that is drawn bounds no count.
        bounds = isinstance(noise.threshold, Range)
        return law and rounding and (not bounds or noise.threshold == self.suppressed)

    def check(self, transcript: Transcript) -> None:
        """Raise if the answers contradict, at sight, what is stated of them."""
        values, parts = transcript.values[transcript.released], _in_parts(self.noise())
        odd = np.zeros(values.size, np.bool_) if self.base is None else values % self.base != 0
        low = np.zeros(values.size, np.bool_) if self.floor is None else values < self.floor
        for name, broken in (("rounding", odd), ("floor", low)):
            if broken.any():
                raise InputError(
                    f"{parts[name]}, as stated, but one is {values[broken][0]:g}; check that, or "
                    "state less"
                )

    @property
    def words(self) -> tuple[str, ...]:
        """What is stated, one rule each."""
        parts = _in_parts(self.noise())
        if self.shape is None and self.bound is not None:
            parts = {"bound": f"noise lies within ± {self.bound:g}", **parts}
        if self.base is not None and self.random_rounding and self.shape is None:
            parts["rounding"] += ", up or down by chance"
        if self.keys is not None:
            parts["law"] = (
                f"counts are perturbed by cell keys, by at most {self.keys.bound}, and 0 not at all"
            )
        again = {True: "gets the same answer", False: "gets fresh noise"}
        return (
            *(parts[name] for name in parts if name in self._stated_parts),
            *(() if self.sticky is None else (f"a question asked again {again[self.sticky]}",)),
        )

    @property
    def _stated_parts(self) -> set[str]:
        stated = {
            "law": self.shape,
            "bound": self.bound,
            "rounding": self.base,
            "suppression": self.suppressed,
            "floor": self.floor,
        }
        return {name for name, value in stated.items() if value is not None}

    def require_only(self, what: str, names: tuple[str, ...]) -> None:
        """Raise if more than the fields ``names`` is stated, where ``what`` can use no other."""
        given = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        law = self.shape in (None, Shape.GAUSSIAN)
        beyond = [name for name in given if name not in names and not (law and name == "shape")]
        if beyond:
            raise InputError(
                f"{', '.join(self.words)}: {what} can be decoded with {', '.join(names)} stated, "
                f"not with {', '.join(beyond)}; leave it out"
            )


def count_intervals(transcript: Transcript, noise: Noise) -> CountIntervals | None:
    """What the counts of a transcript must lie within under bounded noise; None under any other."""
    if noise.reach is None:
        return None
    released, rows = transcript.released, transcript.released
    low, high = transcript.values - noise.reach, transcript.values + noise.reach
    if noise.floor is not None:
        low = np.where(transcript.values <= noise.floor, -np.inf, low)
    if noise.ceiling is not None:
        high = np.where(transcript.values >= noise.ceiling, np.inf, high)
    if isinstance(noise.threshold, Range):
        least, most = noise.threshold.low, noise.threshold.high
        # A count in the range is suppressed, so that one that was answered lies outside.
        answered_low = np.where((low > least - 1 + EDGE) & (low <= most), most + 1, low)
        answered_high = np.where((high >= least) & (high < most + 1 - EDGE), least - 1, high)
        low = np.where(released, answered_low, least)
        high = np.where(released, answered_high, most)
        rows = np.ones_like(released)
    low, high = (low - transcript.share)[rows], (high - transcript.share)[rows]
    A, n = transcript.over_bits[rows], transcript.ids.size
    if transcript.names:
        # Everyone has one of the values.
        A = np.vstack([A, np.tile(np.eye(n, dtype=np.int8), transcript.blocks)])
        low, high = np.append(low, np.ones(n)), np.append(high, np.ones(n))
    return CountIntervals.between(A, low, high)


def _in_parts(noise: Noise, sigma: float | None = None) -> dict[str, str]:
    """What is done to a count under ``noise``, in words, by what it is about."""
    if sigma is None and isinstance(noise.sigma, int | float):
        sigma = float(noise.sigma)
    size = "" if sigma is None else f" of SD {sigma:.3g}"
    law = f"noise is {NAMES.get(noise.shape, noise.shape.value)}{size}"
    if noise.shape is Shape.EXACT:
        law = "no noise is added"
    elif noise.shape is Shape.UNIFORM:
        law = f"noise lies within ± {noise.bound:g}"
    parts = {"law": law}
    if noise.base > 1:
        by_chance = ", up or down by chance" if noise.random_rounding else ""
        parts["rounding"] = f"answers are rounded to multiples of {noise.base}{by_chance}"
    elif noise.offset == DOWN:
        parts["rounding"] = "answers are rounded down"
    match noise.threshold:
        case Threshold(mean):
            parts["suppression"] = f"counts below about {mean:g} are suppressed"
        case Range(low, high):
            parts["suppression"] = f"counts from {low} to {high} are suppressed"
        case Below(answer):
            parts["suppression"] = f"answers that would be below {answer:g} are suppressed"
    if noise.floor is not None:
        parts["floor"] = f"no answer is below {noise.floor:g}"
    return parts


def inferred_in_words(noise: Noise, rules: Rules, sigma: float | None = None) -> tuple[str, ...]:
    """What of ``noise`` was inferred, for ``rules`` do not state it; ``sigma`` is the SD found."""
    stated = rules._stated_parts
    if noise.shape is Shape.EXACT and noise.floor is not None and noise.floor <= 0:
        # No count is below 0, so that nothing was raised.
        noise = replace(noise, floor=None)
    parts = _in_parts(noise, sigma)
    if noise.shape is Shape.UNIFORM and rules.bound == noise.bound:
        parts["law"] = "within its bound the noise is uniform"
    inferred = [text for name, text in parts.items() if name not in stated]
    if "law" in stated and noise.reach is None and rules.sigma is None and sigma is not None:
        inferred.insert(0, f"the noise has SD {sigma:.3g}")
    return tuple(inferred)


def in_words(noise: Noise) -> str:
    """What bounds the counts under ``noise``, in words."""
    if noise.shape is Shape.EXACT and noise.base == 1:
        law = "every answer is the exact count"
    else:
        law = f"no answer is further than {noise.reach:g} from its count"
    if isinstance(noise.threshold, Range):
        law += f" and counts from {noise.threshold.low} to {noise.threshold.high} are suppressed"
    return law
