"""Targets: whatever answers counting queries about a secret."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.transcript import Answers
from countleak.lazy import lazy_names


@runtime_checkable
class Target(Protocol):
    """A system under audit. It knows the secret; nothing downstream of it does."""

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Answer the questions at ``positions``, batch by batch as answers come in.

        Position ``v * m + i`` is query i of m, about the value v where the secret has several.
        """
        ...


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CallableTarget": f"{__name__}.callables",
        "CommandTarget": f"{__name__}.command",
        "DatabaseTarget": f"{__name__}.database",
        "Diffix": f"{__name__}.diffix",
        "DuckTarget": f"{__name__}.embedded",
        "FrameTarget": f"{__name__}.frames",
        "PostgresTarget": f"{__name__}.postgres",
        "RequestLimits": f"{__name__}.limits",
        "RestTarget": f"{__name__}.rest",
        "Simulated": f"{__name__}.simulated",
        "SqlQuestions": f"{__name__}.sql",
    },
)
