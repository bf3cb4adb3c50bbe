"""Expressions of a question: columns, constants, and the functions that are allowed."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.dates import FIELDS, INTERVALS, TRUNCATED, days_of
from countleak.diffix.sql.functions import (
    BY_NODE,
    CASTS,
    FUNCTIONS,
    GENERALISING,
    TRIMS,
    WHOLE,
    check_arguments,
    magnitude,
)
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.statement import Call, Column, Constant, Expression, Kind, Table
from countleak.errors import Refused

# Constants are between these, or 0.
SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-15, 1e15

_KINDS = exp.DataType.Type
WHOLES = (_KINDS.SMALLINT, _KINDS.INT, _KINDS.BIGINT)
NUMBERS = (_KINDS.FLOAT, _KINDS.DOUBLE)
TEXTS = (_KINDS.TEXT, _KINDS.VARCHAR)
DATE_FIELDS: dict[type, str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
}
# Marks that sqlglot leaves on a node and that change nothing about what it means here.
HARMLESS = {"typed", "safe", "is_numeric", "dialect"}

# What a clause is called in SQL.
CLAUSES = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "having": "HAVING",
    "distinct": "DISTINCT",
    "joins": "JOIN",
    "with_": "WITH",
    "windows": "WINDOW",
}


def only(node: Any, *names: str) -> None:
    """Refuse a node that carries anything but the arguments ``names``."""
    for name, value in node.args.items():
        if name not in names and name not in HARMLESS and value not in (None, False, [], ""):
            raise refuse(node, name)


def refuse(node: exp.Expr, part: str | None = None) -> Refused:
    """The one text for whatever is not allowed."""
    kind = "*" if isinstance(node, exp.Star) else type(node).__name__
    what = CLAUSES.get(part or "", f"{kind} with {part}" if part else kind)
    return Refused(
        f"This part of the query is not allowed: {what}. A query selects aggregates FROM a table, "
        "or tables joined by the user id, with conditions joined by AND (=, <>, ranges, IN, LIKE, "
        "IS NULL) and GROUP BY."
    )


@dataclass(frozen=True)
class Reader:
    """Reads expressions over the columns of a table, or those that a subquery over it selects.

    ``generalises`` says whether the functions ``floor_by`` and ``round_by`` exist. ``alias`` is
    what the table or subquery is called in the question; ``selected`` are the names and meanings of
    a subquery's columns, None for the table itself. ``others`` are the tables that can stand in
    FROM as well, ``parts`` the readers of what a join joins.
    """

    table: Table
    generalises: bool = False
    alias: str = ""
    selected: tuple[tuple[str, Expression], ...] | None = None
    others: tuple[Table, ...] = ()
    parts: tuple["Reader", ...] = ()

    @property
    def called(self) -> str:
        """What the columns' table is called in the question."""
        return " or ".join(part.called for part in self.parts) or self.alias or self.table.name

    @property
    def columns(self) -> tuple[tuple[str, Expression], ...]:
        """The columns that can be named, and what each means."""
        if self.parts:
            return tuple(column for part in self.parts for column in part.columns)
        if self.selected is not None:
            return self.selected
        return tuple((name, Column(name, kind)) for name, kind in self.table.columns.items())

    def expression(self, node: exp.Expr) -> Expression:
        """The expression of a parsed node, checked against the limit on functions."""
        expression = self._read(node, 0)
        parts = list(_parts(expression))
        LIMITS.check("terms", parts)
        calls = sum(isinstance(part, Call) for part in parts)
        if calls > LIMITS.functions and any(isinstance(part, Constant) for part in parts):
            raise Refused(
                "Queries containing expressions with a high number of functions that are used in "
                f"combination with constants are prohibited: at most {LIMITS.functions}."
            )
        if calls and not any(isinstance(part, Column) for part in parts):
            raise Refused("A function of constants only: write the constant itself.")
        magnitude(expression)
        return expression

    def constant(self, node: exp.Expr) -> Constant:
        """The constant of a parsed node."""
        expression = self.expression(node)
        if not isinstance(expression, Constant):
            raise Refused("There must be a constant here: a number or a text in quotes.")
        return expression

    def check_simple_text(self, expression: Expression, where: str) -> None:
        """Refuse functions on the left of IN and <> but the simple ones of texts."""
        if isinstance(expression, Call):
            if not FUNCTIONS[expression.function].is_simple_text:
                raise Refused(
                    f"The function {expression.function} cannot be used on the left of {where}; "
                    "only simple functions of texts can."
                )
            for argument in expression.arguments:
                self.check_simple_text(argument, where)

    def _read(self, node: exp.Expr | None, depth: int) -> Expression:
        if depth > LIMITS.depth or node is None:
            raise Refused(f"An expression is nested more than {LIMITS.depth} deep, or incomplete.")
        if type(node) is exp.Paren:
            return self._read(node.this, depth + 1)
        if type(node) is exp.Column:
            return self._column(node)
        if type(node) in (exp.Literal, exp.Neg):
            return _literal(node)
        if type(node) is exp.Trim:
            return self._trim(node, depth)
        if type(node) is exp.Cast:
            return self._cast(node, depth)
        if type(node) is exp.Concat:
            return self._concat(node, depth)
        if type(node) in (exp.Round, exp.Trunc) and node.args.get("decimals") is not None:
            return self._rounded(node, depth)
        if type(node) in (exp.Add, exp.Sub) and type(node.expression) is exp.Interval:
            return self._shifted(node, depth)
        if type(node) is exp.Sub:
            return self._difference(node, depth)
        if type(node) in (exp.Extract, exp.TimestampTrunc, *DATE_FIELDS) or (
            type(node) is exp.Anonymous and node.name.lower() == "weekday"
        ):
            return self._of_date(node, depth)
        if type(node) is exp.Anonymous and node.name.lower() == "bucket":
            return self._call("bucket", node.expressions, depth)
        if type(node) is exp.Anonymous and node.name.lower() in GENERALISING:
            if not self.generalises:
                raise Refused("The functions floor_by and round_by do not exist in this release.")
            return self._call(node.name.lower(), node.expressions, depth)
        if type(node) not in BY_NODE:
            raise refuse(node)
        function = BY_NODE[type(node)]
        names = FUNCTIONS[function].names
        only(node, *names)
        return self._call(function, [node.args.get(name) for name in names], depth)

    def _column(self, node: Any) -> Expression:
        only(node, "this", "table")
        meanings = [part.meaning(node) for part in self.parts or (self,)]
        known = [meaning for meaning in meanings if meaning is not None]
        if len(known) > 1:
            raise Refused(
                f"Column `{node.name[:60]}` is in several tables; write which: {self.called}."
            )
        if not known:
            raise Refused(
                f"Column `{node.name[:60]}` doesn't exist in table `{self.called}`; it has "
                f"{', '.join(name for name, _ in self.columns)}."
            )
        return known[0]

    def meaning(self, node: Any) -> Expression | None:
        """What a column's name means here, if anything."""
        of_table = node.args.get("table")
        known = of_table is None or of_table.name.lower() == self.called.lower()
        if known and isinstance(node.this, exp.Identifier):
            for name, meaning in self.columns:
                if name == node.name or (
                    not node.this.quoted and name.lower() == node.name.lower()
                ):
                    return meaning
        return None

    def _trim(self, node: Any, depth: int) -> Expression:
        only(node, "this", "position")
        position = str(node.args.get("position") or "").upper()
        if position not in TRIMS:
            raise refuse(node, "position")
        return self._call(TRIMS[position], [node.this], depth)

    def _cast(self, node: Any, depth: int) -> Expression:
        """A cast that no value can fail; a text that writes no number becomes NULL.

        That of a constant text to a date is how a question may write a date.
        """
        only(node, "this", "to")
        only(node.args["to"], "this", "nested")
        inner, kind = self._read(node.this, depth + 1), node.args["to"].this
        is_column = not isinstance(inner, Constant)
        if kind is _KINDS.DATE and isinstance(inner, Constant) and isinstance(inner.value, str):
            days_of(inner.value)
            return inner
        if kind is _KINDS.DATE and inner.kind is Kind.DATE:
            return inner
        if kind in (*WHOLES, *NUMBERS) and inner.kind is Kind.TEXT and is_column:
            inner = _checked("number_of_text", (inner,))
        if kind in TEXTS and is_column and inner.kind is not Kind.TEXT:
            return _text_of(inner)
        if kind in WHOLES and inner.kind.numeric:
            return _checked("round", (inner,))
        if kind in (NUMBERS if inner.kind.numeric else TEXTS):
            return inner
        raise Refused(
            "A cast turns numbers into integers and doubles, texts into numbers, and whole numbers "
            "and dates into texts; write no other."
        )

    def _shifted(self, node: Any, depth: int) -> Expression:
        """A date moved by an interval of days or weeks."""
        only(node, "this", "expression")
        only(node.expression, "this", "unit")
        unit, number = node.expression.args.get("unit"), node.expression.this
        days = INTERVALS.get(unit.name.upper() if unit is not None else "")
        if days is None or not re.fullmatch("[0-9]{1,7}", number.name, re.ASCII):
            raise Refused("An interval is a whole number of days or weeks, as '3 days'.")
        sign = 1 if type(node) is exp.Add else -1
        moved = Constant(Fraction(sign * days * int(number.name)))
        return _checked("shift", (self._read(node.this, depth + 1), moved))

    def _difference(self, node: Any, depth: int) -> Expression:
        """That of two numbers, or the days between two dates."""
        only(node, "this", "expression")
        sides = (self._read(node.this, depth + 1), self._read(node.expression, depth + 1))
        dates = any(side.kind is Kind.DATE for side in sides)
        return _checked("days" if dates else "-", sides)

    def _of_date(self, node: Any, depth: int) -> Expression:
        """A part of a date, or the date cut down to a unit."""
        inner = node.this
        if type(node) is exp.TimestampTrunc:
            only(node, "this", "unit")
            function = f"trunc_{node.args['unit'].name.lower()}"
        elif type(node) is exp.Extract:
            only(node, "this", "expression")
            function, inner = FIELDS.get(node.this.name.lower(), ""), node.expression
        elif type(node) is exp.Anonymous:
            only(node, "this", "expressions")
            function, inner = "weekday", node.expressions[0] if node.expressions else None
        else:
            only(node, "this")
            function = DATE_FIELDS[type(node)]
        if function not in FUNCTIONS:
            raise Refused(
                "Parts of a date are year, quarter, month, day and weekday (isodow); date_trunc "
                f"takes {', '.join(TRUNCATED)}."
            )
        return _checked(function, (self._read(inner, depth + 1),))

    def _concat(self, node: Any, depth: int) -> Expression:
        only(node, "expressions", "coalesce")
        parts = [self._read(part, depth + 1) for part in node.expressions]
        return reduce(lambda left, right: _checked("concat", (left, right)), parts)

    def _rounded(self, node: Any, depth: int) -> Expression:
        """round or trunc to digits behind the point, or, with a negative number, before it."""
        only(node, "this", "decimals")
        name = "round" if type(node) is exp.Round else "trunc"
        inner = self._read(node.this, depth + 1)
        number = self._read(node.args["decimals"], depth + 1)
        digits = number.value if isinstance(number, Constant) else None
        if not isinstance(digits, Fraction) or digits.denominator != 1 or abs(digits) > 10:
            raise Refused(f"The digits of {name} are a whole number from -10 to 10.")
        behind = "digits" if digits >= 0 else "tens"
        return _checked(f"{name}_{behind}", (inner, Constant(Fraction(10) ** abs(int(digits)))))

    def _call(self, name: str, nodes: list[exp.Expr | None], depth: int) -> Call:
        function = FUNCTIONS[name]
        if len(nodes) != len(function.takes):
            raise Refused(f"The function {name} takes {len(function.takes)} arguments here.")
        return _checked(name, tuple(self._read(node, depth + 1) for node in nodes))


def _checked(name: str, arguments: tuple[Expression, ...]) -> Call:
    """A call whose arguments are those that the function takes."""
    check_arguments(name, arguments)
    casts = (part.function for of in arguments for part in _parts(of) if isinstance(part, Call))
    # What is written of a cast grows with every other one in it.
    if name in CASTS and any(function in CASTS for function in casts):
        raise Refused("A number or a date that is cast to text, or back, cannot be cast again.")
    return Call(name, arguments, FUNCTIONS[name].gives)


def _text_of(expression: Expression) -> Call:
    """The text of a date or a whole number; databases write others differently."""
    if expression.kind is Kind.DATE:
        return _checked("text_of_date", (expression,))
    if expression.kind is Kind.WHOLE or (
        isinstance(expression, Call) and expression.function in WHOLE
    ):
        return _checked("text_of_whole", (expression,))
    raise Refused("A number is cast to text where it is whole; cast it to an integer first.")


def _literal(node: exp.Expr) -> Constant:
    sign = 1
    while type(node) is exp.Neg:
        only(node, "this")
        sign, node = -sign, node.this
    if type(node) is not exp.Literal:
        raise refuse(node)
    only(node, "this", "is_string")
    if node.is_string:
        if sign < 0 or len(node.name) > LIMITS.text or not node.name.isprintable():
            raise Refused(
                f"A text constant has at most {LIMITS.text} printable characters and no sign."
            )
        return Constant(node.name)
    return Constant(sign * _number(node.name))


@lru_cache(maxsize=4096)
def _number(text: str) -> Fraction:
    """The number a literal writes, as databases compute with it: the double next to it.

    Other digits of the same double are the same number, and are seeded alike.
    """
    if len(text) > LIMITS.digits:
        raise Refused(
            f"The number {text[:20]}... is too long; write at most {LIMITS.digits} characters."
        )
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # What is too small for a double is not 0.
    is_zero = number == 0 and not text.lower().partition("e")[0].strip("0.")
    if not is_zero and not SMALLEST_CONSTANT <= number <= LARGEST_CONSTANT:
        raise Refused(
            f"The number {text[:20]} cannot be used; write one between {SMALLEST_CONSTANT:g} and "
            f"{LARGEST_CONSTANT:g}."
        )
    return Fraction(repr(number))


def _parts(expression: Expression) -> Iterator[Expression]:
    """The columns, constants and functions of an expression."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _parts(argument)
