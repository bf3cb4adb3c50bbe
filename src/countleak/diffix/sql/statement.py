"""The tree of an allowed question: what ``parse`` makes, ``layers`` and ``render`` read."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

Value = Fraction | str


class Kind(StrEnum):
    """What the values of a column are; whatever is no number is read as text."""

    WHOLE = "whole"
    NUMBER = "number"
    TEXT = "text"

    @property
    def numeric(self) -> bool:
        """Whether it can be computed with."""
        return self is not Kind.TEXT


@dataclass(frozen=True)
class Table:
    """A table that may be asked about, and which of its columns names the user of a row.

    ``single`` are the columns in which no value occurs twice. ``isolating`` are those whose
    values mostly belong to one user each.
    """

    name: str
    user: str
    columns: dict[str, Kind]
    single: frozenset[str] = frozenset()
    isolating: frozenset[str] = frozenset()

    @property
    def one_row_a_user(self) -> bool:
        """Whether counting rows is counting users."""
        return self.user in self.single


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Constant:
    """A number or a text, as the question wrote it."""

    value: Value

    @property
    def kind(self) -> Kind:
        """What it compares with."""
        return Kind.TEXT if isinstance(self.value, str) else Kind.NUMBER


@dataclass(frozen=True)
class Call:
    """A function or operator of ``functions.FUNCTIONS`` with its arguments."""

    function: str
    arguments: tuple["Expression", ...]
    kind: Kind


Expression = Column | Constant | Call


def columns_of(expression: Expression) -> Iterator[Column]:
    """The columns an expression mentions, as often as it does."""
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def count_calls(expression: Expression) -> int:
    """How many functions and operators an expression uses."""
    if not isinstance(expression, Call):
        return 0
    return 1 + sum(count_calls(argument) for argument in expression.arguments)


def uses_constant(expression: Expression) -> bool:
    """Whether a constant stands anywhere in the expression."""
    if isinstance(expression, Call):
        return any(uses_constant(argument) for argument in expression.arguments)
    return isinstance(expression, Constant)


@dataclass(frozen=True)
class Equal:
    """``left = right``; clear where it is a column and a constant."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Differs:
    """``left <> constant``."""

    left: Expression
    constant: Constant


@dataclass(frozen=True)
class Range:
    """``low <= column < high``."""

    column: Column
    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class Among:
    """``left IN (constants)``; the constants are distinct."""

    left: Expression
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class Like:
    """``column [NOT] LIKE pattern``, with ILIKE where case does not matter."""

    column: Column
    pattern: str
    negated: bool = False
    any_case: bool = False


@dataclass(frozen=True)
class Null:
    """``column IS [NOT] NULL``."""

    column: Column
    negated: bool = False


Condition = Equal | Differs | Range | Among | Like | Null


def expressions_of(condition: Condition) -> tuple[Expression, ...]:
    """The expressions a condition compares."""
    match condition:
        case Equal():
            return condition.left, condition.right
        case Differs() | Among():
            return (condition.left,)
        case _:
            return (condition.column,)


def mentioned(condition: Condition) -> tuple[Column, ...]:
    """The columns of a condition, each once, by name."""
    found = {c for expression in expressions_of(condition) for c in columns_of(expression)}
    return tuple(sorted(found, key=lambda column: column.name))


@dataclass(frozen=True)
class Aggregate:
    """``count``, ``sum`` or ``avg`` of a column (count: or of the rows), under its ``label``."""

    function: str
    column: Column | None
    distinct: bool
    label: str


@dataclass(frozen=True)
class Statement:
    """A question: aggregates over the rows of all ``conditions``, for every group.

    ``shown`` are the positions, among groups and then aggregates, of what was selected.
    """

    table: Table
    aggregates: tuple[Aggregate, ...]
    groups: tuple[Expression, ...] = ()
    conditions: tuple[Condition, ...] = ()
    labels: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
