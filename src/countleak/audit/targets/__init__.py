"""Targets: whatever answers counting queries about a secret."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers


class Target(Protocol):
    """A system under audit. It knows the secret; nothing downstream of it does."""

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Answer the queries at ``positions``, batch by batch as answers come in."""
        ...
