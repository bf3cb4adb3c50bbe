"""Text to a ``Statement``: one SELECT over the declared table, or a refusal.

Only what is listed here gets through: every node of the parsed tree must be of a known class with
nothing set that is not read. The statement is then written anew by ``render``, so whatever this
file does not understand cannot reach the database.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from countleak.diffix.expressions import Reader, only, refuse
from countleak.diffix.statement import (
    Aggregate,
    Among,
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
)
from countleak.errors import Refused

LONGEST = 200_000
OR_TEXT = "Combining conditions with `OR` is not allowed."


def parse(text: str, table: Table) -> Statement:
    """The statement that ``text`` asks of ``table``."""
    tree = _tree(text)
    only(tree, "expressions", "from_", "where", "group")
    source = tree.args.get("from_")
    if source is None:
        raise Refused(f"A query must select FROM the table `{table.name}`.")
    _check_table(source, table)
    reader = Reader(table)
    conditions: tuple[Condition, ...] = ()
    if where := tree.args.get("where"):
        only(where, "this")
        conditions = _conditions(_conjuncts(where.this), reader)
    groups: tuple[Expression, ...] = ()
    if group := tree.args.get("group"):
        only(group, "expressions")
        groups = tuple(
            dict.fromkeys(_group(e, tree.expressions, reader) for e in group.expressions)
        )
    selected, aggregates = _selected(tree.expressions, groups, reader)
    return Statement(table, aggregates, groups, conditions, selected)


def _tree(text: str) -> exp.Select:
    if len(text) > LONGEST:
        raise Refused(f"The query has {len(text)} characters; at most {LONGEST} are read.")
    try:
        trees = [tree for tree in sqlglot.parse(text, read="postgres") if tree is not None]
    except (
        SqlglotError,
        RecursionError,
        ValueError,
        AttributeError,
        TypeError,
        KeyError,
        IndexError,
    ):
        # sqlglot's parser meets malformed input with more than its own errors.
        raise Refused("The query cannot be read; write one SELECT statement.") from None
    if len(trees) != 1:
        raise Refused(f"There are {len(trees)} statements; write one SELECT statement.")
    tree = trees[0]
    if type(tree) is not exp.Select:
        raise Refused("Only SELECT statements over one table are answered.")
    return tree


def _check_table(source: exp.Expression, table: Table) -> None:
    only(source, "this")
    named = source.this
    if type(named) is not exp.Table:
        raise Refused(f"Only the table `{table.name}` itself can stand in FROM.")
    only(named, "this")
    if not isinstance(named.this, exp.Identifier) or named.name.lower() != table.name.lower():
        raise Refused(f"Table `{named.name}` does not exist; ask about `{table.name}`.")


def _conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    """The conditions that AND connects, however they are bracketed."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if type(node) is exp.And:
            only(node, "this", "expression")
            waiting += [node.expression, node.this]
        elif type(node) is exp.Paren:
            waiting.append(node.this)
        elif type(node) is exp.Or:
            raise Refused(OR_TEXT)
        else:
            found.append(node)
    return found


@dataclass(frozen=True)
class _Bound:
    """One side of a range: ``column >= at`` (lower) or ``column < at``."""

    column: Column
    lower: bool
    at: Fraction


def _conditions(nodes: list[exp.Expression], reader: Reader) -> tuple[Condition, ...]:
    found: list[Condition] = []
    bounds: list[_Bound] = []
    for node in nodes:
        made = _condition(node, reader)
        if isinstance(made, _Bound):
            bounds.append(made)
        else:
            found.append(made)
    found += _paired(bounds)
    columns = [c.column.name for c in found if isinstance(c, Range)]
    for name in columns:
        if columns.count(name) > 1:
            raise Refused(f"Column `{name}` has more than one range; write one.")
    return tuple(dict.fromkeys(found))


def _paired(bounds: list[_Bound]) -> list[Condition]:
    ranges: list[Condition] = []
    for column in dict.fromkeys(bound.column for bound in bounds):
        lows = [b.at for b in bounds if b.column == column and b.lower]
        highs = [b.at for b in bounds if b.column == column and not b.lower]
        if not lows or not highs or max(lows) >= min(highs):
            raise Refused(f"Column `{column.name}` must be limited to a finite, nonempty range.")
        ranges.append(Range(column, max(lows), min(highs)))
    return ranges


def _condition(node: exp.Expression, reader: Reader) -> Condition | _Bound:
    read = _CONDITIONS.get(type(node))
    if read is None:
        raise refuse(node)
    return read(node, reader)


def _equal(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expression")
    left, right = reader.expression(node.this), reader.expression(node.expression)
    _check_kinds(left, right)
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Constant):
        raise Refused("A condition must mention a column; compare a column with a constant.")
    return Equal(left, right)


def _differs(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expression")
    left, right = reader.expression(node.this), reader.expression(node.expression)
    if isinstance(left, Constant):
        left, right = right, left
    _check_kinds(left, right)
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
        column, at = _ranged(left), _number(right)
        return _Bound(column, is_lower, at)

    return read


def _between(node: Any, reader: Reader) -> Condition:
    only(node, "this", "low", "high")
    column = _ranged(reader.expression(node.this))
    low, high = (_number(reader.constant(side)) for side in (node.args["low"], node.args["high"]))
    if low >= high:
        raise Refused(f"Column `{column.name}` must be limited to a finite, nonempty range.")
    return Range(column, low, high)


def _among(node: Any, reader: Reader) -> Condition:
    only(node, "this", "expressions")
    left = reader.expression(node.this)
    constants = tuple(dict.fromkeys(reader.constant(e) for e in node.expressions))
    if isinstance(left, Constant) or not constants:
        raise Refused("The operator `IN` compares a column with constants.")
    for constant in constants:
        _check_kinds(left, constant)
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
    return Like(column, pattern.value, negated, type(node) is exp.ILike)


def _null(node: Any, reader: Reader) -> Null:
    only(node, "this", "expression", "negate")
    column = reader.expression(node.this)
    if type(node.expression) is not exp.Null or not isinstance(column, Column):
        raise Refused("The operator `IS` only asks whether a column is [NOT] NULL.")
    return Null(column, bool(node.args.get("negate")))


def _not(node: Any, reader: Reader) -> Condition:
    """NOT where SQL spells a condition with it; no other negation is allowed."""
    only(node, "this")
    inner = node.this
    while type(inner) is exp.Paren:
        inner = inner.this
    if type(inner) is exp.EQ:
        return _differs(exp.NEQ(this=inner.this, expression=inner.expression), reader)
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


def _ranged(expression: Expression) -> Column:
    if not isinstance(expression, Column):
        raise Refused("A range can only be put on a column itself, not on a function of it.")
    if not expression.kind.numeric:
        raise Refused(f"Column `{expression.name}` holds text; only numbers have ranges.")
    return expression


def _number(constant: Constant) -> Fraction:
    if isinstance(constant.value, str):
        raise Refused(f"The bound '{constant.value[:20]}' of a range is no number.")
    return constant.value


def _check_kinds(left: Expression, right: Expression) -> None:
    if left.kind.numeric != right.kind.numeric:
        raise Refused("A number cannot be compared with a text.")


def _group(node: exp.Expression, selected: list[exp.Expression], reader: Reader) -> Expression:
    """A GROUP BY expression; a number in its place means that selected one."""
    if type(node) is exp.Literal and not node.is_string:
        if not node.name.isdigit() or not 1 <= int(node.name) <= len(selected):
            raise Refused(f"GROUP BY {node.name[:10]}: there is no such selected expression.")
        node = _bare(selected[int(node.name) - 1])[0]
    expression = reader.expression(node)
    if isinstance(expression, Constant):
        raise Refused("GROUP BY takes columns and functions of them.")
    return expression


def _bare(node: exp.Expression) -> tuple[exp.Expression, str | None]:
    """A selected expression without its alias, and the alias."""
    if type(node) is exp.Alias:
        only(node, "this", "alias")
        return node.this, str(node.alias)
    return node, None


def _selected(
    nodes: list[exp.Expression], groups: tuple[Expression, ...], reader: Reader
) -> tuple[tuple[str, ...], tuple[Aggregate, ...]]:
    """The labels of the selected groups, in the order of GROUP BY, and the aggregates."""
    labels: dict[Expression, str] = {}
    aggregates: list[Aggregate] = []
    for node in nodes:
        inner, alias = _bare(node)
        if type(inner) in (exp.Count, exp.Sum, exp.Avg):
            aggregates.append(_aggregate(inner, alias, reader))
            continue
        expression = reader.expression(inner)
        if expression not in groups:
            raise Refused("A selected expression must be an aggregate or stand in GROUP BY.")
        labels[expression] = alias or inner.sql(dialect="postgres")
    if not aggregates:
        raise Refused("A query must select an aggregate: count, sum or avg.")
    return tuple(labels.get(g, _label(g)) for g in groups), tuple(aggregates)


def _label(expression: Expression) -> str:
    return expression.name if isinstance(expression, Column) else "group"


def _aggregate(node: Any, alias: str | None, reader: Reader) -> Aggregate:
    only(node, "this", "big_int")
    function = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}[type(node)]
    inner, distinct = node.this, False
    if type(inner) is exp.Distinct:
        only(inner, "expressions")
        if len(inner.expressions) != 1 or function != "count":
            raise Refused("DISTINCT stands in count(DISTINCT column) only, with one column.")
        inner, distinct = inner.expressions[0], True
    if type(inner) is exp.Star and function == "count" and not distinct:
        only(inner)
        return Aggregate(function, None, False, alias or function)
    column = reader.expression(inner) if inner is not None else None
    if not isinstance(column, Column):
        raise Refused(f"The function {function} takes a column, or count(*).")
    if function != "count" and not column.kind.numeric:
        raise Refused(f"Column `{column.name}` holds text; {function} takes numbers.")
    return Aggregate(function, column, distinct, alias or function)
