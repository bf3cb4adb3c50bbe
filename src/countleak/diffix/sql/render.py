"""Expressions and conditions as SQL of our own writing: names quoted, constants apart, all cast.

The same text means the same to DuckDB and PostgreSQL, but for what ``Dialect`` writes. Constants
are parameters, so questions that differ in nothing else are one text, which a database plans once.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from countleak.diffix.sql.functions import FUNCTIONS
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
    expressions_of,
    mentioned,
)

Value = str | float | list[str] | list[float] | list[int] | list[bool]
# The constants of a text, in the order of its parameters $1, $2, ...
Values = list[Value]


class Sql(NamedTuple):
    """A text and the values of its parameters."""

    text: str
    values: Values


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

    def source(self, table: Table, columns: Sequence[Column], hashes: Sequence[Hash]) -> str:
        """The table with these columns and hashes, for FROM.

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
        self, table: Table, columns: Sequence[Column], hashes: Sequence[Hash], where: str
    ) -> str:
        """The source where a condition holds, for FROM.

        Where the work on a row could be measured, decoys fill up what few rows there are. They are
        computed with like all others, and ``counted`` and ``weighed`` make them count for nothing.
        """
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


def write_where(statement: Statement, values: Values) -> str:
    """The WHERE clause."""
    # Nobody's row counts for nothing.
    parts = [f"{quote(statement.table.user)} IS NOT NULL"]
    # Comparing a column costs less than computing, so it goes first and leaves fewer rows.
    for condition in sorted(statement.conditions, key=_computes):
        parts += _write_condition(condition, values)
    return " AND ".join(dict.fromkeys(parts))


def _write_condition(condition: Condition, values: Values) -> list[str]:
    """A condition in SQL, in parts for AND, that is never NULL."""
    if isinstance(condition, Null):
        return [f"{quote(condition.column.name)} IS {'NOT ' if condition.negated else ''}NULL"]
    # greatest() skips NULL, so it must not get as far as a function.
    known = [f"{quote(column.name)} IS NOT NULL" for column in mentioned(condition)]
    return [*known, _compare(condition, values)]


def _compare(condition: Condition, values: Values) -> str:
    match condition:
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


def _computes(condition: Condition) -> bool:
    return any(isinstance(expression, Call) for expression in expressions_of(condition))
