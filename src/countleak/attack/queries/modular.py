"""Subsets by arithmetic on a whole-number id: nearly as good as random, and a short line of SQL.

    MOD(MOD(MOD(id, P) * a + b, P), 2) = 0    with P = 2^31 - 1, a prime

holds for half of the people. Carter and Wegman (Universal classes of hash functions, 1979) show
that two people fall together by chance over a and b. All products stay below 2^62, so every
database that has 64-bit integers means the same people.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.ids import are_integers
from countleak.attack.queries.rows import held
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

PRIME = 2**31 - 1


@dataclass(frozen=True)
class Modular:
    """The people whose id has an even hash."""

    name: str = "modular"
    needs: tuple[str, ...] = ("factor", "shift")
    texts: tuple[str, ...] = ()
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        if len(key) > 1:
            raise InputError("modular queries take one id column; ask subsets instead")
        factor, shift = (
            exp.convert(int(queries.parameters[name][position])) for name in self.needs
        )
        wide = exp.cast(column(key[0]), "BIGINT")
        small = exp.Paren(this=_mod(wide, PRIME))
        mixed = exp.Paren(
            this=exp.Add(this=exp.Mul(this=small, expression=factor), expression=shift)
        )
        return exp.EQ(this=_mod(exp.Paren(this=_mod(mixed, PRIME)), 2), expression=exp.convert(0))


def _mod(of: "exp.Expr", by: int) -> "exp.Expr":
    from sqlglot import exp

    return exp.Mod(this=of, expression=exp.convert(by))


def fits_modular(ids: NDArray[Any]) -> bool:
    """Whether hashed queries can be asked about people with such ids."""
    return are_integers(ids) and bool(ids.min() >= 0)


def modular_queries(ids: NDArray[Any], m: int, rng: np.random.Generator) -> Queries:
    """m independent queries, each counting half of the people, whichever their ids say."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    if not fits_modular(ids):
        raise InputError("modular queries take whole-number ids of 0 or more; ask subsets instead")
    factor, shift = rng.integers(1, PRIME, m), rng.integers(0, PRIME, m)
    small = (ids % PRIME).astype(np.int64)
    rows = (
        (((small * a + b) % PRIME) % 2 == 0)[None, :] for a, b in zip(factor, shift, strict=True)
    )
    members = held(rows, m, ids.size)
    return Queries(ids, members, Modular(), {"factor": factor, "shift": shift})
