"""Expressions and conditions as SQL of our own writing: names quoted, constants apart, all cast.

The same text means the same to DuckDB and PostgreSQL, but for what ``Dialect`` writes. Constants
are parameters, so questions that differ in nothing else are one text, which a database plans once.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from countleak.diffix.sql.functions import FUNCTIONS
from countleak.diffix.sql.statement import (
    Aggregate,
    Among,
    Call,
    Column,
    Condition,
    Constant,
    Differs,
    Equal,
    Expression,
    Kind,
    Like,
    Null,
    Range,
    Table,
    columns_of,
    expressions_of,
    mentioned,
)

# A number in a sum is at most this large, so that sums of decimals stay below 38 digits.
LARGEST_ADDED = 1e15

Value = str | float | list[str] | list[float] | list[int] | list[bool]
# The constants of a text, in the order of its parameters $1, $2, ...
Values = list[Value]


class Sql(NamedTuple):
    """A text and the values of its parameters."""

    text: str
    values: Values


class Where(NamedTuple):
    """What rows must meet: ``plain`` comparisons, and then what is ``costly`` to compute, if any.

    A database may stop at a comparison that does not hold, but computes all of what is costly.
    """

    plain: str
    costly: str | None

    @property
    def text(self) -> str:
        """Both, in this order."""
        return self.plain if self.costly is None else f"{self.plain} AND {self.costly}"


class Hash(NamedTuple):
    """64 bits that each value of a column has in a role: as a ``value`` of it, or as a ``user``."""

    column: Column
    role: str

    @property
    def name(self) -> str:
        """The column that holds them; a question cannot name it."""
        return f"{self.role} hash of {self.column.name}"


class Dialect(Protocol):
    """What the databases do not agree on."""

    def source(self, table: Table, columns: Sequence[Column]) -> str:
        """The table with these columns, for FROM.

        No value of them can raise an error: numbers have the magnitudes of ``magnitude``, or are
        NULL where they are none, and texts are no longer than the limit. Rows without a user are
        left out, but for one that is nobody's: all its columns are NULL.
        """
        ...

    @property
    def apart(self) -> str:
        """What more rows are grouped by, after a comma, where decoys are among them."""
        ...

    def matching(
        self, table: Table, source: str, hashes: Sequence[Hash], where: Where, decoys: str
    ) -> str:
        """The rows of a source where conditions hold, with ``hashes``, for FROM.

        Where the work on a row could be measured, ``decoys`` fill up what few rows there are. They
        are computed with like all others, and ``counted`` and ``weighed`` make them count for
        nothing.
        """
        ...

    def hashed(self, table: Table, of: Hash) -> str:
        """The hash of a column's value."""
        ...

    def counted(self, expression: str) -> str:
        """The expression, NULL for decoys."""
        ...

    def weighed(self, expression: str) -> str:
        """The number, 0 for decoys."""
        ...

    def largest(self, expression: str, count: int) -> str:
        """An array of the ``count`` largest values of a group, descending."""
        ...


def quote(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def write_text(value: str) -> str:
    """A text constant in SQL."""
    return "'" + value.replace("'", "''") + "'"


def parameter(value: Value, kind: str, values: Values) -> str:
    """The next parameter of a text, cast to a ``kind``; its value is added to ``values``."""
    values.append(value)
    return f"CAST(${len(values)} AS {kind})"


def write(expression: Expression, values: Values) -> str:
    """An expression in SQL: a double or a text. Its constants are added to ``values``."""
    match expression:
        case Column():
            kind = "DOUBLE PRECISION" if expression.kind.is_double else "VARCHAR"
            return f"CAST({quote(expression.name)} AS {kind})"
        case Constant(value=str() as text):
            return parameter(text, "VARCHAR", values)
        case Constant(value=value):
            return parameter(float(value), "DOUBLE PRECISION", values)
        case Call():
            arguments = [write(argument, values) for argument in expression.arguments]
            return FUNCTIONS[expression.function].sql.format(*arguments)
    raise AssertionError(expression)


def write_key(expression: Expression, values: Values) -> str:
    """A group's key, NULL where a column is."""
    if isinstance(expression, Column):
        return write(expression, values)
    names = dict.fromkeys(quote(column.name) for column in columns_of(expression))
    unknown = " OR ".join(f"{name} IS NULL" for name in names)
    written = write(expression, values)
    # Adding 0 makes one of the two zeros.
    known = f"{written} + CAST(0 AS DOUBLE PRECISION)" if expression.kind.is_double else written
    return f"CASE WHEN {unknown} THEN NULL ELSE {known} END"


def write_amount(aggregate: Aggregate) -> str:
    """What a row adds; NULL where it adds nothing."""
    if aggregate.column is None:
        return "1"
    name = quote(aggregate.column.name)
    if aggregate.function == "count":
        return name
    bound = f"CAST({LARGEST_ADDED:g} AS DOUBLE PRECISION)"
    if aggregate.function == "stddev":
        number = f"CAST({name} AS DOUBLE PRECISION)"
        return f"CASE WHEN {name} IS NOT NULL THEN least(greatest({number}, -{bound}), {bound}) END"
    # Decimals add up to the same in any order; doubles would not, and noise must be sticky.
    if aggregate.column.kind is Kind.WHOLE:
        return f"CAST({name} AS DECIMAL(38, 0))"
    bounded = f"least(greatest({name}, -{bound}), {bound})"
    return f"CASE WHEN {name} IS NOT NULL THEN CAST({bounded} AS DECIMAL(38, 6)) END"


def write_where(table: Table, conditions: Iterable[Condition], values: Values) -> Where:
    """The WHERE clause: the rows of all conditions, and nobody's.

    Whoever measures time could tell how far a row came before a condition left it out. So nobody's
    row passes every condition, and what computes is computed of every row that gets there.
    """
    nobody = f"{quote(table.user)} IS NULL"
    plain: list[str] = []
    costly: list[str] = []
    known: list[str] = []
    for condition in conditions:
        if _is_costly(condition):
            costly.append(_compare(condition, values))
            # greatest() skips NULL, so a column of a function must not be.
            known += [f"{quote(column.name)} IS NOT NULL" for column in mentioned(condition)]
        else:
            plain.append(f"({_compare(condition, values)} OR {nobody})")
    if not costly:
        return Where(" AND ".join(plain) or "TRUE", None)
    if len(costly) > 1:
        # AND would stop at the first that does not hold; bits are all computed.
        costly = [f"({' & '.join(f'CAST({each} AS INTEGER)' for each in costly)}) = 1"]
    computed = " AND ".join([*costly, *dict.fromkeys(known)])
    return Where(" AND ".join(plain) or "TRUE", f"({computed} OR {nobody})")


def _compare(condition: Condition, values: Values) -> str:
    match condition:
        case Null():
            return f"{quote(condition.column.name)} IS {'NOT ' if condition.negated else ''}NULL"
        case Equal():
            return f"{write(condition.left, values)} = {write(condition.right, values)}"
        case Differs():
            return f"{write(condition.left, values)} <> {write(condition.constant, values)}"
        case Range():
            column = write(condition.column, values)
            low, high = (write(Constant(b), values) for b in (condition.low, condition.high))
            return f"{column} >= {low} AND {column} < {high}"
        case Among():
            constants = ", ".join(write(constant, values) for constant in condition.constants)
            return f"{write(condition.left, values)} IN ({constants})"
        case Like():
            operator = (
                f"{'NOT ' if condition.negated else ''}{'I' if condition.any_case else ''}LIKE"
            )
            pattern = parameter(condition.pattern, "VARCHAR", values)
            return f"{write(condition.column, values)} {operator} {pattern}"
    raise AssertionError(condition)


def _is_costly(condition: Condition) -> bool:
    """Whether it takes a row more than a comparison."""
    return isinstance(condition, Among | Like) or any(
        isinstance(expression, Call) for expression in expressions_of(condition)
    )
