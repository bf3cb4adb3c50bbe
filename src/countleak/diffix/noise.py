"""The noise of a bucket: its layers, the seed of each, and what is drawn from the seeds.

A layer is made of elements: the column it is about, what the condition says of it (a constant, a
range, a mark), or else the values the column takes among the matching rows; a UID layer adds the
users of those rows. Every element is hashed with its role and the secret salt, and the seed is
the XOR of the hashes: same people and condition, same seed, same noise. Equal layers count once.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import xor
from statistics import NormalDist

from countleak.diffix.salt import Salt
from countleak.diffix.sql.functions import ROUNDING
from countleak.diffix.sql.statement import (
    Among,
    Call,
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
    describe,
    expressions_of,
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


# A layer, and the condition or group that it comes from; None where it comes from no single one.
Sourced = tuple[Condition | Expression | None, Layer]


@dataclass(frozen=True)
class Layering:
    """Which layers a release gives a statement.

    ``hides`` says whether a condition on a column that also has a range adds none. This is the flaw
    the attack goes through: its digit predicate, on the id that it also limits to a range, costs no
    noise at all. ``only_uid`` says whether static layers are left out. ``cells`` says whether there
    is one pair in all: what the query says about a cell of a table, and the cell's users, whatever
    it says, so that no other spelling gives them other noise.
    """

    hides: bool = False
    only_uid: bool = False
    cells: bool = False

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


# Two layers per condition and group column: what it says, and the same with the users.
STATIC_AND_UID = Layering()
HIDDEN_BY_RANGES = Layering(hides=True)
# One layer per condition, from its text and its users.
ONE_PER_CONDITION = Layering(only_uid=True)
ONE_PAIR = Layering(cells=True)


class Layers:
    """The noise layers of a statement, built once for all its buckets."""

    def __init__(self, layering: Layering, statement: Statement, salt: Salt):
        """Build the layers of the conditions; those of groups differ by bucket."""
        self._layering = layering
        self._statement = statement
        self._salt = salt
        conditions = () if layering.cells else layering.seen(statement)
        self._of_conditions: list[Sourced] = [
            (condition, layer)
            for condition in conditions
            for layer in _of_condition(statement.table, condition, salt)
        ]

    @property
    def materials(self) -> tuple[Column, ...]:
        """The columns whose values the layers are made of."""
        columns = [column for _, layer in self._of_conditions for column in layer.values]
        for group in self._statement.groups:
            if not isinstance(group, Column) and not self._layering.cells:
                columns += columns_of(group)
        return tuple(dict.fromkeys(columns))

    def seeds(self, bucket: Bucket) -> tuple[int, ...]:
        """The seeds of a bucket's layers, equal ones once, in an order of their own.

        Noise is a sum of doubles: in another order its last digit could differ.
        """
        return tuple(sorted({layer.seed(bucket) for _, layer in self.sourced(bucket)}))

    def sourced(self, bucket: Bucket) -> list[Sourced]:
        """Every layer of a bucket, with the condition or group that it comes from."""
        table, salt = self._statement.table, self._salt
        if self._layering.cells:
            return [(None, layer) for layer in _of_cell(self._statement, salt, bucket)]
        layers = list(self._of_conditions)
        for place, group in enumerate(self._statement.groups):
            layers += [(group, layer) for layer in _of_group(table, place, group, salt, bucket)]
        layers = layers or [(None, _generic(table, salt))]
        return [each for each in layers if each[1].users or not self._layering.only_uid]


def _generic(table: Table, salt: Salt) -> Layer:
    """The layer of a question without any other: the users alone, joined or not."""
    name, _ = table.people or (table.name, table.user)
    return Layer(salt.element("generic", name), users=True)


def _pair(layer: Layer) -> list[Layer]:
    return [layer, Layer(layer.fixed, layer.values, users=True)]


def _of_condition(table: Table, condition: Condition, salt: Salt) -> Iterator[Layer]:
    """The layers of a condition; those of an expression over several columns for each of them."""
    for column in mentioned(condition):
        about = salt.element("column", *table.origin(column.name))
        yield from _of_column(table, condition, column, about, salt)


def _of_column(
    table: Table, condition: Condition, column: Column, about: int, salt: Salt
) -> Iterator[Layer]:
    match condition:
        case Null(negated=True) if column.name in table.users:
            return
        case Null():
            mark = salt.element("<>" if condition.negated else "value", "null")
            yield from _pair(Layer(about ^ mark))
        case Equal(left=Column(), right=Constant(value=value)):
            yield from _pair(Layer(about ^ salt.value(table, column, value)))
        case Equal():
            yield from _pair(Layer(about ^ _implicit(expressions_of(condition), salt), (column,)))
        case Range():
            kind = salt.element("range", show(condition.low), show(condition.high))
            yield from _pair(Layer(about ^ kind, (column,)))
        case Differs(constant=constant):
            yield from _pair(Layer(about ^ salt.element("<>", _spelled(constant)), (column,)))
            if isinstance(constant.value, str):
                # Texts that differ in case only share this one.
                yield Layer(about ^ salt.element("<> in any case", constant.value.lower()))
        case Among():
            yield Layer(about, (column,))
            for constant in condition.constants:
                kind = salt.element("in", _spelled(constant))
                yield Layer(about ^ kind, (column,), users=True)
        case Like():
            yield from _of_pattern(condition, about, salt)


def _of_pattern(condition: Like, about: int, salt: Salt) -> Iterator[Layer]:
    """One static layer, and a UID layer per wildcard; case is no other pattern."""
    pattern = condition.pattern.lower()
    kind = salt.element("like", str(condition.negated), pattern)
    yield Layer(about ^ kind, (condition.column,))
    places = [i for i, letter in enumerate(pattern) if letter in "%_"]
    for place in places or [-1]:
        wild = salt.element("wildcard", str(place), str(len(pattern)))
        yield Layer(about ^ kind ^ wild, (condition.column,), users=True)


def _of_group(
    table: Table, place: int, group: Expression, salt: Salt, bucket: Bucket
) -> Iterator[Layer]:
    """The layers of a group: those of the condition that its expression has this value."""
    for column in dict.fromkeys(columns_of(group)):
        about = salt.element("column", *table.origin(column.name))
        value = None if bucket.merged else bucket.key[place]
        if bucket.merged:
            yield from _pair(Layer(about ^ salt.element("star")))
        elif not isinstance(group, Column):
            yield from _pair(Layer(about ^ _implicit((group,), salt), (column,)))
        elif isinstance(value, str | int | float):
            yield from _pair(Layer(about ^ salt.value(table, group, value)))
        else:
            yield from _pair(Layer(about ^ salt.element("value", "null")))


def _implicit(expressions: Iterable[Expression], salt: Salt) -> int:
    """The mark of an expression that rounds: equality with it is a range."""
    return salt.element("implicit range") if any(map(_rounds, expressions)) else 0


def _rounds(expression: Expression) -> bool:
    return isinstance(expression, Call) and (
        expression.function in ROUNDING or any(map(_rounds, expression.arguments))
    )


def _of_cell(statement: Statement, salt: Salt, bucket: Bucket) -> list[Layer]:
    """What is said about a cell, in any order and as group or condition; and its users alone."""
    said = {
        (describe(condition.left), _spelled(condition.right))
        for condition in statement.conditions
        if isinstance(condition, Equal) and isinstance(condition.right, Constant)
    }
    for place, group in enumerate(statement.groups):
        value = STAR if bucket.merged else bucket.key[place]
        said.add((describe(group), _spelled_key(value)))
    table = statement.table.name
    static = reduce(
        xor, (salt.element("cell", table, *part) for part in said), salt.element("cell")
    )
    return [Layer(static), Layer(salt.element("users of a cell", table), users=True)]


def _spelled(constant: Constant) -> str:
    return constant.value if isinstance(constant.value, str) else show(constant.value)


def _spelled_key(value: object) -> str:
    """The key of a group, spelled like the constant that it equals."""
    return show(Fraction(repr(value))) if isinstance(value, float) else str(value)


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
