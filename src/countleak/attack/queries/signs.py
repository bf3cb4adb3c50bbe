"""Queries with weights +1 and -1, the family that Dwork, McSherry and Talwar analyse.

A target that only counts answers one of them with two subset queries, q - q^c (the paper's
footnote 3): see ``targets.simulated.TwoSubsets`` for the noise that this carries.
"""

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError


def random_signs(ids: NDArray[np.int64], m: int, rng: np.random.Generator) -> Queries:
    """m independent queries, each weighing every person +1 or -1 with equal probability."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    matrix = 2 * rng.integers(0, 2, size=(m, ids.size), dtype=np.int8) - 1
    return Queries(ids, matrix.astype(np.int8), "signs")


def two_subsets(queries: Queries) -> tuple[Queries, Queries]:
    """The subsets q and q^c whose difference each sign query is."""
    plus, minus = (queries.matrix > 0).astype(np.int8), (queries.matrix < 0).astype(np.int8)
    return Queries(queries.ids, plus, "subsets"), Queries(queries.ids, minus, "subsets")
