"""Whether an alarm's equation holds for whoever may exist, or only for the people of the table.

Counts c_1, c_2, ... and multipliers y single out few people of a table. Whoever sees only the
answers may conclude so too if y_1 c_1(x) + y_2 c_2(x) + ... is 0 or 1 for every x that a row could
be; else it takes knowing that nobody is such an x. What a row could be: in each column any value
that occurs, NULL only where it does, or that a condition names, or one next to it; conditions of
several columns at once take the combinations that occur.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

from sqlglot import exp, parse_one

from countleak.audit.query_log.table import ROWS, Table, quoted

# Longer equations, and those of more kinds of rows, are not checked.
MOST_TERMS, MOST_KINDS = 12, 200_000
ANSWERS_ALONE = "the answers alone"
UNCHECKED = "implied, if only such people exist as do"
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE")
# How a group is written, and read by people.
GROUP = re.compile(r"CAST\(\((.*?)\) AS TEXT\) IS NOT DISTINCT FROM")
JOINTS = (exp.And, exp.Or, exp.Not, exp.Paren)
Weighted = tuple[str, Fraction]
Kinds = list[tuple[bool | None, ...]]


@dataclass(frozen=True)
class Leaf:
    """A comparison within conditions, as SQL, and the columns that it is about."""

    sql: str
    columns: frozenset[str]
    constants: tuple[str, ...]


class Logic:
    """Checks equations over the values of a table."""

    def __init__(self, table: Table):
        """Remember what the columns hold, so that it is computed once."""
        self._table = table
        self._kinds: dict[tuple[Leaf, ...], Kinds] = {}
        self._occurring: dict[tuple[str, ...], str] = {}

    def rests_on(self, terms: Sequence[Weighted]) -> str:
        """What an equation rests on: on its answers alone, or on nobody being such as is said."""
        import duckdb

        if len(terms) > MOST_TERMS:
            return UNCHECKED
        if len(terms) == 1:
            return ANSWERS_ALONE
        try:
            return self._checked(terms)
        except duckdb.Error:
            # A value that no row has may not be computable, which says nothing of the equation.
            return UNCHECKED

    def _checked(self, terms: Sequence[Weighted]) -> str:
        leaves: dict[str, Leaf] = {}
        written = []
        for sql, times in terms:
            tree = parse_one(sql, read="duckdb")
            root = exp.Paren(this=tree)
            for node in list(_leaves(tree)):
                leaf = _leaf(node)
                leaves.setdefault(leaf.sql, leaf)
                node.replace(exp.column(f"l{list(leaves).index(leaf.sql)}"))
            written.append((root.sql(dialect="duckdb"), times))
        parts = list(_parts(list(leaves.values())))
        kinds = [self._kinds_of(part) for part in parts]
        if prod(map(len, kinds)) > MOST_KINDS:
            return UNCHECKED
        names = {sql: f"l{at}" for at, sql in enumerate(leaves)}
        sources = [
            f"(VALUES {', '.join(map(_row, each))}) AS p{at}"
            f"({', '.join(names[leaf.sql] for leaf in part)})"
            for at, (part, each) in enumerate(zip(parts, kinds, strict=True))
        ] or ["(VALUES (1)) AS p0(nothing)"]
        unit = lcm(*(times.denominator for _, times in written))
        total = " + ".join(
            f"{int(times * unit)} * (CASE WHEN {sql} THEN 1 ELSE 0 END)" for sql, times in written
        )
        shown = ", ".join(names.values()) or "1"
        found = self._table.connection.execute(
            f"SELECT {shown} FROM {' CROSS JOIN '.join(sources)} "
            f"WHERE {total} NOT IN (0, {unit}) LIMIT 1"
        ).fetchall()
        if not found:
            return ANSWERS_ALONE
        return f"implied, if nobody is like this: {_in_words(list(leaves), found[0])}"

    def _kinds_of(self, part: tuple[Leaf, ...]) -> Kinds:
        """The ways in which leaves of the same columns can hold together, or not, or be NULL."""
        if part not in self._kinds:
            columns = sorted(frozenset().union(*(leaf.columns for leaf in part)))
            source = self._values(columns, part)
            leaves = ", ".join(f"({leaf.sql})::BOOLEAN" for leaf in part)
            rows = self._table.connection.execute(
                f"SELECT DISTINCT {leaves} FROM ({source}) LIMIT {MOST_KINDS + 1}"
            ).fetchall()
            self._kinds[part] = rows
        return self._kinds[part]

    def _values(self, columns: Sequence[str], part: Sequence[Leaf]) -> str:
        """A query of what rows can have in some columns."""
        if not columns:
            return "SELECT 1"
        query = f"SELECT * FROM {self._held(tuple(columns))}"
        if len(columns) > 1:
            return query
        kind = self._table.types[columns[0]]
        for constant in sorted({constant for leaf in part for constant in leaf.constants}):
            value = f"TRY_CAST({constant} AS {kind})"
            near = [value]
            if kind == "VARCHAR":
                near += [f"{value} || '~'", f"replace({value}, '%', '')"]
            elif kind == "DATE" or kind in NUMBERS or kind.startswith("DECIMAL"):
                near += [f"{value} + 1", f"{value} - 1"]
            query += "".join(f" UNION ALL SELECT {each}" for each in near)
        return query

    def _held(self, columns: tuple[str, ...]) -> str:
        """A table of the values that occur in some columns, made once."""
        if columns not in self._occurring:
            name = f"countleak_values_{len(self._occurring)}"
            self._table.connection.execute(
                f"CREATE TEMP TABLE {name} AS "
                f"SELECT DISTINCT {', '.join(map(quoted, columns))} FROM {ROWS}"
            )
            self._occurring[columns] = name
        return self._occurring[columns]


def _leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """The largest parts of a condition that are no AND, OR, NOT or parentheses."""
    if not isinstance(node, JOINTS):
        yield node
        return
    for part in (node.this, node.args.get("expression")):
        if part is not None:
            yield from _leaves(part)


def _leaf(node: exp.Expr) -> Leaf:
    constants = tuple(
        sorted({literal.sql(dialect="duckdb") for literal in node.find_all(exp.Literal)})
    )
    columns = frozenset(column.name for column in node.find_all(exp.Column))
    return Leaf(node.sql(dialect="duckdb"), columns, constants)


def _parts(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, ...]]:
    """The leaves in groups that have no column in common."""
    left = list(leaves)
    while left:
        part, columns = [left.pop(0)], set[str]()
        columns |= part[0].columns
        while more := [leaf for leaf in left if leaf.columns & columns]:
            part += more
            columns = columns.union(*(leaf.columns for leaf in more))
            left = [leaf for leaf in left if leaf not in more]
        yield tuple(part)


def _row(kind: Sequence[bool | None]) -> str:
    words = ("NULL::BOOLEAN" if each is None else str(each) for each in kind)
    return f"({', '.join(words)})"


def _in_words(leaves: Sequence[str], holds: Sequence[bool | None]) -> str:
    parts = []
    for leaf, held in zip(leaves, holds, strict=True):
        text = GROUP.sub(r"\1 =", leaf).replace('"', "")
        if text == "TRUE":
            continue
        parts.append(text if held else f"{text} is unknown" if held is None else f"NOT {text}")
    return " AND ".join(parts)
