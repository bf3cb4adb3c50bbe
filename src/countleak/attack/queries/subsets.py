"""Uniformly random subsets, the family of Dinur and Nissim."""

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.errors import InputError


def random_subsets(
    ids: NDArray[np.int64], m: int, rng: np.random.Generator, column: str | None = None
) -> Queries:
    """m independent queries, each counting every person with probability 1/2.

    With the name of the id ``column`` each is also written in SQL, as a list of ids.
    """
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    matrix = rng.integers(0, 2, size=(m, ids.size), dtype=np.int8)
    where = tuple(_among(column, ids[row == 1]) for row in matrix) if column else ()
    return Queries(ids, matrix, "subsets", where=where)


def _among(column: str, ids: NDArray[np.int64]) -> str:
    # IN () is no SQL; a predicate that never holds asks about nobody as well.
    return f"{column} IN ({', '.join(map(str, ids))})" if ids.size else f"{column} <> {column}"
