"""What the guess leaves over of each answer: the noise, as the attack sees it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.groups import unequal_groups
from countleak.attack.guess import Guess
from countleak.attack.noise import UNKNOWN, Noise, Shape, Values, log_released
from countleak.attack.posterior.evidence import are_whole
from countleak.attack.transcript import Transcript

# A histogram of more bars is no clearer.
MOST_BARS = 41
# Answers further off than this many SDs are counted, not drawn.
FAR = 5.0
# Fewer residuals have no shape.
FEWEST = 30
SHAPES = {Shape.GAUSSIAN: "normal", Shape.LAPLACE: "Laplace", Shape.EXACT: "rounding"}


@dataclass(frozen=True)
class Bar:
    """The share of the residuals around ``centre``, and the share that the noise's law puts there.

    The bar reaches half a ``Residuals.width`` to either side.
    """

    centre: float
    share: float
    law: float | None


@dataclass(frozen=True)
class GroupNoise:
    """The noise of the queries that share a value of a parameter; ``odd`` does not fit in."""

    value: str
    answers: int
    sd: float
    odd: bool


@dataclass(frozen=True)
class Residuals:
    """The residuals of ``answers`` released answers: ``mean`` and ``sd``, and their histogram.

    ``shape`` is the law of the noise in a word; ``beyond`` are too far off to be drawn. ``by`` is
    the parameter by which the noise differs, where it does.
    """

    answers: int
    mean: float
    sd: float
    shape: str | None
    width: float
    bars: tuple[Bar, ...]
    beyond: int
    by: str | None = None
    groups: tuple[GroupNoise, ...] = ()


def residuals_of(transcript: Transcript, guess: Guess) -> Residuals | None:
    """The residuals of a guess; missing where too few answers were released or nothing claimed."""
    if transcript.b.size < FEWEST or not guess.claimed.all():
        return None
    left = transcript.residuals(_bits(guess))
    mean, sd = float(left.mean()), float(left.std())
    by, groups = None, []
    if sd > 0:
        order = np.argsort(transcript.about[transcript.released], kind="stable")
        by, found = unequal_groups(transcript, left[order], ())
        groups = [GroupNoise(f"{g.value:g}", g.answers, g.sigma, bool(g.odd)) for g in found]
    near = left[np.abs(left - mean) <= FAR * sd]
    whole = are_whole(transcript.b)
    width = _width(near, whole)
    places = np.round(near / width).astype(np.int64)
    centres = np.arange(places.min(), places.max() + 1)
    shares = np.bincount(places - places.min()) / left.size
    noise = guess.basis.noise
    law = None if noise is None or not sd else _law(noise, centres, width, mean, sd, whole)
    bars = tuple(
        Bar(float(c * width), float(s), None if law is None else float(law[i]))
        for i, (c, s) in enumerate(zip(centres, shares, strict=True))
    )
    shape = None if noise is None else SHAPES.get(noise.shape, noise.shape.value)
    beyond = int(left.size - near.size)
    return Residuals(left.size, mean, sd, shape, width, bars, beyond, by, tuple(groups))


def _bits(guess: Guess) -> NDArray[np.float64]:
    """Everyone's bit, or the chance of it; of each value in turn, where there are several."""
    if guess.names:
        held = [guess.values == name for name in guess.names]
        shares = np.array(held).T if guess.probability is None else guess.probability
        return shares.T.ravel().astype(np.float64)
    chosen = guess.values if guess.probability is None else guess.probability
    return chosen.astype(np.float64)


def _width(residuals: NDArray[np.float64], whole: bool) -> float:
    """A round width that leaves a readable number of bars; whole answers take whole widths."""
    span = float(np.ptp(residuals)) or 1.0
    least = 1.0 if whole else 0.0
    rough = span / MOST_BARS
    power = 10.0 ** np.floor(np.log10(rough))
    steps = [power * step for step in (1, 2, 5, 10)]
    width = next(step for step in steps if step >= rough)
    return float(max(width, least) if not whole else max(np.ceil(width), least))


def _law(
    noise: Noise,
    centres: NDArray[np.float64],
    width: float,
    mean: float,
    sd: float,
    whole: bool,
) -> NDArray[np.float64]:
    """The share (k,) that the law of the noise puts into each bar."""
    offset = mean if noise.offset is UNKNOWN else float(noise.offset)
    values = Values(np.array([sd]), np.array([offset]), 0.0)
    if whole:
        # Every whole residual within a bar counts towards it.
        steps = np.arange(int(width)) - (int(width) - 1) // 2
        places = (centres * width)[:, None] + steps
        chances = np.exp(log_released(places.ravel(), values, noise, True)[0])
        return np.asarray(chances.reshape(places.shape).sum(axis=1))
    return np.asarray(width * np.exp(log_released(centres * width, values, noise, False)[0]))
