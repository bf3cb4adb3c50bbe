"""Uniformly random subsets, the family of Dinur and Nissim."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import id_list
from countleak.attack.queries.rows import CHUNK, SMALL, held
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Subsets:
    """Any set of people, written in SQL as a list of ids."""

    name: str = "subsets"
    needs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    explicit: bool = True

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from countleak.attack.queries.predicates import is_among

        return is_among(key, id_list(queries.ids[queries.members(position)]))


def random_subsets(ids: NDArray[Any], m: int, rng: np.random.Generator) -> Queries:
    """m independent queries, each counting every person with probability 1/2."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    n = ids.size
    # Drawn in words of four bytes, the entries are the same whether drawn in blocks or at once.
    step = m if m * n <= SMALL else max(1, CHUNK // n // 4) * 4
    blocks = (
        rng.integers(0, 2, size=(min(step, m - at), n), dtype=np.int8) for at in range(0, m, step)
    )
    return Queries(ids, held(blocks, m, n), Subsets())
