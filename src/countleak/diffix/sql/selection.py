"""What a question selects: groups, aggregates, and how the rows of the answer are finished."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.expressions import Reader, only, refuse
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.statement import (
    Aggregate,
    Column,
    Constant,
    Expression,
    Having,
    Order,
    PerUser,
    Statement,
    kind_per_user,
)
from countleak.errors import Refused

# The clauses that work on the rows of an answer, after noise and suppression.
FINISHING = ("distinct", "having", "order", "limit", "offset")
AGGREGATES: dict[type, str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.Variance: "variance",
}
# What says how large the noise of an aggregate is.
OF_NOISE = ("count_noise", "sum_noise", "avg_noise", "stddev_noise", "variance_noise")
# What a subquery may make of all rows of a user.
PER_USER = ("count", "sum", "min", "max", "avg")
OPERATORS: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_selection(tree: exp.Select, reader: Reader) -> Statement:
    """The statement of a SELECT, but for its conditions."""
    LIMITS.check("expressions", tree.expressions)
    selection = _Selection(reader, _groups(tree, reader))
    for node in tree.expressions:
        selection.select(node)
    shown = tuple(selection.shown)
    having = selection.having(tree.args.get("having"))
    order = selection.order(tree.args.get("order"))
    LIMITS.check("aggregates", {replace(a, label="") for a in selection.aggregates})
    if not selection.aggregates and not selection.groups:
        raise Refused("A query must select an aggregate (count, sum, avg, ...) or have groups.")
    names = selection.names()
    groups = len(selection.groups)
    named = zip(selection.aggregates, names[groups:], strict=True)
    return Statement(
        reader.table,
        tuple(replace(aggregate, label=name) for aggregate, name in named),
        selection.groups,
        labels=tuple(names[:groups]),
        shown=shown,
        having=having,
        order=order,
        limit=_whole(tree.args.get("limit"), "LIMIT"),
        offset=_whole(tree.args.get("offset"), "OFFSET") or 0,
        distinct=tree.args.get("distinct") is not None,
    )


def read_columns(nodes: list[exp.Expr], reader: Reader) -> tuple[tuple[str, Expression], ...]:
    """The names of what a subquery selects, and what each means."""
    selected: list[tuple[str, Expression]] = []
    for node in nodes:
        inner, alias = _bare(node)
        if type(inner) is exp.Star:
            only(inner)
            selected += reader.columns
            continue
        if _is_aggregate(inner):
            raise Refused("A subquery selects columns and functions of them, no aggregates.")
        expression = reader.expression(inner)
        if alias is None and type(inner) is not exp.Column:
            raise Refused("A function that a subquery selects must be given a name with AS.")
        selected.append((alias or inner.name, expression))
    return _apart(selected)


def read_per_user(
    tree: exp.Select, reader: Reader
) -> tuple[PerUser, tuple[tuple[str, Expression], ...]]:
    """What a subquery makes of all rows of a user, and the names and meanings of its columns."""
    table = reader.table
    if table.per_user is not None:
        raise Refused("A subquery that groups cannot stand in another one that does.")
    user = Column(table.user, table.columns[table.user])
    users = [Column(name, table.columns[name]) for name in table.users]
    if _groups(tree, reader) not in [(each,) for each in users]:
        raise Refused(f"A subquery groups by the user id column `{user.name}` only.")
    selected: list[tuple[str, Expression]] = []
    aggregates: dict[str, Aggregate] = {}
    for node in tree.expressions:
        inner, alias = _bare(node)
        if _is_aggregate(inner):
            aggregate = _aggregate(inner, None, reader)
            if aggregate.function not in PER_USER:
                raise Refused(f"A subquery takes {', '.join(PER_USER)}, no others.")
            # Whatever it is called in the question, the noise is that of what it is.
            column = f"`{aggregate.column.name}`" if aggregate.column else "*"
            distinct = "DISTINCT " if aggregate.distinct else ""
            name = f"{aggregate.function}({distinct}{column})"
            aggregates[name] = replace(aggregate, label=name)
            kind = kind_per_user(aggregate)
            selected.append((alias or aggregate.function, Column(name, kind)))
        elif reader.expression(inner) in users:
            selected.append((alias or inner.name, user))
        else:
            raise Refused(f"A subquery that groups selects `{user.name}` and aggregates.")
    LIMITS.check("aggregates", aggregates)
    return PerUser(table, tuple(aggregates.values())), _apart(selected)


def _apart(selected: list[tuple[str, Expression]]) -> tuple[tuple[str, Expression], ...]:
    """What a subquery selects, if its names differ."""
    names = [name.lower() for name, _ in selected]
    if len(set(names)) < len(names):
        raise Refused("A subquery selects two columns of one name; rename one with AS.")
    return tuple(selected)


def _groups(tree: exp.Select, reader: Reader) -> tuple[Expression, ...]:
    """The GROUP BY expressions; a SELECT DISTINCT without them groups by what it selects."""
    distinct, group = tree.args.get("distinct"), tree.args.get("group")
    if distinct is not None:
        only(distinct)
    if group is not None:
        only(group, "expressions")
        nodes = group.expressions
    elif distinct is not None and not any(map(_is_aggregate, tree.expressions)):
        nodes = [_bare(node)[0] for node in tree.expressions]
    else:
        nodes = []
    LIMITS.check("groups", nodes)
    return tuple(dict.fromkeys(_group(node, tree.expressions, reader) for node in nodes))


def _group(node: exp.Expr, selected: list[exp.Expr], reader: Reader) -> Expression:
    """A GROUP BY expression; a number in its place means that selected one."""
    if type(node) is exp.Literal and not node.is_string:
        node = _bare(selected[_place(node, len(selected), "GROUP BY")])[0]
    expression = reader.expression(node)
    if isinstance(expression, Constant):
        raise Refused("GROUP BY takes columns and functions of them.")
    return expression


def _place(node: exp.Literal, count: int, clause: str) -> int:
    """The position of the selected expression that a number means."""
    if not re.fullmatch("[0-9]{1,4}", node.name) or not 1 <= int(node.name) <= count:
        raise Refused(f"{clause} {node.name[:10]}: there is no such selected expression.")
    return int(node.name) - 1


@dataclass
class _Selection:
    """Groups and aggregates as they are read; ``shown`` are the positions of those selected."""

    reader: Reader
    groups: tuple[Expression, ...]
    aggregates: list[Aggregate] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    labels: dict[Expression, str] = field(default_factory=dict)
    aliases: dict[str, int] = field(default_factory=dict)

    def select(self, node: exp.Expr) -> None:
        """Read a selected expression."""
        inner, alias = _bare(node)
        if _is_aggregate(inner):
            position = len(self.groups) + len(self.aggregates)
            self.aggregates.append(_aggregate(inner, alias, self.reader))
        else:
            expression = self.reader.expression(inner)
            if expression not in self.groups:
                raise Refused("A selected expression must be an aggregate or stand in GROUP BY.")
            position = self.groups.index(expression)
            self.labels[expression] = alias or inner.sql(dialect="postgres")
        if alias is not None:
            self.aliases.setdefault(alias.lower(), position)
        self.shown.append(position)

    def names(self) -> list[str]:
        """The names of groups and aggregates, with a number behind one that stood before."""
        labels = [self.labels.get(group, _label(group)) for group in self.groups]
        labels += [aggregate.label for aggregate in self.aggregates]
        names: list[str] = []
        for label in labels:
            number, name = 2, label
            while name in names:
                number, name = number + 1, f"{label}_{number}"
            names.append(name)
        return names

    def having(self, clause: exp.Expr | None) -> tuple[Having, ...]:
        """The conditions on rows of the answer, which AND connects."""
        if clause is None:
            return ()
        only(clause, "this")
        nodes = list(clause.this.flatten()) if type(clause.this) is exp.And else [clause.this]
        LIMITS.check("conditions", nodes)
        return tuple(condition for node in nodes for condition in self._having(node))

    def order(self, clause: exp.Expr | None) -> tuple[Order, ...]:
        """What the rows of the answer are sorted by."""
        if clause is None:
            return ()
        only(clause, "expressions")
        LIMITS.check("groups", clause.expressions)
        orders = []
        for node in clause.expressions:
            only(node, "this", "desc", "nulls_first")
            inner = node.this
            if type(inner) is exp.Literal and not inner.is_string:
                position = self.shown[_place(inner, len(self.shown), "ORDER BY")]
            else:
                position = self._position(inner, "ORDER BY")
            down, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
            orders.append(Order(position, down, first))
        return tuple(orders)

    def _having(self, node: Any) -> list[Having]:
        if type(node) is exp.Paren:
            return self._having(node.this)
        if type(node) is exp.Between:
            only(node, "this", "low", "high")
            position = self._position(node.this, "HAVING")
            sides = ((">=", node.args["low"]), ("<=", node.args["high"]))
            return [self._compared(position, operator, side) for operator, side in sides]
        if type(node) not in OPERATORS:
            raise refuse(node)
        only(node, "this", "expression")
        operator, left, right = OPERATORS[type(node)], node.this, node.expression
        if type(left) in (exp.Literal, exp.Neg):
            operator, left, right = TURNED.get(operator, operator), right, left
        return [self._compared(self._position(left, "HAVING"), operator, right)]

    def _compared(self, position: int, operator: str, node: exp.Expr) -> Having:
        constant = self.reader.constant(node)
        in_groups = position < len(self.groups)
        is_number = not in_groups or self.groups[position].kind.numeric
        if constant.kind.numeric != is_number:
            raise Refused("A number cannot be compared with a text.")
        return Having(position, operator, constant.value)

    def _position(self, node: exp.Expr, clause: str) -> int:
        """The position of a group or an aggregate, which need not be selected."""
        if type(node) is exp.Column and not node.table and node.name.lower() in self.aliases:
            return self.aliases[node.name.lower()]
        if _is_aggregate(node):
            aggregate = _aggregate(node, None, self.reader)
            bare = [replace(a, label=aggregate.label) for a in self.aggregates]
            if aggregate not in bare:
                self.aggregates.append(aggregate)
                bare.append(aggregate)
            return len(self.groups) + bare.index(aggregate)
        expression = self.reader.expression(node)
        if expression not in self.groups:
            raise Refused(f"{clause} takes aggregates and what stands in GROUP BY.")
        return self.groups.index(expression)


def _bare(node: exp.Expr) -> tuple[exp.Expr, str | None]:
    """A selected expression without its alias, and the alias."""
    if type(node) is exp.Alias:
        only(node, "this", "alias")
        return node.this, str(node.alias)
    return node, None


def _is_aggregate(node: exp.Expr) -> bool:
    inner = _bare(node)[0]
    of_noise = type(inner) is exp.Anonymous and inner.name.lower() in OF_NOISE
    return type(inner) in AGGREGATES or of_noise


def _label(expression: Expression) -> str:
    return expression.name if isinstance(expression, Column) else "group"


def _aggregate(node: Any, alias: str | None, reader: Reader) -> Aggregate:
    if type(node) is exp.Anonymous:
        only(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise Refused(f"The function {node.name.lower()} takes one column.")
        function, inner = node.name.lower(), node.expressions[0]
    else:
        only(node, "this", "big_int")
        function, inner = AGGREGATES[type(node)], node.this
    counts, distinct = function in ("count", "count_noise"), False
    if type(inner) is exp.Distinct:
        only(inner, "expressions")
        if len(inner.expressions) != 1 or not counts:
            raise Refused("DISTINCT stands in count(DISTINCT column) only, with one column.")
        inner, distinct = inner.expressions[0], True
    if type(inner) is exp.Star and counts and not distinct:
        only(inner)
        return Aggregate(function, None, False, alias or function)
    column = reader.expression(inner) if inner is not None else None
    if not isinstance(column, Column):
        raise Refused(f"The function {function} takes a column, or count(*).")
    if not counts and not column.kind.numeric:
        raise Refused(f"Column `{column.name}` holds text; {function} takes numbers.")
    return Aggregate(function, column, distinct, alias or function)


def _whole(clause: exp.Expr | None, name: str) -> int | None:
    """The number of a LIMIT or OFFSET clause."""
    if clause is None:
        return None
    only(clause, "expression")
    node = clause.expression
    if type(node) is not exp.Literal or not re.fullmatch("[0-9]{1,9}", node.name):
        raise Refused(f"{name} takes a whole number of at most 9 digits.")
    return int(node.name)
