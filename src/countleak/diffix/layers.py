"""The noise layers of a bucket, each with its seed.

A layer is made of elements: the column it is about, what the condition says of it (a constant, a
range, a mark), or else the values the column takes among the matching rows; a UID layer adds the
users of those rows. Every element is hashed with its role and the secret salt, and the seed is
the XOR of the hashes: same people and condition, same seed, same noise. Equal layers count once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Protocol

from countleak.diffix.salt import Salt
from countleak.diffix.sql.align import show
from countleak.diffix.sql.statement import (
    Among,
    Column,
    Condition,
    Constant,
    Differs,
    Equal,
    Expression,
    Like,
    Null,
    Range,
    Statement,
    columns_of,
    mentioned,
)

# The key of the row into which suppressed groups merge.
STAR = "*"


@dataclass(frozen=True)
class Bucket:
    """The rows of one group: how many users, and hashes of their set and of columns' values.

    ``merged`` marks the row into which the suppressed groups went.
    """

    key: tuple[object, ...]
    users: int
    user_hash: int
    value_hashes: Mapping[str, int]
    merged: bool = False


@dataclass(frozen=True)
class Layer:
    """``fixed``: XOR of elements known without the rows; ``values``: columns that add theirs."""

    fixed: int
    values: tuple[Column, ...] = ()
    users: bool = False

    def seed(self, bucket: Bucket) -> int:
        """The seed of this layer in a bucket."""
        found = self.fixed ^ (bucket.user_hash if self.users else 0)
        for column in self.values:
            found ^= bucket.value_hashes[column.name]
        return found


class Layering(Protocol):
    """Which layers a release gives a statement, for a bucket's key."""

    def __call__(self, statement: Statement, salt: Salt, bucket: Bucket | None) -> list[Layer]:
        """The layers; without a bucket those of the conditions, to see what they are made of."""
        ...


def static_and_uid(statement: Statement, salt: Salt, bucket: Bucket | None) -> list[Layer]:
    """Two layers a condition and a group column: what it says, and the same with the users."""
    return _layers(statement, statement.conditions, salt, bucket)


def hidden_by_ranges(statement: Statement, salt: Salt, bucket: Bucket | None) -> list[Layer]:
    """The same, but a condition on a column that also has a range adds none.

    This is the flaw the attack goes through: its digit predicate, on the id that it also limits
    to a range, costs no noise at all.
    """
    ranged = {c.column.name for c in statement.conditions if isinstance(c, Range)}
    seen = [
        condition
        for condition in statement.conditions
        if isinstance(condition, Range) or not ranged & {c.name for c in mentioned(condition)}
    ]
    return _layers(statement, tuple(seen), salt, bucket)


def one_a_condition(statement: Statement, salt: Salt, bucket: Bucket | None) -> list[Layer]:
    """One layer a condition, from its text and its users."""
    every = static_and_uid(statement, salt, bucket)
    return [layer for layer in every if layer.users]


def one_pair(statement: Statement, salt: Salt, bucket: Bucket | None) -> list[Layer]:
    """Two layers in all: everything the query says, and the same with the users."""
    parts = [layer for layer in static_and_uid(statement, salt, bucket) if not layer.users]
    fixed = reduce(xor, (layer.fixed for layer in parts), salt.element("pair"))
    values = tuple(dict.fromkeys(column for layer in parts for column in layer.values))
    return [Layer(fixed, values), Layer(fixed, values, users=True)]


def seeds(layering: Layering, statement: Statement, salt: Salt, bucket: Bucket) -> tuple[int, ...]:
    """The seeds of a bucket's layers, equal ones once, in an order of their own.

    Noise is a sum of doubles: in another order its last digit could differ.
    """
    found = {layer.seed(bucket) for layer in layering(statement, salt, bucket)}
    return tuple(sorted(found))


def materials(layering: Layering, statement: Statement, salt: Salt) -> tuple[Column, ...]:
    """The columns whose values the layers of a statement are made of."""
    layers = layering(statement, salt, None)
    return tuple(dict.fromkeys(column for layer in layers for column in layer.values))


def _layers(
    statement: Statement, conditions: tuple[Condition, ...], salt: Salt, bucket: Bucket | None
) -> list[Layer]:
    found = [layer for c in conditions for layer in _of_condition(statement, c, salt)]
    for place, group in enumerate(statement.groups):
        found += _pair(_of_group(statement, place, group, salt, bucket))
    generic = Layer(salt.element("generic", statement.table.name), users=True)
    return found or [generic]


def _pair(layer: Layer) -> list[Layer]:
    return [layer, Layer(layer.fixed, layer.values, users=True)]


def _of_condition(statement: Statement, condition: Condition, salt: Salt) -> Iterator[Layer]:
    table = statement.table
    about = _about(statement, mentioned(condition), salt)
    match condition:
        case Null(column=column, negated=True) if column.name == table.user:
            return
        case Null():
            mark = salt.element("<>" if condition.negated else "value", "null")
            yield from _pair(Layer(about ^ mark))
        case Equal(left=Column() as column, right=Constant(value=value)):
            yield from _pair(Layer(about ^ salt.value(table, column, value)))
        case Equal():
            yield from _pair(Layer(about, mentioned(condition)))
        case Range():
            kind = salt.element("range", show(condition.low), show(condition.high))
            yield from _pair(Layer(about ^ kind, (condition.column,)))
        case Differs():
            kind = salt.element("<>", _spelled(condition.constant))
            yield from _pair(Layer(about ^ kind, mentioned(condition)))
        case Among():
            yield Layer(about, mentioned(condition))
            for constant in condition.constants:
                kind = salt.element("in", _spelled(constant))
                yield Layer(about ^ kind, mentioned(condition), users=True)
        case Like():
            kind = salt.element("like", str(condition.negated), condition.pattern)
            yield Layer(about ^ kind, (condition.column,))
            places = [i for i, letter in enumerate(condition.pattern) if letter in "%_"]
            for place in places or [-1]:
                wild = salt.element("wildcard", str(place), str(len(condition.pattern)))
                yield Layer(about ^ kind ^ wild, (condition.column,), users=True)


def _of_group(
    statement: Statement, place: int, group: Expression, salt: Salt, bucket: Bucket | None
) -> Layer:
    columns = tuple(dict.fromkeys(columns_of(group)))
    about = _about(statement, columns, salt)
    if bucket is not None and bucket.merged:
        return Layer(about ^ salt.element("star"))
    if not isinstance(group, Column):
        return Layer(about, columns)
    value = bucket.key[place] if bucket is not None else None
    if isinstance(value, str | int | float):
        # A group is the condition that its column has this value, and is seeded like it.
        return Layer(about ^ salt.value(statement.table, group, value))
    return Layer(about ^ salt.element("value", "null"))


def _about(statement: Statement, columns: tuple[Column, ...], salt: Salt) -> int:
    table = statement.table.name
    return reduce(xor, (salt.element("column", table, column.name) for column in columns), 0)


def _spelled(constant: Constant) -> str:
    return constant.value if isinstance(constant.value, str) else show(constant.value)
