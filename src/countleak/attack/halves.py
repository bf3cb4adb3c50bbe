"""Whether people count in the later answers as they do in the earlier ones.

An audit takes hours, and a live system does not wait: people come and go, and values change. Then
every answer is right, and yet no secret fits them all. Let r be the residuals of one secret for
all answers, and s be 1 in the first half of them and -1 in the second. If people count alike in
both, A'(s r) is as random as the noise; whoever changed half-way pulls one entry of it up and the
other way in the second half, which s turns round. Both halves are centred, so that an offset which
drifts says nothing here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.transcript import Transcript

# With fewer answers per person in each half, the halves cannot be told apart.
ENOUGH = 1.0
# Directions in which answers say next to nothing are left out.
FLAT = 1e-6
# Residuals are clipped at so many typical ones, lest a few gross errors decide.
CLIP = 3.0


@dataclass(frozen=True, eq=False)
class _Block:
    """The rows of the answers about one value, half by half, and what they say of whom.

    ``directions`` (rows, r) is an orthonormal basis of what people explain of answers with one
    half turned round.
    """

    rows: NDArray[np.int64]
    later: NDArray[np.bool_]
    directions: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Halves:
    """The earlier and the later answers about each value."""

    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, transcript: Transcript) -> "Halves":
        """The halves of the released answers; no blocks where these are too few."""
        return cls(tuple(_blocks(transcript)))

    def apart(self, left: NDArray[np.float64]) -> float:
        """How far people count otherwise in one half than in the other, about 1 if they do not.

        ``left`` (m,) is what a secret leaves over of every answer, 0 where none was given.
        """
        apart = []
        for block in self.blocks:
            r = left[block.rows]
            typical = 1.4826 * float(np.median(np.abs(r - np.median(r))))
            r = np.clip(r, -CLIP * typical, CLIP * typical) if typical else r
            for half in (block.later, ~block.later):
                r = np.where(half, r - r[half].mean(), r)
            turned = np.where(block.later, -r, r) @ block.directions
            size = float((r**2).mean())
            apart.append(float((turned**2).mean()) / size if size else 1.0)
        # The cube root of a sum of squares is nearly normal (Wilson and Hilferty 1931).
        return float(np.cbrt(np.mean(apart))) if apart else 1.0


def _blocks(transcript: Transcript) -> Iterator[_Block]:
    matrix = transcript.queries.matrix
    for value in range(transcript.blocks):
        rows = np.flatnonzero((transcript.about == value) & transcript.released)
        if rows.size < 2 * max(ENOUGH * matrix.shape[1], 1):
            continue
        A, later = matrix[rows].astype(np.float64), np.arange(rows.size) >= rows.size // 2
        for half in (later, ~later):
            A[half] -= A[half].mean(axis=0)
        values, vectors = np.linalg.eigh(A.T @ A)
        there = values > FLAT * max(float(values[-1]), FLAT)
        if there.any():
            yield _Block(rows, later, A @ (vectors[:, there] / np.sqrt(values[there])))
