"""A statement as SQL of our own writing: names quoted, constants apart, every number cast.

The same text means the same to DuckDB and PostgreSQL, but for what ``Dialect`` writes. Constants
are parameters, so questions that differ in nothing else are one text, which a database plans once.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from countleak.diffix.sql.expressions import FUNCTIONS, LARGE, SAFE
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
    Statement,
    Table,
    expressions_of,
    mentioned,
)

# The constants of a text, in the order of its parameters $1, $2, ...
Values = list[str | float]


class Sql(NamedTuple):
    """A text and the values of its parameters."""

    text: str
    values: Values


class Dialect(Protocol):
    """What the databases do not agree on."""

    def hashed(self, table: Table, column: Column, role: str) -> str:
        """64 bits that a value has in a ``role``: as the value of its column, or as a user."""
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


def write(expression: Expression, values: Values) -> str:
    """An expression in SQL: a double or a text. Its constants are added to ``values``."""
    match expression:
        case Column():
            kind = "DOUBLE PRECISION" if expression.kind.numeric else "VARCHAR"
            return f"CAST({quote(expression.name)} AS {kind})"
        case Constant(value=value):
            return _parameter(value if isinstance(value, str) else float(value), values)
        case Call():
            function = FUNCTIONS[expression.function]
            arguments = [write(argument, values) for argument in expression.arguments]
            if _size(expression, cut=False) > SAFE:
                arguments = [
                    _cut_off(written) if argument.kind.numeric else written
                    for argument, written in zip(expression.arguments, arguments, strict=True)
                ]
            return function.sql.format(*arguments)
    raise AssertionError(expression)


def _cut_off(operand: str) -> str:
    """A number in SQL, no further from 0 than LARGE."""
    large = f"CAST({LARGE:g} AS DOUBLE PRECISION)"
    return f"least(greatest({operand}, -{large}), {large})"


def _parameter(value: str | float, values: Values) -> str:
    values.append(value)
    kind = "VARCHAR" if isinstance(value, str) else "DOUBLE PRECISION"
    return f"CAST(${len(values)} AS {kind})"


def _size(expression: Expression, cut: bool = True) -> float:
    """The largest magnitude a number can have; after its operands were ``cut`` off, if need be."""
    match expression:
        case Column(kind=Kind.WHOLE):
            return 2.0**63
        case Constant(value=Fraction() as number):
            return abs(float(number))
        case Call(function=name) if FUNCTIONS[name].takes[0] is Kind.TEXT:
            return 2.0**32
        case Call(function=name):
            sizes = [_size(argument) for argument in expression.arguments]
            size = FUNCTIONS[name].size(*sizes)
            if cut and size > SAFE:
                size = FUNCTIONS[name].size(*(min(one, LARGE) for one in sizes))
            return size
    return math.inf


def write_condition(condition: Condition, values: Values) -> list[str]:
    """A condition in SQL, in parts for AND, that is never NULL."""
    if isinstance(condition, Null):
        return [f"{quote(condition.column.name)} IS {'NOT ' if condition.negated else ''}NULL"]
    # greatest() and least() skip NULL, so it must not get as far as a function.
    return [*map(_is_known, mentioned(condition)), _compare(condition, values)]


def _is_known(column: Column) -> str:
    return f"{quote(column.name)} IS NOT NULL"


def _compare(condition: Condition, values: Values) -> str:
    match condition:
        case Equal():
            return f"{write(condition.left, values)} = {write(condition.right, values)}"
        case Differs():
            return f"{write(condition.left, values)} <> {write(condition.constant, values)}"
        case Range():
            column = write(condition.column, values)
            low, high = (_parameter(float(b), values) for b in (condition.low, condition.high))
            return f"{column} >= {low} AND {column} < {high}"
        case Among():
            constants = ", ".join(write(constant, values) for constant in condition.constants)
            return f"{write(condition.left, values)} IN ({constants})"
        case Like():
            operator = (
                f"{'NOT ' if condition.negated else ''}{'I' if condition.any_case else ''}LIKE"
            )
            pattern = _parameter(condition.pattern, values)
            return f"{write(condition.column, values)} {operator} {pattern}"
    raise AssertionError(condition)


def write_where(
    statement: Statement, values: Values, without: Sequence[tuple[object, ...]] = ()
) -> str:
    """The WHERE clause; rows of the groups in ``without`` are left out."""
    # Nobody's row is nobody's secret, and has no user to seed noise with.
    parts = [f"{quote(statement.table.user)} IS NOT NULL"]
    # Comparing a column costs less than computing, so it goes first and leaves fewer rows.
    for condition in sorted(statement.conditions, key=_computes):
        parts += write_condition(condition, values)
    if without:
        same = " OR ".join(f"({_is_group(statement, key, values)})" for key in without)
        parts.append(f"NOT ({same})")
    return " AND ".join(dict.fromkeys(parts))


def _computes(condition: Condition) -> bool:
    return any(isinstance(expression, Call) for expression in expressions_of(condition))


def _is_group(statement: Statement, key: tuple[object, ...], values: Values) -> str:
    written = []
    for expression, value in zip(statement.groups, key, strict=True):
        constant = "NULL"
        if value is not None:
            constant = _parameter(value if isinstance(value, str) else float(value), values)  # type: ignore[arg-type]
        written.append(f"{_group(expression, values)} IS NOT DISTINCT FROM {constant}")
    return " AND ".join(written)


def _group(expression: Expression, values: Values) -> str:
    """A group's key, NULL where a column is."""
    if isinstance(expression, Column):
        return write(expression, values)
    unknown = " OR ".join(
        f"{quote(c.name)} IS NULL" for c in mentioned(Equal(expression, expression))
    )
    return f"CASE WHEN {unknown} THEN NULL ELSE {write(expression, values)} END"


def buckets_query(
    statement: Statement,
    materials: Sequence[Column],
    dialect: Dialect,
    without: Sequence[tuple[object, ...]] | None = None,
) -> Sql:
    """For every bucket: its key, users, the hash of the user set, the hash of each column's values.

    With ``without``, everything but those groups is one bucket without a key.
    """
    table = statement.table
    user = Column(table.user, table.columns[table.user])
    values: Values = []
    keys = [] if without is not None else [_group(e, values) for e in statement.groups]
    users = "count(*)" if table.one_row_per_user else f"count(DISTINCT {quote(table.user)})"
    hashes = [_set_hash(table, user, "user", dialect)]
    hashes += [_set_hash(table, column, "value", dialect) for column in materials]
    grouped = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
    text = (
        f"SELECT {', '.join([*keys, users, *hashes])} FROM {quote(table.name)} "
        f"WHERE {write_where(statement, values, without or ())}{grouped}"
    )
    return Sql(text, values)


def _set_hash(table: Table, column: Column, role: str, dialect: Dialect) -> str:
    distinct = "" if column.name in table.single else "DISTINCT "
    return f"bit_xor({distinct}{dialect.hashed(table, column, role)})"


def contributions_query(
    statement: Statement,
    aggregate: Aggregate,
    most: int,
    dialect: Dialect,
    without: Sequence[tuple[object, ...]] | None = None,
) -> Sql:
    """For every bucket: its key, and what its users add and what they subtract.

    Each side is how many users, their sum, and the ``most`` largest contributions.
    """
    user = quote(statement.table.user)
    values: Values = []
    keys = [] if without is not None else [_group(e, values) for e in statement.groups]
    names = [f"k{place}" for place in range(len(keys))]
    where = write_where(statement, values, without or ())
    keyed = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    rows = f"SELECT {', '.join([*keyed, f'{user} AS u', f'{_amount(aggregate)} AS v'])} "
    rows += f"FROM {quote(statement.table.name)} WHERE {where}"
    if aggregate.distinct:
        # A value that several users have is one value: it is the first one's contribution.
        by = ", ".join([*names, "v"])
        first = ", ".join([*names, "min(u) AS u", "1 AS v"])
        rows = f"SELECT {first} FROM ({rows}) AS r WHERE v IS NOT NULL GROUP BY {by}"
    by = ", ".join([*names, "u"])
    value = "sum(v)" if aggregate.function != "count" or aggregate.distinct else "count(v)"
    users = f"SELECT {by}, {value} AS c FROM ({rows}) AS r GROUP BY {by}"
    sides = []
    for sign in ("", "-"):
        side = f"CASE WHEN {sign}c > 0 THEN {sign}c END"
        sides += [f"count({side})", f"sum({side})", dialect.largest(side, most)]
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    return Sql(f"SELECT {', '.join([*names, *sides])} FROM ({users}) AS s{grouped}", values)


def _amount(aggregate: Aggregate) -> str:
    """What a row adds; NULL where it adds nothing."""
    if aggregate.column is None:
        return "1"
    if aggregate.function == "count":
        return quote(aggregate.column.name)
    # Decimals add up to the same in any order; doubles would not, and noise must be sticky.
    scale = 0 if aggregate.column.kind is Kind.WHOLE else 6
    return f"CAST({quote(aggregate.column.name)} AS DECIMAL(38, {scale}))"
