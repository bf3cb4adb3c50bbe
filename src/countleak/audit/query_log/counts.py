"""Statements as the counts that they ask for; whatever is none is given with its reason."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from countleak.audit.query_log.conditions import Unreadable, condition_of

# What sqlglot raises for text that is no SQL, or is nested without end.
UNPARSED = (
    SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError,
)  # fmt: skip
LONGEST = 100_000
# The parts of a SELECT that leave its counts as they are, and those that are read.
HARMLESS, READ = ("order", "kind", "hint"), ("expressions", "from_", "where", "group", "having")
# Statements that ask for nothing.
SILENT = (exp.Transaction, exp.Commit, exp.Rollback, exp.Set, exp.Use)


@dataclass(frozen=True)
class Asked:
    """A count of the rows for which ``condition`` holds, or one for each group ``by`` expressions.

    Both are SQL as DuckDB reads it, of ``columns`` of the table. With ``at_least`` only groups of
    so many rows are shown.
    """

    condition: str
    by: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()
    at_least: int = 0
    distinct: str | None = None


@dataclass(frozen=True)
class Reading:
    """What a statement asks for: its counts, and what of it is not read, in words.

    It is not ``about`` the table if it names others only, which are its ``tables``.
    """

    asked: tuple[Asked, ...] = ()
    unread: str | None = None
    about: bool = True
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader:
    """Reads statements about a ``table`` with some ``columns`` by their names in lower case."""

    table: tuple[str, ...]
    columns: Mapping[str, str]
    dialect: str

    def read(self, text: str, parameters: Sequence[str | None] = ()) -> Reading:
        """What a statement asks for; never an error, whatever the text is."""
        if len(text) > LONGEST:
            return Reading(unread=f"it is longer than {LONGEST:,} characters")
        try:
            trees = [tree for tree in parse(text, read=self.dialect) if tree is not None]
        except UNPARSED:
            return Reading(unread="it is no SQL that can be parsed")
        if len(trees) != 1:
            return Reading(unread="there are several statements in one, or none")
        try:
            return self._statement(_with(trees[0], parameters))
        except Unreadable as error:
            return Reading(unread=str(error))
        except RecursionError:
            return Reading(unread="it is nested too deeply")

    def _statement(self, tree: exp.Expr) -> Reading:
        tables = sorted({_name(table) for table in tree.find_all(exp.Table)})
        if not isinstance(tree, exp.Query) and not tables:
            about = not isinstance(tree, SILENT)
            return Reading(unread=f"{tree.key.upper()} is no question", about=about)
        if not any(map(self._is_ours, tree.find_all(exp.Table))):
            return Reading(about=False, tables=tuple(tables), unread="it names no such table")
        if type(tree) is not exp.Select:
            raise Unreadable(f"{tree.key.upper()} is no plain SELECT")
        return self._select(tree)

    def _is_ours(self, table: exp.Table) -> bool:
        """Whether a table is the one meant, as far as both are qualified."""
        parts = [part.name.lower() for part in table.parts]
        pairs = zip(reversed(parts), reversed(self.table), strict=False)
        return all(theirs == ours for theirs, ours in pairs)

    def _select(self, tree: exp.Select) -> Reading:
        aliases = self._aliases(tree)
        where = [tree.args["where"].this] if tree.args.get("where") else []
        keys = self._keys(tree)
        asked, left = [], []
        shown = {self._computed(key, aliases).sql(comments=False) for key in keys}
        for item in tree.expressions:
            item = item.unalias()
            try:
                if self._is_shown(item, shown, aliases):
                    continue
                counted = _counted(item)
                asked.append(self._asked([*where, *counted.conditions], keys, aliases, counted))
            except Unreadable as error:
                left.append(str(error))
        if not asked:
            raise Unreadable(left[-1] if left else "it selects no count")
        least = self._least(tree)
        asked = [replace(each, at_least=least) for each in asked]
        return Reading(tuple(asked), f"of several: {left[0]}" if left else None)

    def _aliases(self, tree: exp.Select) -> frozenset[str]:
        """What the table is called; an error where there is more than one plain table."""
        for name, value in tree.args.items():
            if value and name not in (*READ, *HARMLESS):
                what = {"joins": "a join", "with_": "a WITH", "distinct": "a DISTINCT"}
                if name == "limit" and not tree.args.get("group") and _is_one(value):
                    continue
                raise Unreadable(what.get(name, f"a {name.strip('_').upper()}"))
        table = tree.args["from_"].this if tree.args.get("from_") else None
        if type(table) is not exp.Table or not isinstance(table.this, exp.Identifier):
            raise Unreadable("a subquery in FROM")
        if any(value for name, value in table.args.items() if name not in TABLE_PARTS):
            raise Unreadable("a sample, a join or the like in FROM")
        if not self._is_ours(table):
            raise Unreadable("the table is only in a subquery")
        return frozenset({table.alias_or_name.lower(), table.name.lower()})

    def _keys(self, tree: exp.Select) -> list[exp.Expr]:
        """What groups are made by: expressions, their names, or their places."""
        group = tree.args.get("group")
        if group is None:
            return []
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise Unreadable("groups of several kinds at once")
        named = {item.alias.lower(): item.unalias() for item in tree.expressions if item.alias}
        keys = []
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string:
                place = int(key.name) if key.name.isdecimal() else 0
                if not 1 <= place <= len(tree.expressions):
                    raise Unreadable("a group by a place that does not exist")
                key = tree.expressions[place - 1].unalias()
            elif isinstance(key, exp.Column) and key.name.lower() not in self.columns:
                key = named.get(key.name.lower(), key)
            keys.append(key)
        return keys

    def _is_shown(self, item: exp.Expr, shown: Container[str], aliases: frozenset[str]) -> bool:
        """Whether a selected item is a constant, or what groups are made by."""
        if item.find(exp.AggFunc) or item.find(exp.CountIf):
            return False
        if isinstance(item, exp.Literal):
            return True
        if (
            not isinstance(item, exp.Star)
            and self._computed(item, aliases).sql(comments=False) in shown
        ):
            return True
        raise Unreadable("it shows rows, not counts")

    def _computed(self, node: exp.Expr, aliases: frozenset[str]) -> exp.Expr:
        return condition_of(node, self.columns, aliases, self.dialect)

    def _asked(
        self,
        conditions: Sequence[exp.Expr],
        keys: Sequence[exp.Expr],
        aliases: frozenset[str],
        counted: "Counted",
    ) -> Asked:
        every = [self._computed(each, aliases) for each in conditions]
        by = [self._computed(key, aliases) for key in keys]
        whole = exp.and_(*every, copy=False) if every else exp.true()
        mentioned = {c.name for node in (*every, *by) for c in node.find_all(exp.Column)}
        distinct = None
        if counted.distinct is not None:
            distinct = self._computed(counted.distinct, aliases).name
        return Asked(
            whole.sql(dialect="duckdb", comments=False),
            tuple(key.sql(dialect="duckdb", comments=False) for key in by),
            frozenset(mentioned),
            distinct=distinct,
        )

    def _least(self, tree: exp.Select) -> int:
        """The rows that a group must have to be shown, by HAVING; 0 where all are."""
        having = tree.args.get("having")
        if having is None:
            return 0
        node = having.this
        plain = isinstance(node, exp.GT | exp.GTE) and isinstance(node.expression, exp.Literal)
        if plain and isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star):
            counts = [item.unalias() for item in tree.expressions]
            others = [item for item in counts if item.find(exp.AggFunc) and item != node.this]
            if node.expression.name.isdecimal() and not others:
                return int(node.expression.name) + isinstance(node, exp.GT)
        raise Unreadable("a HAVING other than a least count")


TABLE_PARTS = ("this", "db", "catalog", "alias")


@dataclass(frozen=True)
class Counted:
    """What an aggregate adds to the conditions, and the column whose values it counts once."""

    conditions: tuple[exp.Expr, ...] = ()
    distinct: exp.Column | None = None


def _counted(item: exp.Expr) -> Counted:
    """The conditions that a selected count adds; an error if it is none."""
    if isinstance(item, exp.Filter):
        inner = _counted(item.this)
        return replace(inner, conditions=(*inner.conditions, item.expression.this))
    if isinstance(item, exp.CountIf):
        return Counted((item.this,))
    if isinstance(item, exp.Sum) and isinstance(item.this, exp.Case):
        return Counted((_one_or_none(item.this),))
    if not isinstance(item, exp.Count) or item.expressions:
        raise Unreadable(f"{(item.key if item.key != 'star' else 'a star')} is no count")
    counted = item.this
    if isinstance(counted, exp.Star):
        return Counted()
    if isinstance(counted, exp.Distinct):
        (column,) = counted.expressions if len(counted.expressions) == 1 else (None,)
        if not isinstance(column, exp.Column) or counted.args.get("on"):
            raise Unreadable("a count of distinct values that are no column")
        return Counted((_present(column),), column)
    if isinstance(counted, exp.Literal):
        return Counted()
    return Counted((_present(counted),))


def _present(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=exp.Is(this=exp.paren(node.copy()), expression=exp.Null())))


def _one_or_none(case: exp.Case) -> exp.Expr:
    """The condition of CASE WHEN ... THEN 1 ELSE 0 END."""
    ifs, default = case.args["ifs"], case.args.get("default")
    no = default is None or isinstance(default, exp.Null) or default == exp.Literal.number(0)
    if case.this is None and len(ifs) == 1 and no and ifs[0].args["true"] == exp.Literal.number(1):
        condition: exp.Expr = ifs[0].this
        return condition
    raise Unreadable("a sum that is no count")


def _is_one(limit: exp.Expr) -> bool:
    """Whether a LIMIT leaves the single row of a count."""
    number = limit.args.get("expression")
    return isinstance(number, exp.Literal) and number.name.isdecimal() and int(number.name) > 0


def _name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts).lower() or table.key


def _with(tree: exp.Expr, parameters: Sequence[str | None]) -> exp.Expr:
    """The statement with the values of its numbered parameters."""

    def filled(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Parameter) and node.name.isdecimal():
            place = int(node.name) - 1
            if 0 <= place < len(parameters):
                value = parameters[place]
                return exp.null() if value is None else exp.Literal.string(value)
        return node

    return tree.transform(filled) if parameters else tree
