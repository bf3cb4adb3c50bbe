"""The WHERE clause: conditions that AND connects, each read, or refused in the system's words."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.dates import days_of
from countleak.diffix.sql.expressions import Reader, only, refuse
from countleak.diffix.sql.functions import ROUNDING
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.statement import (
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
)
from countleak.errors import Refused

OR_TEXT = "Combining conditions with `OR` is not allowed."


# What a WHERE clause says, and who reads it.
Clause = tuple[exp.Expr, Reader]


def read_conditions(clauses: Sequence[Clause], users: Collection[str]) -> tuple[Condition, ...]:
    """The conditions of WHERE clauses, equal ones once; two bounds of a column are its range.

    The columns of ``users`` are equal, so only one of them has a range.
    """
    nodes = [(node, reader) for tree, reader in clauses for node in conjuncts_of(tree)]
    LIMITS.check("conditions", nodes)
    return _conditions(nodes, users)


def conjuncts_of(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND connects, however they are bracketed."""
    conjuncts, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if type(node) is exp.And:
            only(node, "this", "expression")
            waiting += [node.expression, node.this]
        elif type(node) is exp.Paren:
            waiting.append(node.this)
        elif type(node) is exp.Or:
            raise Refused(OR_TEXT)
        elif type(node) is exp.Not and type(inner := _unbracketed(node.this)) is exp.In:
            waiting += _apart(inner)
        else:
            conjuncts.append(node)
    return conjuncts


def _unbracketed(node: Any) -> Any:
    while type(node) is exp.Paren:
        node = node.this
    return node


def _apart(node: Any) -> list[exp.Expr]:
    """NOT IN as the conditions that it is: <> with every element."""
    only(node, "this", "expressions")
    LIMITS.check("conditions", node.expressions)
    if not node.expressions:
        raise refuse(node)
    # A tree serves many questions, so its parts are not moved to another.
    return [
        exp.NEQ(this=node.this.copy(), expression=element.copy()) for element in node.expressions
    ]


@dataclass(frozen=True)
class _Bound:
    """One side of a range: ``column >= at`` (lower) or ``column < at``."""

    column: Column
    lower: bool
    at: Fraction


def _conditions(nodes: Sequence[Clause], users: Collection[str]) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    bounds: list[_Bound] = []
    for node, reader in nodes:
        condition = _condition(node, reader)
        if isinstance(condition, _Bound):
            bounds.append(condition)
        else:
            conditions.append(condition)
    conditions += _paired(bounds)
    columns = [c.column.name for c in conditions if isinstance(c, Range)]
    for name in columns:
        if columns.count(name) > 1:
            raise Refused(f"Column `{name}` has more than one range; write one.")
    if sum(name in users for name in columns) > 1:
        raise Refused("The user id has more than one range; write one.")
    return tuple(dict.fromkeys(conditions))


def _paired(bounds: list[_Bound]) -> list[Condition]:
    ranges: list[Condition] = []
    for column in dict.fromkeys(bound.column for bound in bounds):
        lows = [b.at for b in bounds if b.column == column and b.lower]
        highs = [b.at for b in bounds if b.column == column and not b.lower]
        if not lows or not highs or max(lows) >= min(highs):
            raise Refused(f"Column `{column.name}` must be limited to a finite, nonempty range.")
        ranges.append(Range(column, max(lows), min(highs)))
    return ranges


def _condition(node: exp.Expr, reader: Reader) -> Condition | _Bound:
    read = _CONDITIONS.get(type(node))
    if read is None:
        raise refuse(node)
    return read(node, reader)


def _equal(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expression")
    left, right = _alike(reader.expression(node.this), reader.expression(node.expression))
    _check_implicit_range(left)
    _check_implicit_range(right)
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Constant):
        raise Refused("A condition must mention a column; compare a column with a constant.")
    return Equal(left, right)


def _differs(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expression")
    left, right = _alike(reader.expression(node.this), reader.expression(node.expression))
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Constant) or not isinstance(right, Constant):
        raise Refused("The operator `<>` compares a column with a constant.")
    reader.check_simple_text(left, "`<>`")
    return Differs(left, right)


def _bound(lower: bool) -> Callable[[Any, Reader], _Bound]:
    """Reads ``column >= a`` or ``column < a``.

    [low, high) is the only shape a range has, so ``>`` and ``<=`` are read as these two.
    """

    def read(node: Any, reader: Reader) -> _Bound:
        only(node, "this", "expression")
        left, right = reader.expression(node.this), reader.expression(node.expression)
        is_lower = lower
        if isinstance(left, Constant):
            left, right, is_lower = right, left, not lower
        if not isinstance(right, Constant):
            raise Refused("A range compares a column with constants.")
        column = _ranged(left)
        return _Bound(column, is_lower, _bound_at(column, right))

    return read


def _between(node: Any, reader: Reader) -> Condition:
    only(node, "this", "low", "high")
    column = _ranged(reader.expression(node.this))
    low, high = (_bound_at(column, reader.constant(node.args[side])) for side in ("low", "high"))
    if low >= high:
        raise Refused(f"Column `{column.name}` must be limited to a finite, nonempty range.")
    return Range(column, low, high)


def _among(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expressions")
    LIMITS.check("elements", node.expressions)
    left = reader.expression(node.this)
    constants = tuple(dict.fromkeys(reader.constant(e) for e in node.expressions))
    if isinstance(left, Constant) or not constants:
        raise Refused("The operator `IN` compares a column with constants.")
    constants = tuple(dict.fromkeys(_of_kind(constant, left.kind) for constant in constants))
    reader.check_simple_text(left, "`IN`")
    return Equal(left, constants[0]) if len(constants) == 1 else Among(left, constants)


def _like(node: Any, reader: Reader) -> Like | Equal:
    only(node, "this", "expression", "negate")
    negated = bool(node.args.get("negate"))
    column, pattern = reader.expression(node.this), reader.constant(node.expression)
    if not isinstance(column, Column) or column.kind is not Kind.TEXT:
        raise Refused("The operator `LIKE` compares a text column with a pattern.")
    if not isinstance(pattern.value, str) or "\\" in pattern.value:
        raise Refused("A pattern is a text without escapes; only % and _ have a meaning in it.")
    if not set(pattern.value) & set("%_") and not negated and type(node) is exp.Like:
        return Equal(column, pattern)
    return Like(column, _normal(pattern.value), negated, type(node) is exp.ILike)


def _normal(pattern: str) -> str:
    """The one spelling of a pattern: of wildcards in a row, any % comes once and last."""
    return re.sub("[%_]+", lambda run: "_" * run[0].count("_") + "%" * ("%" in run[0]), pattern)


def _null(node: Any, reader: Reader) -> Null:
    only(node, "this", "expression", "negate")
    column = reader.expression(node.this)
    if type(node.expression) is not exp.Null or not isinstance(column, Column):
        raise Refused("The operator `IS` only asks whether a column is [NOT] NULL.")
    return Null(column, bool(node.args.get("negate")))


def _not(node: Any, reader: Reader) -> Condition:
    """NOT where SQL spells a condition with it; no other negation is allowed."""
    only(node, "this")
    inner = _unbracketed(node.this)
    if type(inner) is exp.EQ:
        # A tree serves many questions, so its parts are not moved to another.
        turned = inner.copy()
        return _differs(exp.NEQ(this=turned.this, expression=turned.expression), reader)
    if type(inner) in (exp.Is, exp.Like, exp.ILike):
        negated = inner.copy()
        negated.set("negate", not inner.args.get("negate"))
        return _null(negated, reader) if type(inner) is exp.Is else _like(negated, reader)
    raise refuse(node)


_CONDITIONS: dict[type, Callable[[Any, Reader], Condition | _Bound]] = {
    exp.EQ: _equal,
    exp.NEQ: _differs,
    exp.GTE: _bound(lower=True),
    exp.GT: _bound(lower=True),
    exp.LTE: _bound(lower=False),
    exp.LT: _bound(lower=False),
    exp.Between: _between,
    exp.In: _among,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Is: _null,
    exp.Not: _not,
}


def _check_implicit_range(expression: Expression) -> None:
    """Refuse to round functions: equality with what is rounded is a range in disguise.

    floor and ceil pass, as they did in the system; the attack went through floor.
    """
    if isinstance(expression, Call):
        if expression.function in ROUNDING:
            _ranged(expression.arguments[0])
        for argument in expression.arguments:
            _check_implicit_range(argument)


def _ranged(expression: Expression) -> Column:
    if not isinstance(expression, Column):
        raise Refused("A range can only be put on a column itself, not on a function of it.")
    if not expression.kind.is_double:
        raise Refused(f"Column `{expression.name}` holds text; only numbers and dates have ranges.")
    return expression


def _bound_at(column: Column, constant: Constant) -> Fraction:
    if column.kind is Kind.DATE:
        constant = _of_kind(constant, Kind.DATE)
    if isinstance(constant.value, str):
        raise Refused(f"The bound '{constant.value[:20]}' of a range is not a number.")
    return constant.value


def _alike(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides of a comparison, a constant as the other side counts it."""
    if isinstance(left, Constant) and not isinstance(right, Constant):
        return _of_kind(left, right.kind), right
    if isinstance(right, Constant) and not isinstance(left, Constant):
        return left, _of_kind(right, left.kind)
    if not left.kind.matches(right.kind):
        raise Refused("A number, a text and a date cannot be compared with each other.")
    return left, right


def _of_kind(constant: Constant, kind: Kind) -> Constant:
    """A constant that is compared with values of a kind: a date's are its days."""
    if kind is Kind.DATE and isinstance(constant.value, str):
        return Constant(days_of(constant.value))
    if not constant.kind.matches(kind):
        raise Refused(f"A {kind} cannot be compared with a {constant.kind}.")
    return constant
