"""How answers can be read: what they are multiples of, the lowest and highest, and what is hidden.

What is stated is taken as it is. Where two readings are possible both are given, and whoever fits
them chooses the likelier: that low counts are hidden, or low answers, or sets of some sizes, or
some answers by chance, which says nothing of their counts.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import (
    LARGEST_STEP,
    UNKNOWN,
    Below,
    Noise,
    Range,
    Suppression,
    Threshold,
)
from countleak.attack.posterior.evidence import are_whole
from countleak.attack.rules import Rules
from countleak.attack.transcript import Transcript

# Answers pile up at a limit where so many are there, and so many times as many as next to it.
PILE, STEEP = 5, 3
# Answers of 0 stand apart where the next are so many steps above.
APART = 3
# Where more than this share is at the lowest answer, they may be that low for another reason.
MANY_AT_LIMIT = 0.05
# No system suppresses larger counts by a fixed rule.
LARGEST_SUPPRESSED = 20


def readings(transcript: Transcript, rules: Rules) -> Iterator[tuple[Noise, float]]:
    """Normal noise of unknown size with each reading of the answers.

    With each comes the log-likelihood of what it does not explain: which answers are hidden.
    """
    values = transcript.b
    base = base_of(values) if rules.base is None else rules.base
    floors: list[float | None] = [rules.floor]
    if rules.floor is None:
        floors = [lowest_answer(values)]
        if floors[0] is not None and (values == floors[0]).mean() > MANY_AT_LIMIT:
            floors.append(None)
    ceiling = highest_answer(values)
    for floor in floors:
        for threshold in _hidden(transcript, rules):
            noise = Noise(
                UNKNOWN,
                UNKNOWN,
                UNKNOWN,
                floor=None if isinstance(threshold, Below) else floor,
                ceiling=ceiling,
                threshold=threshold,
                base=base,
            )
            yield noise, log_by_chance(transcript) if threshold is None else 0.0


def zeros_hidden(transcript: Transcript, rules: Rules) -> Transcript:
    """The answers, those of 0 taken for suppressed where they stand apart from all others.

    Some systems answer 0 where they would not answer: many are 0 then, and the next are far above.
    """
    values = transcript.values
    is_open = rules.suppressed is None and rules.floor is None and rules.shape is None
    if not is_open or not transcript.released.all() or values.min() < 0 or not (values > 0).any():
        return transcript
    next_up = float(values[values > 0].min())
    near = int(((values > 0) & (values <= 2 * next_up)).sum())
    many = min(int((values == 0).sum()), near) >= PILE
    apart = many and next_up >= APART * base_of(values)
    return transcript.suppressing(values == 0) if apart else transcript


def readings_of_exact(transcript: Transcript, exact: Noise) -> Iterator[Noise]:
    """Exact counts with each reading of what is clamped or hidden that ``exact`` leaves open."""
    values = transcript.b
    limits = [exact]
    floor, ceiling = lowest_answer(values), highest_answer(values)
    if exact.floor is None and ((floor or 0) > 0 or ceiling is not None):
        # No exact count is raised to 0.
        limits.append(replace(exact, floor=floor or None, ceiling=ceiling))
    by_rule = suppressed_range(transcript)
    for noise in limits:
        if exact.threshold is None and by_rule is not None:
            yield replace(noise, threshold=by_rule)
        yield noise


def _hidden(transcript: Transcript, rules: Rules) -> list[Suppression | None]:
    """Why answers may be hidden."""
    if rules.suppressed is not None or transcript.released.all():
        return [rules.suppressed]
    by_rule = suppressed_range(transcript)
    hidden: list[Suppression | None] = [Threshold()]
    if not transcript.b.size:
        return hidden
    hidden.append(None)
    if by_rule is not None:
        hidden.append(by_rule)
    if not (transcript.b == 0).any():
        hidden.append(Below(float(transcript.b.min())))
    return hidden


def log_by_chance(transcript: Transcript) -> float:
    """The log-likelihood of what is hidden where that has nothing to do with counts.

    Every answer is as likely to be hidden, or all sets are that are too small or too large.
    """
    released = transcript.released
    if released.all() or not released.any():
        return 0.0
    share = released.mean()
    by_chance = released.sum() * np.log(share) + (~released).sum() * np.log1p(-share)
    sizes = transcript.queries.sizes
    shown = sizes[released]
    inside = (sizes >= shown.min()) & (sizes <= shown.max())
    by_size = -np.inf
    if not (inside & ~released).any():
        by_size = -2 * np.log(np.unique(sizes).size)
    return float(max(by_chance, by_size))


def base_of(values: NDArray[np.float64]) -> int:
    """What all answers are multiples of, 1 where that is no more than chance."""
    if values.size < 20 or not are_whole(values):
        return 1
    base = max(int(np.gcd.reduce(np.abs(values).astype(np.int64))), 1)
    return base if base <= LARGEST_STEP else 1


def lowest_answer(values: NDArray[np.float64]) -> float | None:
    """The lowest answer the system gives, where answers pile up at it or none falls below 0."""
    if not values.size:
        return None
    lowest = float(values.min())
    return lowest if (lowest == 0 and (values > 0).any()) or _piled(values - lowest) else None


def highest_answer(values: NDArray[np.float64]) -> float | None:
    """The highest answer the system gives, where answers pile up at it."""
    if not values.size:
        return None
    highest = float(values.max())
    return highest if _piled(highest - values) else None


def _piled(above: NDArray[np.float64]) -> bool:
    """Whether answers (k,) so far from a limit pile up at it."""
    _, often = np.unique(above, return_counts=True)
    return often.size > 1 and bool(often[0] >= PILE and often[0] > STEEP * often[1])


def suppressed_range(transcript: Transcript) -> Range | None:
    """The counts that are suppressed, if a fixed rule is: those between the answers that are not.

    Where zeros are answered they are shown, and suppression starts at 1.
    """
    values = transcript.b
    if transcript.released.all() or not values.size or not are_whole(values):
        return None
    highest = int(values[values > 0].min(initial=LARGEST_SUPPRESSED + 2)) - 1
    lowest = 1 if (values == 0).any() else 0
    return Range(lowest, highest) if lowest <= highest <= LARGEST_SUPPRESSED else None
