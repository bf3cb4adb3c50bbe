"""Conditions of several parts: read by sqlglot, and rejected but for what is on a list.

A condition is comparisons of a column with a value, ``IN``, ``NOT IN``, ``IS NULL`` and ``IS NOT
NULL``, joined by ``AND``. A value is a text in quotes, a number, ``true``, ``false`` or a word.
"""

from collections.abc import Iterator

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from countleak.errors import InputError

# Longer is no condition that a person writes, and deep ones would exhaust a parser.
LONGEST = 10_000
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LTE: "<=", exp.GTE: ">=", exp.LT: "<", exp.GT: ">",
}  # fmt: skip
# A column, a comparison, and values as they are written.
Read = tuple[str, str, tuple[str, ...]]


def read_clauses(text: str) -> list[Read]:
    """What a condition says of its columns, part by part; raises InputError for anything else."""
    try:
        if len(text) > LONGEST:
            raise _unreadable(text, f"more than {LONGEST} characters")
        return list(_clauses(parse_one(text, dialect="postgres", into=exp.Condition), text))
    except (SqlglotError, RecursionError):
        raise _unreadable(text) from None


def _clauses(tree: exp.Expr | None, text: str) -> Iterator[Read]:
    if isinstance(tree, exp.Paren):
        yield from _clauses(tree.this, text)
    elif isinstance(tree, exp.And):
        yield from _clauses(tree.left, text)
        yield from _clauses(tree.right, text)
    elif isinstance(tree, exp.Not):
        column, comparison, values = _clause(_bare(tree.this), text)
        negated = {"IN": "NOT IN", "IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL"}
        if comparison not in negated:
            raise _unreadable(text, "NOT")
        yield column, negated[comparison], values
    else:
        yield _clause(tree, text)


def _clause(tree: exp.Expr | None, text: str) -> Read:
    parts = set() if tree is None else {name for name, part in tree.args.items() if part}
    if isinstance(tree, exp.In) and parts == {"this", "expressions"}:
        return _column(tree.this, text), "IN", tuple(_value(v, text) for v in tree.expressions)
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
        comparison = "IS NOT NULL" if tree.args.get("negate") else "IS NULL"
        if parts <= {"this", "expression", "negate"}:
            return _column(tree.this, text), comparison, ()
    if tree is not None and type(tree) in COMPARISONS and parts == {"this", "expression"}:
        values = (_value(tree.expression, text),)
        return _column(tree.this, text), COMPARISONS[type(tree)], values
    raise _unreadable(text, "" if tree is None else tree.key.upper())


def _bare(tree: exp.Expr | None) -> exp.Expr | None:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _column(tree: exp.Expr, text: str) -> str:
    if isinstance(tree, exp.Column) and len(tree.parts) == 1 and tree.name:
        return str(tree.name)
    raise _unreadable(text, f"{tree.key.upper()} where a column is expected")


def _value(tree: exp.Expr, text: str) -> str:
    """A value as it is written."""
    if type(tree) is exp.Literal:
        return "'" + tree.this.replace("'", "''") + "'" if tree.is_string else str(tree.this)
    if type(tree) is exp.Neg and type(tree.this) is exp.Literal and not tree.this.is_string:
        return f"-{tree.this.this}"
    if type(tree) is exp.Boolean:
        return str(tree.this).lower()
    if type(tree) is exp.Column and len(tree.parts) == 1 and not tree.this.quoted:
        return str(tree.name)
    raise _unreadable(text, f"{tree.key.upper()} where a value is expected")


def _unreadable(text: str, holds: str = "") -> InputError:
    shown = text if len(text) <= 100 else f"{text[:100]}..."
    return InputError(
        f"condition {shown!r} cannot be read; write it like status = 'C' or amount >= 5000, with "
        f"AND, IN (...) and IS NULL{f'; it holds {holds}' if holds else ''}"
    )
