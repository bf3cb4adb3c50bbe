"""Decoders: from everything asked and answered to a guess of every secret."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.answers import Answers
from countleak.errors import ShapeError
from countleak.problems import Certificate, Solution
from countleak.queries import Queries


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess about n people: ``values`` (n,) in {0, 1} for those ``claimed`` (n,).

    ``margin`` (n,) in [0, 1] says how far each was from undecided; it is no probability. Nobody
    is claimed when the program had no solution (then ``certificate`` holds the proof) or none
    was found in time.
    """

    ids: NDArray[np.int64]
    values: NDArray[np.int8]
    claimed: NDArray[np.bool_]
    margin: NDArray[np.float64]
    solution: Solution | None = None
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        fields = {"values": self.values, "claims": self.claimed, "margins": self.margin}
        for name, field in fields.items():
            if field.shape != self.ids.shape:
                raise ShapeError(f"{self.ids.size} ids but {field.size} {name}")


class Decoder(Protocol):
    """Anything that turns queries and answers into a Guess."""

    def decode(self, queries: Queries, answers: Answers) -> Guess:
        """Guess every secret; suppressed answers are there to be used."""
        ...
