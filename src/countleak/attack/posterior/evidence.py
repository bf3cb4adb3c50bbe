"""All that was asked and answered, laid out for the sampler.

Every answer has a cell in a table of log-likelihoods, and moves in it as its count changes. The
table has a line for each way an answer speaks of its count, and a column for each distance
between what was said and the count. One query may speak twice: that it was released at all says
that its count reached the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.covariance import correlation
from countleak.attack.noise import (
    UNKNOWN,
    Below,
    Noise,
    Range,
    Shape,
    Threshold,
    Values,
    log_at_least,
    log_at_most,
    log_released,
)
from countleak.attack.transcript import Transcript
from countleak.errors import InputError, ShapeError

# Answers that are not whole are read to a sixteenth of a person: far below any noise that matters.
FRACTIONS = 16
# Beyond this many people an answer says nothing more by being further off, unless that is usual.
FAR, FARTHEST = 60, 20_000
# How many standard deviations above the threshold an answer still speaks about being released.
NEAR = 6.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """k pieces of evidence about n bits, in ``parts`` that no answer has in common.

    Answers come from sources: those of source s have the noise of group ``group_of[s]`` and the
    offset of part ``part_of[s]``, and sources are in the order of the parts.

    Column j of the queries is ``rows[start[j]:start[j + 1]]``, those with weight -1 from
    ``middle[j]`` on. ``line`` (k,) and ``said`` (k,) place each piece in the table: at the cell of
    line ``line`` and distance ``said - count``. ``correlations`` are those of the noise of the
    pieces, each (p, p) of p pieces in turn; none where noise is not shared.
    """

    n: int
    start: NDArray[np.int64]
    middle: NDArray[np.int64]
    rows: NDArray[np.int32]
    line: NDArray[np.int64]
    said: NDArray[np.int64]
    noise: Noise
    whole: bool
    reach: int
    group_of: NDArray[np.int64]
    part_of: NDArray[np.int64]
    parts: int = 1
    correlations: tuple[NDArray[np.float64], ...] = ()

    @property
    def width(self) -> int:
        """Columns of the table: distances from -reach to reach."""
        return 2 * self.reach + 1

    @property
    def fractions(self) -> int:
        """Lines a source has for the fractional parts of its answers."""
        return 1 if self.whole else FRACTIONS

    @property
    def lines(self) -> int:
        """Lines of the table."""
        counted = isinstance(self.noise.threshold, Threshold | Range)
        return self.source_lines + (2 if counted else 0)

    @property
    def source_lines(self) -> int:
        """Lines of the table that belong to sources: for released answers, then at each limit."""
        noise = self.noise
        limits = (noise.floor, noise.ceiling, noise.threshold if self.has_hidden_tail else None)
        return self.group_of.size * (self.fractions + sum(limit is not None for limit in limits))

    @property
    def has_hidden_tail(self) -> bool:
        """Whether answers are suppressed by what they would have been."""
        return isinstance(self.noise.threshold, Below)

    @property
    def is_gaussian(self) -> bool:
        """Whether every piece is a count with Gaussian noise: none clamped, suppressed or wrong."""
        counts = self.line < self.group_of.size * self.fractions
        noise = self.noise
        gaussian = noise.shape is Shape.GAUSSIAN and noise.wrong == 0.0 and noise.base == 1
        return gaussian and bool(counts.all())

    def block(self, v: int, size: int) -> NDArray[np.float64]:
        """Whom each piece of evidence weighs, (k, size), among bits ``v * size`` and on."""
        column, weight = self._entries()
        inside = column // size == v
        weights = np.zeros((self.said.size, size))
        weights[self.rows[inside], column[inside] - v * size] = weight[inside]
        return weights

    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The column and the weight of each of ``rows``."""
        column = np.repeat(np.arange(self.n), np.diff(self.start))
        return column, np.where(np.arange(self.rows.size) < self.middle[column], 1, -1)

    def cells(self, x: NDArray[np.int64]) -> NDArray[np.int32]:
        """The flat cell of each piece of evidence for bits x (n,)."""
        column, weight = self._entries()
        counts = np.bincount(self.rows, weight * x[column], minlength=self.said.size)
        distance = self.said - counts.astype(np.int64)
        return (self.line * self.width + distance + self.reach).astype(np.int32)

    def table(self, values: Values) -> NDArray[np.float64]:
        """The log-likelihoods (lines, width), ways to speak one below the other.

        Released answers by source and fraction, clamped or hidden at a limit by source, suppressed,
        released at all. Pieces that say 0 have their count as the distance, with its sign turned.
        """
        distance = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        shift = np.arange(self.fractions) / self.fractions
        own = [values.about(v, self.group_of[self.part_of == v]) for v in range(self.parts)]
        noise, half = self.noise, 0.5 if self.whole else 0.0
        shifted = (distance[None, :] + shift[:, None]).ravel()
        lines = [
            log_released(shifted, part, noise, self.whole).reshape(-1, self.width) for part in own
        ]
        if noise.floor is not None:
            lines += [log_at_most(distance + noise.floor + half, part, noise) for part in own]
        if noise.ceiling is not None:
            lines += [log_at_least(distance + noise.ceiling - half, part, noise) for part in own]
        if isinstance(noise.threshold, Below):
            edge = distance + noise.threshold.answer - half
            lines += [log_at_most(edge, part, noise) for part in own]
        elif noise.threshold is not None:
            lines.append(noise.threshold.log_suppressed(-distance)[None, :])
            lines.append(noise.threshold.log_released(-distance)[None, :])
        return self.noise.effective * np.concatenate(lines)


def gather(transcript: Transcript, noise: Noise) -> Evidence:
    """The evidence of a transcript, as ``noise`` lets its answers speak.

    Without a threshold in ``noise`` nothing is known of why an answer was suppressed, and those
    that were say nothing. Answers about each value of a secret are a part of their own.
    """
    m = len(transcript)
    if noise.groups is not None and noise.groups.size != m:
        raise ShapeError(f"{noise.groups.size} groups for {m} queries; give each one")
    groups = np.zeros(m, np.int64) if noise.groups is None else noise.groups
    whole = are_whole(transcript.b)
    parts: list[Evidence] = []
    for v in range(max(len(transcript.names), 1)):
        about = transcript.about == v
        if (about & (transcript.released | (noise.threshold is not None))).any():
            parts.append(_gather_part(transcript.where(about), noise, groups[about], whole))
        else:
            parts.append(_silent_part(transcript.ids.size, noise, whole))
    if not any(part.said.size for part in parts):
        raise InputError(
            "no answer was released and the threshold is not known, so nothing can be learned; "
            "give a threshold"
        )
    return parts[0] if len(parts) == 1 else _stacked(parts)


def _gather_part(
    transcript: Transcript, noise: Noise, groups: NDArray[np.int64], whole: bool
) -> Evidence:
    """The evidence of answers about the same bits."""
    m, matrix, released = len(transcript), transcript.queries.matrix, transcript.released
    group_of, source = np.unique(groups, return_inverse=True)
    query, values = np.arange(m), transcript.b
    fractions = 1 if whole else FRACTIONS
    # Where an answer lies between two fractions it is read as the lower one, shifted by half.
    scaled = np.floor((values if whole else values + 0.5 / FRACTIONS) * fractions)
    whole_part, part = np.divmod(scaled, fractions)
    low = matrix.clip(max=0).sum(axis=1, dtype=np.int64)
    high = matrix.clip(min=0).sum(axis=1, dtype=np.int64)
    largest, smallest = int(high.max(initial=0)), int(low.min(initial=0))
    far = _far(values)
    said = np.clip(whole_part, smallest - far, largest + far).astype(np.int64)
    line = source[released] * fractions + part.astype(np.int64)
    lines = group_of.size * fractions
    # What is clamped or hidden says how its count lies to a limit, whatever was answered.
    for limit, beyond in ((noise.floor, np.less_equal), (noise.ceiling, np.greater_equal)):
        if limit is not None:
            clamped = beyond(values, limit)
            line = np.where(clamped, lines + source[released], line)
            said = np.where(clamped, 0, said)
            lines += group_of.size
    pieces = [(query[released], line, said)]
    hidden = query[~released]
    if isinstance(noise.threshold, Below):
        pieces.append((hidden, lines + source[hidden], np.zeros(hidden.size, np.int64)))
    elif noise.threshold is not None:
        near = query[released][values < _near(noise, values)]
        pieces += [
            (at, np.full(at.size, lines + k), np.zeros(at.size, np.int64))
            for k, at in enumerate((hidden, near))
        ]
    which, line, said = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    start, middle, rows = _columns(matrix[which])
    reach = max(largest - smallest, -smallest, largest) + far + 1
    correlations: tuple[NDArray[np.float64], ...] = ()
    if noise.shared:
        correlations = (correlation(noise.shared, transcript.queries.take(which)),)
    return Evidence(
        transcript.ids.size, start, middle, rows, line, said, noise, whole, reach, group_of,
        np.zeros_like(group_of), 1, correlations,
    )  # fmt: skip


def are_whole(values: NDArray[np.float64]) -> bool:
    """Whether all answers are whole numbers."""
    return bool((values == np.rint(values)).all())


def _silent_part(n: int, noise: Noise, whole: bool) -> Evidence:
    """Nothing was answered about these n bits."""
    none, rows = np.zeros(0, np.int64), np.zeros(0, np.int32)
    start = np.zeros(n + 1, np.int64)
    return Evidence(n, start, start[1:], rows, none, none, noise, whole, FAR + 1, none, none)


def _stacked(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of all parts about the bits of all parts, one after the other.

    They share their noise and whether answers are whole; a part's answers say nothing about the
    bits of another's.
    """
    sources = np.cumsum([0, *(part.group_of.size for part in parts)])
    entries = np.cumsum([0, *(part.rows.size for part in parts)])
    pieces = np.cumsum([0, *(part.said.size for part in parts)])
    return Evidence(
        sum(part.n for part in parts),
        np.concatenate(
            [[0], *(part.start[1:] + at for part, at in zip(parts, entries[:-1], strict=True))]
        ),
        np.concatenate([part.middle + at for part, at in zip(parts, entries[:-1], strict=True)]),
        np.concatenate(
            [part.rows + np.int32(at) for part, at in zip(parts, pieces[:-1], strict=True)]
        ),
        np.concatenate(
            [_moved(part, at, sources[-1]) for part, at in zip(parts, sources[:-1], strict=True)]
        ),
        np.concatenate([part.said for part in parts]),
        parts[0].noise,
        parts[0].whole,
        max(part.reach for part in parts),
        np.concatenate([part.group_of for part in parts]),
        np.repeat(np.arange(len(parts)), np.diff(sources)),
        len(parts),
        tuple(matrix for part in parts for matrix in part.correlations),
    )


def _moved(part: Evidence, first: int, sources: int) -> NDArray[np.int64]:
    """The lines of a part's pieces in the table of all ``sources``, its own from ``first`` on."""
    own, fractions, line = part.group_of.size, part.fractions, part.line
    limit, source = np.divmod(line - own * fractions, max(own, 1))
    every_source = sources * (part.source_lines // own if own else 0)
    return np.select(
        [line < own * fractions, line < part.source_lines],
        [line + first * fractions, sources * (fractions + limit) + first + source],
        line - part.source_lines + every_source,
    )


def _far(values: NDArray[np.float64]) -> int:
    """How far off answers are told apart: beyond all but the odd one, however large the noise."""
    if not values.size:
        return FAR
    usual = 8 * 1.4826 * float(np.median(np.abs(values - np.median(values))))
    return int(np.clip(usual, FAR, FARTHEST))


def _near(noise: Noise, values: NDArray[np.float64]) -> float:
    assert isinstance(noise.threshold, Threshold | Range)
    if isinstance(noise.threshold, Range):
        return np.inf
    if noise.sigma is not UNKNOWN:
        scale = float(np.max(noise.sigma))
    else:
        # Answers vary by more than their noise, so this errs on the safe side.
        scale = float(values.std()) + 1 if values.size else 1.0
    return noise.threshold.mean + NEAR * (scale + noise.threshold.sd)


def _columns(
    matrix: NDArray[np.int8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    if not np.isin(matrix, (-1, 0, 1)).all():
        raise InputError("only queries with weights -1, 0 and 1 can be decoded so")
    turned = np.ascontiguousarray(matrix.T)
    plus, minus = (turned > 0).sum(axis=1), (turned < 0).sum(axis=1)
    start = np.concatenate([[0], np.cumsum(plus + minus)]).astype(np.int64)
    # Within a column those of weight +1 come first: a stable sort keeps the rows in order.
    column, row = np.nonzero(turned)
    order = np.lexsort((turned[column, row] < 0, column))
    return start, start[:-1] + plus, row[order].astype(np.int32)
