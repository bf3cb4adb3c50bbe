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

from countleak.attack.noise import UNKNOWN, Noise, Shape, Values, log_at_most, log_released
from countleak.attack.transcript import Transcript
from countleak.errors import InputError, ShapeError

# Answers that are not whole are read to a sixteenth of a person: far below any noise that matters.
FRACTIONS = 16
# Beyond this many people an answer says nothing more by being further off.
FAR = 60
# How many standard deviations above the threshold an answer still speaks about being released.
NEAR = 6.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """k pieces of evidence about n bits.

    Column j of the queries is ``rows[start[j]:start[j + 1]]``, those with weight -1 from
    ``middle[j]`` on. ``line`` (k,) and ``said`` (k,) place each piece in the table: at the cell of
    line ``line`` and distance ``said - count``.
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

    @property
    def width(self) -> int:
        """Columns of the table: distances from -reach to reach."""
        return 2 * self.reach + 1

    @property
    def fractions(self) -> int:
        """Lines a group has for the fractional parts of its answers."""
        return 1 if self.whole else FRACTIONS

    @property
    def lines(self) -> int:
        """Lines of the table."""
        floor = 0 if self.noise.floor is None else self.noise.group_count
        threshold = 0 if self.noise.threshold is None else 2
        return self.noise.group_count * self.fractions + floor + threshold

    @property
    def is_gaussian(self) -> bool:
        """Whether every piece is a count with Gaussian noise: none clamped, suppressed or wrong."""
        counts = self.line < self.noise.group_count * self.fractions
        gaussian = self.noise.shape is Shape.GAUSSIAN and self.noise.wrong == 0.0
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

        Released answers by group and fraction, clamped ones by group, suppressed, released at all.
        """
        distance = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        shift = np.arange(self.fractions) / self.fractions
        released = np.stack(
            [log_released(distance + s, values, self.noise.shape, self.whole) for s in shift], 1
        )
        lines = [released.reshape(-1, self.width)]
        if self.noise.floor is not None:
            edge = distance + self.noise.floor + (0.5 if self.whole else 0.0)
            lines.append(log_at_most(edge, values, self.noise.shape))
        if self.noise.threshold is not None:
            # Such pieces say 0, so the distance is the count with its sign turned.
            lines.append(self.noise.threshold.log_suppressed(-distance)[None, :])
            lines.append(self.noise.threshold.log_released(-distance)[None, :])
        return np.concatenate(lines)


def gather(transcript: Transcript, noise: Noise, *, whole: bool | None = None) -> Evidence:
    """The evidence of a transcript, as ``noise`` lets its answers speak.

    Without a threshold in ``noise`` nothing is known of why an answer was suppressed, and those
    that were say nothing. Whether answers are ``whole`` is seen from them unless stated.
    """
    m, matrix, released = len(transcript), transcript.queries.matrix, transcript.released
    if noise.groups is not None and noise.groups.size != m:
        raise ShapeError(f"{noise.groups.size} groups for {m} queries; give each one")
    groups = np.zeros(m, np.int64) if noise.groups is None else noise.groups
    query, values = np.arange(m), transcript.b
    whole = are_whole(values) if whole is None else whole
    fractions = 1 if whole else FRACTIONS
    # Where an answer lies between two fractions it is read as the lower one, shifted by half.
    scaled = np.floor((values if whole else values + 0.5 / FRACTIONS) * fractions)
    whole_part, part = np.divmod(scaled, fractions)
    low = matrix.clip(max=0).sum(axis=1, dtype=np.int64)
    high = matrix.clip(min=0).sum(axis=1, dtype=np.int64)
    largest, smallest = int(high.max(initial=0)), int(low.min(initial=0))
    said = np.clip(whole_part, smallest - FAR, largest + FAR).astype(np.int64)
    line = groups[query[released]] * fractions + part.astype(np.int64)
    lines = noise.group_count * fractions
    if noise.floor is not None:
        clamped = values <= noise.floor
        line = np.where(clamped, lines + groups[query[released]], line)
        # A clamped answer says that its noise was at most the floor less the count.
        said = np.where(clamped, 0, said)
        lines += noise.group_count
    pieces = [(query[released], line, said)]
    if noise.threshold is not None:
        hidden, near = query[~released], query[released][values < _near(noise, values)]
        pieces += [
            (at, np.full(at.size, lines + k), np.zeros(at.size, np.int64))
            for k, at in enumerate((hidden, near))
        ]
    which, line, said = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    if not which.size:
        raise InputError(
            "no answer was released and the threshold is not known, so nothing can be learned; "
            "give a threshold"
        )
    start, middle, rows = _columns(matrix[which])
    reach = max(largest - smallest, -smallest, largest) + FAR + 1
    return Evidence(transcript.ids.size, start, middle, rows, line, said, noise, whole, reach)


def are_whole(values: NDArray[np.float64]) -> bool:
    """Whether all answers are whole numbers."""
    return bool((values == np.rint(values)).all())


def no_evidence(n: int, noise: Noise, whole: bool) -> Evidence:
    """Nothing was asked about these n bits."""
    none, rows = np.zeros(0, np.int64), np.zeros(0, np.int32)
    start = np.zeros(n + 1, np.int64)
    return Evidence(n, start, start[1:], rows, none, none, noise, whole, FAR + 1)


def stack(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of all parts about the bits of all parts, one after the other.

    They share their noise and whether answers are whole; a part's answers say nothing about the
    bits of another's.
    """
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
        np.concatenate([part.line for part in parts]),
        np.concatenate([part.said for part in parts]),
        parts[0].noise,
        parts[0].whole,
        max(part.reach for part in parts),
    )


def _near(noise: Noise, values: NDArray[np.float64]) -> float:
    assert noise.threshold is not None
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
