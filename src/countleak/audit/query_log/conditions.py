"""What a condition may consist of: comparisons of columns and constants, and plain functions.

A log is written by others. What its conditions are made of is on the lists below, or they are not
computed: nothing that reads a file, calls back, draws at random, knows the time, or does not mean
the same in every dialect.
"""

from collections.abc import Mapping

from sqlglot import exp

from countleak.foreign import first_line

# What a condition may hold, by its class in sqlglot.
ALLOWED: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.And, exp.Or, exp.Not, exp.Paren, exp.Boolean, exp.Null, exp.Literal, exp.Neg,
        exp.Column, exp.Identifier, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is,
        exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Tuple, exp.Like, exp.ILike,
        exp.Escape, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Abs, exp.Floor, exp.Ceil, exp.Round,
        exp.Pow, exp.Sqrt, exp.Greatest, exp.Least, exp.Lower, exp.Upper, exp.Trim, exp.Length,
        exp.Substring, exp.Left, exp.Right, exp.StartsWith, exp.DPipe, exp.Case, exp.If,
        exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam,
        exp.Extract, exp.Var, exp.Year, exp.Month, exp.Day, exp.DateTrunc, exp.TimestampTrunc,
    }
)  # fmt: skip
# What is never the same twice.
CHANGING: tuple[type[exp.Expr], ...] = (
    exp.Rand, exp.Randn, exp.Uuid, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp,
    exp.CurrentDatetime, exp.CurrentUser, exp.Localtime, exp.Localtimestamp,
)  # fmt: skip
CHANGING_NAMES = ("random", "rand", "now", "clock_timestamp", "gen_random_uuid", "today", "setseed")
# Types that all dialects cast to alike; integers, of what is not whole, only some.
TYPES = frozenset(
    getattr(exp.DType, name)
    for name in ("DATE", "TIMESTAMP", "TEXT", "VARCHAR", "BOOLEAN", "DOUBLE", "DECIMAL")
)
INTEGERS = frozenset(getattr(exp.DType, n) for n in ("TINYINT", "SMALLINT", "INT", "BIGINT"))
ROUNDING = ("postgres", "duckdb")
# Dialects whose LIKE ignores case.
IGNORING_CASE = ("sqlite",)


class Unreadable(Exception):
    """A statement, or a part of one, that is not read; the text says what is in the way."""


def condition_of(
    node: exp.Expr, columns: Mapping[str, str], aliases: frozenset[str], dialect: str
) -> exp.Expr:
    """A condition or an expression as DuckDB computes it, of columns as the table spells them.

    ``columns`` are the table's by their names in lower case; ``aliases`` what the table is called.
    """
    tree = node.copy()
    for part in list(tree.walk()):
        _check(part, dialect)
    for column in list(tree.find_all(exp.Column)):
        named = _column(column, columns, aliases)
        tree = named if column is tree else tree
        column.replace(named)
    if dialect in IGNORING_CASE:
        tree = tree.transform(
            lambda part: exp.ILike(**part.args) if type(part) is exp.Like else part
        )
    return tree


def _check(part: exp.Expr, dialect: str) -> None:
    kind = type(part)
    name = part.name if isinstance(part, exp.Anonymous) else part.key
    if isinstance(part, CHANGING) or name.lower() in CHANGING_NAMES:
        written = first_line(part.sql(dialect=dialect)).lower()
        raise Unreadable(f"{written} is not the same at every asking")
    if isinstance(part, exp.Query | exp.Exists | exp.Subquery):
        raise Unreadable("a subquery")
    if isinstance(part, exp.Parameter | exp.Placeholder):
        raise Unreadable("a parameter whose value is not in the log")
    if isinstance(part, exp.Div | exp.IntDiv):
        if dialect != "duckdb":
            raise Unreadable("a division, which dialects read in different ways")
        return
    if kind not in ALLOWED:
        raise Unreadable(f"{name.lower()} is not on the list of what is computed")
    types = TYPES | INTEGERS if dialect in ROUNDING else TYPES
    if isinstance(part, exp.Cast) and part.to.this not in types:
        raise Unreadable(f"a cast to {part.to.sql()}")
    if isinstance(part, exp.Column) and isinstance(part.this, exp.Star):
        raise Unreadable("a star where a column should be")


def _column(column: exp.Column, columns: Mapping[str, str], aliases: frozenset[str]) -> exp.Column:
    if column.table and column.table.lower() not in aliases:
        raise Unreadable("a column of another table")
    name = columns.get(column.name.lower())
    if name is None:
        raise Unreadable("a column that the table does not have")
    return exp.column(exp.to_identifier(name, quoted=True))
