"""Text to a ``Statement``: one SELECT over the declared table, or a refusal.

Only what is listed here gets through: every node of the parsed tree must be of a known class with
nothing set that is not read. The statement is then written anew by ``render``, so whatever this
file does not understand cannot reach the database.
"""

from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from countleak.diffix.sql.conditions import read_conditions
from countleak.diffix.sql.expressions import Reader, only
from countleak.diffix.sql.shapes import parsed
from countleak.diffix.sql.statement import (
    Aggregate,
    Column,
    Condition,
    Constant,
    Expression,
    Statement,
    Table,
)
from countleak.errors import Refused

LONGEST = 200_000


def parse(text: str, table: Table) -> Statement:
    """The statement that ``text`` asks of ``table``."""
    if len(text) > LONGEST:
        raise Refused(f"The query has {len(text)} characters; at most {LONGEST} are read.")
    with parsed(text, select_tree) as tree:
        return _statement(tree, table)


def _statement(tree: exp.Select, table: Table) -> Statement:
    only(tree, "expressions", "from_", "where", "group")
    source = tree.args.get("from_")
    if source is None:
        raise Refused(f"A query must select FROM the table `{table.name}`.")
    _check_table(source, table)
    reader = Reader(table)
    conditions: tuple[Condition, ...] = ()
    if where := tree.args.get("where"):
        only(where, "this")
        conditions = read_conditions(where.this, reader)
    groups: tuple[Expression, ...] = ()
    if group := tree.args.get("group"):
        only(group, "expressions")
        groups = tuple(
            dict.fromkeys(_group(e, tree.expressions, reader) for e in group.expressions)
        )
    labels, aggregates, shown = _selected(tree.expressions, groups, reader)
    return Statement(table, aggregates, groups, conditions, labels, shown)


UNREADABLE = "The query cannot be read; write one SELECT statement."


def statement_trees(text: str) -> list[exp.Expr] | None:
    """The trees of a text's statements; None where it cannot be read."""
    try:
        return [tree for tree in sqlglot.parse(text, read="postgres") if tree is not None]
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
        return None


def select_tree(text: str) -> exp.Select:
    """The tree of a text that is one SELECT."""
    trees = statement_trees(text)
    if trees is None:
        raise Refused(UNREADABLE)
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
) -> tuple[tuple[str, ...], tuple[Aggregate, ...], tuple[int, ...]]:
    """The labels of the groups, in the order of GROUP BY, the aggregates, and which are shown."""
    labels: dict[Expression, str] = {}
    aggregates: list[Aggregate] = []
    shown: list[int] = []
    for node in nodes:
        inner, alias = _bare(node)
        if type(inner) in (exp.Count, exp.Sum, exp.Avg):
            shown.append(len(groups) + len(aggregates))
            aggregates.append(_aggregate(inner, alias, reader))
            continue
        expression = reader.expression(inner)
        if expression not in groups:
            raise Refused("A selected expression must be an aggregate or stand in GROUP BY.")
        shown.append(groups.index(expression))
        labels[expression] = alias or inner.sql(dialect="postgres")
    if not aggregates:
        raise Refused("A query must select an aggregate: count, sum or avg.")
    of_groups = [labels.get(g, _label(g)) for g in groups]
    names = _apart([*of_groups, *(aggregate.label for aggregate in aggregates)])
    named = zip(aggregates, names[len(groups) :], strict=True)
    renamed = tuple(replace(aggregate, label=name) for aggregate, name in named)
    return tuple(names[: len(groups)]), renamed, tuple(shown)


def _apart(labels: list[str]) -> list[str]:
    """The labels, with a number behind one that stood before."""
    found: list[str] = []
    for label in labels:
        number, new = 2, label
        while new in found:
            number, new = number + 1, f"{label}_{number}"
        found.append(new)
    return found


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
