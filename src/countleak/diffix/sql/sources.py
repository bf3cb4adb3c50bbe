"""What stands in FROM: a table, a subquery of it, or several of these joined by the user id.

A join is a table like another. A column of it is called after its table, ``loans.status``, and
``Table.origin`` says which one it is, so that noise is that of the same condition without a join.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.conditions import Clause, conjuncts_of
from countleak.diffix.sql.expressions import Reader, only
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.selection import read_columns, read_per_user
from countleak.diffix.sql.statement import Call, Column, Expression, Table
from countleak.errors import Refused

# The schema in which PostgreSQL's clients expect the tables.
SCHEMA = "public"
ONLY_INNER = "This JOIN is not allowed: write JOIN ... ON, with the user ids of both tables equal."


def read_source(tree: exp.Select, reader: Reader, depth: int = 0) -> tuple[Reader, list[Clause]]:
    """A reader of the columns that FROM offers, and the conditions of all levels.

    A subquery that selects columns, or functions of them, is a way to write its conditions and
    names; they count, and add noise, as if they stood in the question itself.
    """
    source, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if source is None:
        raise Refused(f"A query must select FROM the table `{reader.table.name}`.")
    only(source, "this")
    LIMITS.check("tables", 1 + len(joins))
    written: list[exp.Expr] = []
    if clause := tree.args.get("where"):
        only(clause, "this")
        written.append(clause.this)
    if joins:
        written = [on for on in map(_on, joins) if on is not None] + written
        return _joined([source.this, *(j.this for j in joins)], written, reader, depth)
    reader, clauses = _part(source.this, reader, depth)
    return reader, [*clauses, *((node, reader) for node in written)]


def _on(node: Any) -> exp.Expr | None:
    """The condition of a join; that of a comma stands in WHERE."""
    plain = not any(node.args.get(name) for name in ("side", "method", "using"))
    if not plain or node.args.get("kind") not in (None, "", "INNER"):
        raise Refused(ONLY_INNER)
    only(node, "this", "on", "kind")
    on: exp.Expr | None = node.args.get("on")
    return on


def _part(node: exp.Expr, reader: Reader, depth: int) -> tuple[Reader, list[Clause]]:
    """A reader of the columns of a table or a subquery, and the conditions of the latter."""
    if type(node) is exp.Subquery:
        return _subquery(node, reader, depth)
    if type(node) is exp.Table:
        return replace(reader, table=_table(node, reader), alias=_alias(node)), []
    raise Refused(f"Only the table `{reader.table.name}`, or a subquery of it, can stand in FROM.")


def _joined(
    nodes: Sequence[exp.Expr], written: Sequence[exp.Expr], reader: Reader, depth: int
) -> tuple[Reader, list[Clause]]:
    """A reader of all columns of a join, and the conditions but for those that join."""
    parts, clauses = [], []
    for node in nodes:
        part, inner = _part(node, reader, depth)
        if part.table.joined or part.table.per_user:
            raise Refused("A subquery that groups, or joins, cannot be joined itself.")
        parts.append(_in_join(part))
        clauses += [(clause, _in_join(within)) for clause, within in inner]
    reader = replace(reader, table=_join([part.table for part in parts]), parts=tuple(parts))
    links = []
    for node in (conjunct for tree in written for conjunct in conjuncts_of(tree)):
        link = _link(node, reader)
        if link is None:
            clauses.append((node, reader))
        else:
            links.append(link)
    _check_linked(reader.table, links)
    return reader, clauses


def _in_join(reader: Reader) -> Reader:
    """The reader of a part of a join, whose columns are the join's."""
    columns = tuple((name, _renamed(means, reader.table)) for name, means in reader.columns)
    return replace(reader, selected=columns)


def _link(node: Any, reader: Reader) -> frozenset[str] | None:
    """The user ids of two tables that a condition says are equal, if it is such a one."""
    if type(node) is not exp.EQ:
        return None
    sides = (node.this, node.expression)
    if any(type(side) is not exp.Column for side in sides):
        return None
    means = [reader.expression(side) for side in sides]
    names = frozenset(column.name for column in means if isinstance(column, Column))
    return names if len(names) == 2 and names <= reader.table.users else None


def _check_linked(table: Table, links: Sequence[frozenset[str]]) -> None:
    """Refuse a join in which the user id of some table need not be equal to the others."""
    linked = {table.user}
    for _ in links:
        linked.update(*(link for link in links if link & linked))
    if apart := sorted(table.users - linked):
        raise Refused(
            "Tables are joined by their user ids and by nothing else: write ON "
            f"{table.user} = {apart[0]}."
        )


def _join(tables: Sequence[Table]) -> Table:
    """The table of all rows of one user in each of the tables."""
    names = sorted(table.name for table in tables)
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"Table `{name}` stands in FROM twice; join each table once.")
    first = tables[0]
    for table in tables:
        if table.columns[table.user] is not first.columns[first.user]:
            raise Refused(
                f"The tables `{first.name}` and `{table.name}` cannot be joined: the user ids of "
                f"one are {first.columns[first.user]}, those of the other "
                f"{table.columns[table.user]}."
            )
    columns = [(t.in_join(name), kind) for t in tables for name, kind in t.columns.items()]
    if len(dict(columns)) < len(columns):
        raise Refused(f"The tables {' and '.join(names)} have two columns of one name.")
    return Table(
        " and ".join(names),
        first.in_join(first.user),
        dict(columns),
        frozenset(t.in_join(name) for t in tables for name in t.single if _once(t, tables)),
        frozenset(t.in_join(name) for t in tables for name in t.isolating),
        joined=tuple(tables),
        people=first.people,
    )


def _once(table: Table, tables: Iterable[Table]) -> bool:
    """Whether a row of the table is in no more than one row of the join."""
    return all(other.one_row_per_user for other in tables if other is not table)


def _renamed(expression: Expression, table: Table) -> Expression:
    """An expression over a table as one over a join of it."""
    match expression:
        case Column(name=name):
            return replace(expression, name=table.in_join(name))
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(_renamed(a, table) for a in arguments))
    return expression


def _subquery(node: Any, reader: Reader, depth: int) -> tuple[Reader, list[Clause]]:
    only(node, "this", "alias")
    if depth >= LIMITS.subqueries or type(node.this) is not exp.Select:
        raise Refused(f"A subquery is one SELECT, at most {LIMITS.subqueries} deep.")
    inner = node.this
    only(inner, "expressions", "from_", "joins", "where", "group")
    LIMITS.check("expressions", inner.expressions)
    reader, clauses = read_source(inner, reader, depth + 1)
    if inner.args.get("group"):
        per_user, selected = read_per_user(inner, reader)
        reader = replace(reader, table=per_user.grouped)
    else:
        selected = read_columns(inner.expressions, reader)
    users = reader.table.users
    if not any(isinstance(e, Column) and e.name in users for _, e in selected):
        raise Refused(f"A subquery must select the user id column `{reader.table.user}`.")
    return replace(reader, alias=_alias(node), selected=selected, parts=()), clauses


def _table(named: Any, reader: Reader) -> Table:
    """The table of that name."""
    only(named, "this", "db", "alias")
    if isinstance(named.this, exp.Identifier) and named.db.lower() in ("", SCHEMA):
        for table in (reader.table, *reader.others):
            if named.name.lower() == table.name.lower():
                return table
    known = " or ".join(f"`{table.name}`" for table in (reader.table, *reader.others))
    raise Refused(f"Table `{named.name}` does not exist; ask about {known}.")


def _alias(node: Any) -> str:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
    return str(node.alias)
