"""Subsets by a hash of an id and a seed: random halves that nobody has to store or to list.

The seed and the number of queries are all there is to keep, however many people there are; see
``hashing`` for the hash. It takes whole-number ids below 2^34 as they are. Of other whole numbers
it takes the place among all ids, in order, counted from 0: the SQL counts it with a subselect, and
means the same people only if the table holds, between the lowest and the highest id, exactly those
who are asked about.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.hashing import (
    ADDED,
    ALL,
    FIRST,
    MIXED,
    MIXED_AGAIN,
    MOST_COLUMNS,
    HashedRows,
    parts,
    row_keys,
)
from countleak.attack.queries.ids import are_integers
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

# The name that stands for the table in a condition; whoever asks puts the table's own there.
TABLE, PLACE = "the_table_itself", "place_in_order"


@dataclass(frozen=True)
class Hashed:
    """The people of whom a bit of a hash is set."""

    name: str = "hashed"
    needs: tuple[str, ...] = ("key", "part")
    texts: tuple[str, ...] = ()
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        if len(key) > 1:
            raise InputError("hashed queries take one id column; ask subsets instead")
        rows = queries.rows
        assert isinstance(rows, HashedRows)
        row_key, part = (int(queries.parameters[name][position]) for name in self.needs)
        if is_by_id(queries):
            number = exp.cast(column(key[0]), "BIGINT")
            return _bit(number, row_key, part, ~rows.seed & ALL)
        ends = (int(queries.ids.min()), int(queries.ids.max()))
        return _by_place(key[0], ends, _bit(column(PLACE), row_key, part, ~rows.seed & ALL))


def fits_hashed(ids: NDArray[Any]) -> bool:
    """Whether hashed queries can be asked about people with such ids."""
    return are_integers(ids)


def is_by_id(queries: Queries) -> bool:
    """Whether the hash takes the ids themselves, not their places."""
    rows = queries.rows
    return isinstance(rows, HashedRows) and bool(np.array_equal(rows.columns, queries.ids))


def hashed_queries(ids: NDArray[Any], rows: NDArray[np.int64], seed: int) -> Queries:
    """The queries numbered ``rows`` (m,) of a seed of 32 bits, each counting half of the people."""
    if not fits_hashed(ids):
        raise InputError("hashed queries take whole-number ids; ask subsets instead")
    by_id = ids.min() >= 0 and ids.max() < MOST_COLUMNS
    columns = ids.astype(np.int64) if by_id else np.argsort(np.argsort(ids, kind="stable"))
    held = HashedRows(seed, rows.astype(np.int64), columns)
    parameters = {"key": row_keys(rows, seed).astype(np.int64), "part": 2 ** parts(rows)}
    return Queries(ids, held, Hashed(), parameters)


def random_hashed(ids: NDArray[Any], m: int, rng: np.random.Generator) -> Queries:
    """The first m queries of a seed that ``rng`` draws."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    return hashed_queries(ids, np.arange(m), int(rng.integers(0, 2**32)))


def _bit(number: "exp.Expr", row_key: int, part: int, seed: int) -> "exp.Expr":
    """Holds where the bit of a row is set for a number: ``hashing``, written in SQL.

    ``part`` is 2 to the power of which of eight the row is.
    """
    from sqlglot import exp

    quarter = _paren(exp.BitwiseRightShift(this=number, expression=exp.convert(2)))
    v = _masked(exp.Add(this=_times(quarter, ADDED), expression=exp.convert(seed)))
    v = _masked(_times(_folded(v, 16), MIXED))
    v = _masked(_times(_folded(v, 15), MIXED_AGAIN))
    h = _paren(exp.BitwiseXor(this=_folded(v, 15), expression=exp.convert(row_key)))
    h = _folded(_masked(_times(h, FIRST)), 15)
    h = _folded(_masked(_times(h, MIXED_AGAIN)), 16)
    which = _paren(exp.BitwiseAnd(this=number.copy(), expression=exp.convert(3)))
    byte = exp.Case(this=which, ifs=[], default=exp.convert(1 << 24))
    for j in range(3):
        byte = byte.when(exp.convert(j), exp.convert(1 << 8 * j))
    mask = _paren(exp.Mul(this=byte, expression=exp.convert(part)))
    return exp.NEQ(this=_paren(exp.BitwiseAnd(this=h, expression=mask)), expression=exp.convert(0))


def _by_place(key: str, ends: tuple[int, int], holds: "exp.Expr") -> "exp.Expr":
    """Holds for the ids for whose place, counted from 0 among those between the ``ends``, it does.

    Ids that occur in several rows have one place.
    """
    from sqlglot import exp

    from countleak.attack.queries.predicates import column, is_between

    rank = exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=[column(key)]))
    place = exp.Sub(this=rank, expression=exp.convert(1))
    numbered = (
        exp.select(column(key), exp.alias_(place, PLACE, quoted=True))
        .from_(exp.Table(this=exp.to_identifier(TABLE, quoted=True)))
        .where(is_between(key, *ends), copy=False)
    )
    chosen = exp.select(column(key)).from_(numbered.subquery("numbered")).where(holds, copy=False)
    return exp.In(this=column(key), query=chosen.subquery())


def _paren(of: "exp.Expr") -> "exp.Expr":
    from sqlglot import exp

    return exp.Paren(this=of)


def _times(of: "exp.Expr", by: int) -> "exp.Expr":
    from sqlglot import exp

    return exp.Mul(this=of, expression=exp.convert(by))


def _masked(of: "exp.Expr") -> "exp.Expr":
    """The lowest 32 bits."""
    from sqlglot import exp

    return _paren(exp.BitwiseAnd(this=_paren(of), expression=exp.convert(ALL)))


def _folded(v: "exp.Expr", by: int) -> "exp.Expr":
    """v ^ (v >> by)."""
    from sqlglot import exp

    shifted = _paren(exp.BitwiseRightShift(this=v.copy(), expression=exp.convert(by)))
    return _paren(exp.BitwiseXor(this=v, expression=shifted))
