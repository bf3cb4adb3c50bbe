"""A pandas or polars frame as a target that counts exactly: a system without any protection."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.rules import Rules
from countleak.attack.secrets import Secret
from countleak.attack.transcript import Answers
from countleak.audit.people import people_of
from countleak.audit.targets.simulated import Exactly, Simulated


class FrameTarget:
    """Exact counts of the people in a frame, one row per person, for whom a secret holds.

    Whoever is asked about and is not in the frame counts for nothing.
    """

    def __init__(self, frame: Any, *, id: str | tuple[str, ...], secret: str | Secret):
        """Count over the people that the column ``id`` tells apart; several are one key."""
        self.people = people_of(frame, id, "frame")
        self.secret = self.people.named(secret)
        # It raises for a condition that holds for nobody, before anything is asked.
        self.people.truth(self.secret)
        self._counts = Simulated(self.people, self.secret, Exactly())

    def __str__(self) -> str:
        return f"a frame of {len(self.people)} people"

    @property
    def rules(self) -> Rules:
        """What could be stated of it: that counts are exact."""
        return Exactly().rules

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Answer everything in one batch."""
        return self._counts.answer(queries, positions)
