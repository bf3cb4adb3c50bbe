"""The noise of a bucket: its layers, the seed of each, and what is drawn from the seeds.

A layer is made of elements: the column it is about, what the condition says of it (a constant, a
range, a mark), or else the values the column takes among the matching rows; a UID layer adds the
users of those rows. Every element is hashed with its role and the secret salt, and the seed is
the XOR of the hashes: same people and condition, same seed, same noise. Equal layers count once.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import xor
from statistics import NormalDist

from countleak.diffix.salt import Salt
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
    Table,
    columns_of,
    mentioned,
    show,
)

UNIT = NormalDist()
BITS = 53
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
        seed = self.fixed ^ (bucket.user_hash if self.users else 0)
        for column in self.values:
            seed ^= bucket.value_hashes[column.name]
        return seed


# What a release makes of the layers of conditions and groups.
Combine = Callable[[list[Layer], Salt], list[Layer]]


@dataclass(frozen=True)
class Layering:
    """Which layers a release gives a statement.

    ``hides`` says whether a condition on a column that also has a range adds none. This is the flaw
    the attack goes through: its digit predicate, on the id that it also limits to a range, costs no
    noise at all. ``combine`` makes of all layers those that count.
    """

    hides: bool = False
    combine: Combine = lambda layers, salt: layers

    def seen(self, statement: Statement) -> tuple[Condition, ...]:
        """The conditions that add layers."""
        if not self.hides:
            return statement.conditions
        ranged = {c.column.name for c in statement.conditions if isinstance(c, Range)}
        return tuple(
            condition
            for condition in statement.conditions
            if isinstance(condition, Range) or not ranged & {c.name for c in mentioned(condition)}
        )


def _only_uid(layers: list[Layer], salt: Salt) -> list[Layer]:
    return [layer for layer in layers if layer.users]


def _merged(layers: list[Layer], salt: Salt) -> list[Layer]:
    parts = [layer for layer in layers if not layer.users]
    fixed = reduce(xor, (layer.fixed for layer in parts), salt.element("pair"))
    values = tuple(dict.fromkeys(column for layer in parts for column in layer.values))
    return _pair(Layer(fixed, values))


# Two layers per condition and group column: what it says, and the same with the users.
STATIC_AND_UID = Layering()
HIDDEN_BY_RANGES = Layering(hides=True)
# One layer per condition, from its text and its users.
ONE_PER_CONDITION = Layering(combine=_only_uid)
# Two layers in all: everything the query says, and the same with the users.
ONE_PAIR = Layering(combine=_merged)


class Layers:
    """The noise layers of a statement, built once for all its buckets."""

    def __init__(self, layering: Layering, statement: Statement, salt: Salt):
        """Build the layers of the conditions; those of groups differ by bucket."""
        self._layering = layering
        self._statement = statement
        self._salt = salt
        self._of_conditions = [
            layer
            for condition in layering.seen(statement)
            for layer in _of_condition(statement.table, condition, salt)
        ]

    @property
    def materials(self) -> tuple[Column, ...]:
        """The columns whose values the layers are made of."""
        columns = [column for layer in self._of_conditions for column in layer.values]
        for group in self._statement.groups:
            if not isinstance(group, Column):
                columns += columns_of(group)
        return tuple(dict.fromkeys(columns))

    def seeds(self, bucket: Bucket) -> tuple[int, ...]:
        """The seeds of a bucket's layers, equal ones once, in an order of their own.

        Noise is a sum of doubles: in another order its last digit could differ.
        """
        table, salt = self._statement.table, self._salt
        layers = list(self._of_conditions)
        for place, group in enumerate(self._statement.groups):
            layers += _pair(_of_group(table, place, group, salt, bucket))
        layers = layers or [Layer(salt.element("generic", table.name), users=True)]
        combined = self._layering.combine(layers, salt)
        return tuple(sorted({layer.seed(bucket) for layer in combined}))


def _pair(layer: Layer) -> list[Layer]:
    return [layer, Layer(layer.fixed, layer.values, users=True)]


def _of_condition(table: Table, condition: Condition, salt: Salt) -> Iterator[Layer]:
    about = _about(table, mentioned(condition), salt)
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


def _of_group(table: Table, place: int, group: Expression, salt: Salt, bucket: Bucket) -> Layer:
    columns = tuple(dict.fromkeys(columns_of(group)))
    about = _about(table, columns, salt)
    if bucket.merged:
        return Layer(about ^ salt.element("star"))
    if not isinstance(group, Column):
        return Layer(about, columns)
    value = bucket.key[place]
    if isinstance(value, str | int | float):
        # A group is the condition that its column has this value, and is seeded like it.
        return Layer(about ^ salt.value(table, group, value))
    return Layer(about ^ salt.element("value", "null"))


def _about(table: Table, columns: tuple[Column, ...], salt: Salt) -> int:
    return reduce(xor, (salt.element("column", table.name, column.name) for column in columns), 0)


def _spelled(constant: Constant) -> str:
    return constant.value if isinstance(constant.value, str) else show(constant.value)


def gaussian(seed: int, purpose: str) -> float:
    """A number of mean 0 and SD 1, the same for a seed and a ``purpose`` here and anywhere."""
    drawn = hashlib.sha256(f"{purpose}:{seed:016x}".encode()).digest()
    # The middle of one of 2^53 equal slices: never 0 or 1, where the inverse ends.
    uniform = (int.from_bytes(drawn[:8], "big") >> (64 - BITS)) + 0.5
    return UNIT.inv_cdf(min(uniform / 2**BITS, 1 - 2.0**-BITS))


def total(seeds: Iterable[int], purpose: str, sd: float) -> float:
    """The noise of all layers together, each of SD ``sd``."""
    return sd * sum(gaussian(seed, purpose) for seed in seeds)


@dataclass(frozen=True)
class Threshold:
    """``max(round(mean + sd * sum of the layers' gaussians), least)`` users are not suppressed."""

    mean: float = 4.0
    sd: float = 0.5
    least: int = 2

    def draw(self, seeds: Iterable[int]) -> int:
        """The threshold of a bucket with these layers."""
        return max(round(self.mean + total(seeds, "threshold", self.sd)), self.least)
