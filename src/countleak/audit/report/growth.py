"""How the leak grows: what the attack gets right after fewer answers than came back.

An audit that looked at its guess as it went on has such points already. Any other is decoded again
from the first answers of an order drawn by chance, as long as that takes no more than SECONDS.
"""

from dataclasses import dataclass, is_dataclass, replace
from math import log
from time import monotonic
from typing import Any

import numpy as np

from countleak.attack.decoders import Decoder
from countleak.attack.guess import Guess
from countleak.audit.result import AuditResult
from countleak.audit.scores import score
from countleak.errors import CountleakError
from countleak.progress import Progress, silent

SECONDS = 20.0
# So often the answers are halved; fewer answers than the least say nothing.
HALVINGS, LEAST = 5, 20
# More people times answers take too long for a picture.
MOST_CELLS = 500_000
# Proofs are given no longer than this at each point.
PROOF_SECONDS = 2.0
# With so many right, or surely so, further answers draw a flat line.
ENOUGH = 0.995

Interval = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """After so many answers: the share right, where the truth is known, and the share expected."""

    answers: int
    right: float | None
    interval: Interval | None
    expected: float | None
    expected_interval: Interval | None


@dataclass(frozen=True)
class Growth:
    """The points in the order of their answers, and ``missing``: why some are not there."""

    points: tuple[Point, ...]
    missing: str = ""


def growth_of(
    result: AuditResult, *, seed: int = 0, seconds: float = SECONDS, progress: Progress = silent
) -> Growth:
    """How what the attack gets right grows with the answers."""
    if len(result.steps) > 1:
        return Growth(tuple(_point(len(s.transcript), s.guess, result) for s in result.steps))
    last = _point(len(result.transcript), result.guess, result)
    if result.decoder is None:
        return Growth((last,), "the decoder is not known")
    sizes, began = _sizes(result), monotonic()
    points: dict[int, Point] = {}
    missing = "" if sizes else "so few answers, or so many people, are not decoded again"
    # From the middle outwards: where time runs out, the points left say most.
    for done, size in enumerate(
        sorted(sizes, key=lambda size: abs(log(size / sizes[len(sizes) // 2])))
    ):
        progress(done, len(sizes))
        spent = monotonic() - began
        if done and spent + spent / done > seconds:
            missing = f"points that would have taken more than {seconds:g} s in all are left out"
            break
        if any(_is_enough(point) for fewer, point in points.items() if fewer < size):
            continue
        if (point := _decoded(result, result.decoder, size, seed)) is not None:
            points[size] = point
    progress(len(sizes), len(sizes))
    return Growth((*(points[size] for size in sorted(points)), last), missing)


def _sizes(result: AuditResult) -> list[int]:
    """How many answers to decode, fewest first."""
    m, n = len(result.transcript), len(result.audited)
    halved = [m // 2**step for step in range(HALVINGS, 0, -1)]
    return [size for size in halved if size >= LEAST and size * n <= MOST_CELLS]


def _is_enough(point: Point) -> bool:
    """Whether further answers only draw a flat line."""
    return (point.expected or point.right or 0.0) >= ENOUGH


def _decoded(result: AuditResult, decoder: Decoder, size: int, seed: int) -> Point | None:
    """The point after the first ``size`` answers; None where they are too few to decode."""
    order = np.random.default_rng([seed, 43]).permutation(len(result.transcript))
    try:
        guess = _hasty(decoder).decode(result.transcript.take(np.sort(order[:size])))
    except CountleakError:
        return None
    return _point(size, guess, result)


def _hasty(decoder: Decoder) -> Decoder:
    """The same decoder, with less time for proofs and nobody to report to."""
    settings = {"time_limit": PROOF_SECONDS, "progress": silent}
    known = {name: value for name, value in settings.items() if hasattr(decoder, name)}
    if not known or not is_dataclass(decoder) or isinstance(decoder, type):
        return decoder
    hasty: Any = replace(decoder, **known)
    return hasty


def _point(answers: int, guess: Guess, result: AuditResult) -> Point:
    found = None if result.truth is None else score(guess, result.truth)
    return Point(
        answers,
        None if found is None else found.accuracy,
        None if found is None else found.interval(),
        guess.expected_right,
        guess.expected_interval,
    )
