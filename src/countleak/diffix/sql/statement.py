"""The tree of an allowed question: what ``parser`` makes, ``noise`` and ``render`` read."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from countleak.diffix.sql.dates import date_of, snap_dates

Value = Fraction | str


class Kind(StrEnum):
    """What the values of a column are; whatever is no number and no date is read as text."""

    WHOLE = "whole"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"

    @property
    def numeric(self) -> bool:
        """Whether it can be computed with."""
        return self in (Kind.WHOLE, Kind.NUMBER)

    @property
    def is_double(self) -> bool:
        """Whether the database compares it as a number: dates by their days."""
        return self is not Kind.TEXT

    def matches(self, other: "Kind") -> bool:
        """Whether one can stand for the other."""
        return self is other or (self.numeric and other.numeric)


@dataclass(frozen=True)
class Table:
    """A table that may be asked about, and which of its columns names the user of a row.

    ``single`` are the columns in which no value occurs twice. ``isolating`` are those whose
    values mostly belong to one user each. ``per_user`` says what its rows are made of, where a
    subquery makes one of all rows of a user. ``joined`` are the tables it joins, where
    ``joins.joined`` made it. Users are hashed under the names of ``people``, a table and its user
    column, so that they are the same in all tables of a database; None stands for its own.
    """

    name: str
    user: str
    columns: dict[str, Kind] = field(hash=False)
    single: frozenset[str] = frozenset()
    isolating: frozenset[str] = frozenset()
    per_user: "PerUser | None" = None
    joined: tuple["Table", ...] = ()
    people: tuple[str, str] | None = None

    @property
    def one_row_per_user(self) -> bool:
        """Whether counting rows is counting users."""
        return self.user in self.single

    @property
    def users(self) -> frozenset[str]:
        """The columns that name the user of a row; of a join, one of each table, all equal."""
        return frozenset(t.in_join(t.user) for t in self.joined) or frozenset({self.user})

    def in_join(self, name: str) -> str:
        """What a column is called in a join."""
        return f"{self.name}.{name}"

    def origin(self, name: str) -> tuple[str, str]:
        """The table and the name under which a column was declared: what noise is seeded with."""
        columns = ((t, own) for t in self.joined for own in t.columns if t.in_join(own) == name)
        return next(((table.name, own) for table, own in columns), (self.name, name))


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
    """A function or operator of ``expressions.FUNCTIONS`` with its arguments."""

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


def describe(expression: Expression) -> str:
    """The one spelling of an expression."""
    match expression:
        case Column(name=name):
            return f"`{name}`"
        case Constant(value=value):
            return value if isinstance(value, str) else show(value)
        case Call(function=name):
            return f"{name}({', '.join(map(describe, expression.arguments))})"


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
    columns = {c for expression in expressions_of(condition) for c in columns_of(expression)}
    return tuple(sorted(columns, key=lambda column: column.name))


@dataclass(frozen=True)
class Aggregate:
    """A function of a column (a count: or of the rows), under its ``label``.

    ``count``, ``sum``, ``avg``, ``min``, ``max``, ``median``, ``stddev``, ``variance``, or the SD
    of the noise of one, as ``count_noise``.
    """

    function: str
    column: Column | None
    distinct: bool
    label: str


@dataclass(frozen=True)
class PerUser:
    """A subquery that groups by the user id: aggregates of a ``table``, under their columns."""

    table: Table
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the aggregates."""
        return tuple(Column(each.label, kind_per_user(each)) for each in self.aggregates)

    @property
    def grouped(self) -> Table:
        """The table of one row per user."""
        user = self.table.user
        columns = {column.name: column.kind for column in self.columns}
        return replace(
            self.table,
            columns={user: self.table.columns[user]} | columns,
            single=frozenset({user}),
            isolating=self.table.isolating | set(columns),
            per_user=self,
        )


def kind_per_user(aggregate: Aggregate) -> Kind:
    """What the aggregate of a user's rows is; sums and averages leave the whole numbers."""
    if aggregate.function == "count" or aggregate.column is None:
        return Kind.WHOLE
    return Kind.NUMBER if aggregate.function in ("sum", "avg") else aggregate.column.kind


@dataclass(frozen=True)
class Having:
    """Rows whose value at a position compares so with a constant."""

    position: int
    operator: str
    value: Value


@dataclass(frozen=True)
class Order:
    """Rows sorted by the value at a position."""

    position: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Statement:
    """A question: aggregates over the rows of all ``conditions``, for every group.

    ``shown`` are the positions, among groups and then aggregates, of what was selected; ``having``,
    ``order``, ``distinct``, ``limit`` and ``offset`` work on the rows of the answer; ``notices``
    say what was changed about the question.
    """

    table: Table
    aggregates: tuple[Aggregate, ...]
    groups: tuple[Expression, ...] = ()
    conditions: tuple[Condition, ...] = ()
    labels: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    having: tuple[Having, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False

    @property
    def inner(self) -> tuple[Condition, ...]:
        """The conditions on the rows that a subquery groups by user."""
        per_user = self.table.per_user
        grouped = set(per_user.columns) if per_user else set()
        return tuple(c for c in self.conditions if per_user and not grouped & {*mentioned(c)})

    @property
    def outer(self) -> tuple[Condition, ...]:
        """The conditions on the rows of the table."""
        inner = self.inner
        return tuple(condition for condition in self.conditions if condition not in inner)


def snap_ranges(statement: Statement) -> Statement:
    """The statement with its ranges on the grid, and a notice for each that moved."""
    conditions: list[Condition] = []
    notices: list[str] = []
    for condition in statement.conditions:
        if isinstance(condition, Range):
            condition, notice = _snapped(condition)
            notices += [notice] if notice else []
        conditions.append(condition)
    return replace(statement, conditions=tuple(conditions), notices=tuple(notices))


@lru_cache(maxsize=1000)
def _snapped(condition: Range) -> tuple[Range, str | None]:
    name, is_date = condition.column.name, condition.column.kind is Kind.DATE
    low, high = (snap_dates if is_date else snap)(condition.low, condition.high)
    if (low, high) == (condition.low, condition.high):
        return condition, None
    first, end = (date_of(low), date_of(high)) if is_date else (show(low), show(high))
    notice = f"The range for column `{name}` has been adjusted to {first} <= `{name}` < {end}."
    return replace(condition, low=low, high=high), notice


def snap(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """The smallest range of the grid that holds [low, high).

    Its size is 1, 2 or 5 times a power of ten, and it starts at a multiple of half its size, so
    that a range cannot be moved along one person at a time.
    """
    for size in _sizes(high - low):
        start = (low // (size / 2)) * (size / 2)
        if start + size >= high:
            return start, start + size
    raise AssertionError("sizes grow without end")


def is_width(width: Fraction) -> bool:
    """Whether a width is 1, 2 or 5 times a power of ten."""
    return width > 0 and next(_sizes(width)) == width


def show(number: Fraction) -> str:
    """A bound as people write it: 2000, 0.5."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"


def _sizes(least: Fraction) -> Iterator[Fraction]:
    """The sizes of the grid from ``least`` upwards."""
    power = Fraction(1)
    while power > least:
        power /= 10
    while power * 10 <= least:
        power *= 10
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                yield factor * power
        power *= 10
