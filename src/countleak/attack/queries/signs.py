"""Queries with weights +1 and -1, the family that Dwork, McSherry and Talwar analyse.

A target that only counts answers one of them with two subset queries, q - q^c (the paper's
footnote 3): see ``targets.simulated.TwoSubsets`` for the noise that this carries.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Signs:
    """Weights of +1 and -1: a difference of two counts, so not one question in SQL."""

    name: str = "signs"
    needs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        raise InputError("±1 queries are not counts, so SQL cannot ask them; ask digits or subsets")


def random_signs(ids: NDArray[Any], m: int, rng: np.random.Generator) -> Queries:
    """m independent queries, each weighing every person +1 or -1 with equal probability."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    matrix = 2 * rng.integers(0, 2, size=(m, ids.size), dtype=np.int8) - 1
    return Queries(ids, matrix.astype(np.int8), Signs())


def two_subsets(queries: Queries) -> tuple[Queries, Queries]:
    """The subsets q and q^c whose difference each sign query is."""
    plus, minus = (queries.matrix > 0).astype(np.int8), (queries.matrix < 0).astype(np.int8)
    return Queries(queries.ids, plus, Subsets()), Queries(queries.ids, minus, Subsets())
