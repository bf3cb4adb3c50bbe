"""Expressions of a question: columns, constants, and the functions that are allowed.

Functions are written so that no row can raise an error: an error would answer a question about
that row without any noise. Numbers are computed in doubles, by casts, so that databases agree.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.statement import Call, Column, Constant, Expression, Kind, Table
from countleak.errors import Refused

MOST_CALLS = 5
DEEPEST = 12
LONGEST_TEXT = 1000
LAST_POSITION = 1000
MOST_EXPONENT = 4
# Constants between these, or 0, keep products and quotients of doubles inside their range.
SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-15, 1e15
# A result that could pass SAFE has its operands cut off at LARGE; its fourth power is no more.
SAFE, LARGE = 1e300, 1e60
ZERO, HALF = "CAST(0 AS DOUBLE PRECISION)", "CAST(0.5 AS DOUBLE PRECISION)"


@dataclass(frozen=True)
class Function:
    """A function: ``node`` is sqlglot's class for it, with the names of its arguments.

    It ``takes`` kinds of arguments, of which those in ``fixed`` must be constants, and ``gives``
    a kind; ``sql`` is how we write it. ``size`` is the largest magnitude of the result, given
    those of the arguments.
    """

    node: type[exp.Expression] | None
    names: tuple[str, ...]
    takes: tuple[Kind, ...]
    gives: Kind
    sql: str
    fixed: tuple[int, ...] = ()
    size: Callable[..., float] = lambda value: value + 1

    @property
    def is_simple_text(self) -> bool:
        """Whether it may stand on the left of IN and <>."""
        return self.gives is Kind.TEXT


def _power_size(base: float, exponent: float) -> float:
    return math.inf if base > LARGE else max(base, 1.0) ** exponent


def _by_size(value: float, width: float) -> float:
    # The quotient must stay a double too.
    return max(value + width, value / width)


_ONE, _TWO = ("this",), ("this", "expression")
_N, _T = Kind.NUMBER, Kind.TEXT

FUNCTIONS: dict[str, Function] = {
    "+": Function(exp.Add, _TWO, (_N, _N), _N, "({} + {})", size=operator.add),
    "-": Function(exp.Sub, _TWO, (_N, _N), _N, "({} - {})", size=operator.add),
    "*": Function(exp.Mul, _TWO, (_N, _N), _N, "({} * {})", size=operator.mul),
    "/": Function(exp.Div, _TWO, (_N, _N), _N, "({} / {})", (1,), operator.truediv),
    # A negative base has no power but a whole one, and the exponent need not be whole.
    "pow": Function(
        exp.Pow, _TWO, (_N, _N), _N, f"power(greatest({{}}, {ZERO}), {{}})", (1,), _power_size
    ),
    "sqrt": Function(exp.Sqrt, _ONE, (_N,), _N, f"sqrt(greatest({{}}, {ZERO}))"),
    "abs": Function(exp.Abs, _ONE, (_N,), _N, "abs({})"),
    "floor": Function(exp.Floor, _ONE, (_N,), _N, "floor({})"),
    "ceil": Function(exp.Ceil, _ONE, (_N,), _N, "ceil({})"),
    # Databases disagree about halves; this rounds them up.
    "round": Function(exp.Round, _ONE, (_N,), _N, f"floor({{}} + {HALF})"),
    "trunc": Function(exp.Trunc, _ONE, (_N,), _N, "trunc({})"),
    "length": Function(exp.Length, _ONE, (_T,), _N, "CAST(length({}) AS DOUBLE PRECISION)"),
    "lower": Function(exp.Lower, _ONE, (_T,), _T, "lower({})"),
    "upper": Function(exp.Upper, _ONE, (_T,), _T, "upper({})"),
    "trim": Function(None, (), (_T,), _T, "trim({})"),
    "ltrim": Function(None, (), (_T,), _T, "ltrim({})"),
    "rtrim": Function(None, (), (_T,), _T, "rtrim({})"),
    "left": Function(exp.Left, _TWO, (_T, _N), _T, "left({}, CAST({} AS INTEGER))", (1,)),
    "right": Function(exp.Right, _TWO, (_T, _N), _T, "right({}, CAST({} AS INTEGER))", (1,)),
    "substring": Function(
        exp.Substring,
        ("this", "start", "length"),
        (_T, _N, _N),
        _T,
        "substring({}, CAST({} AS INTEGER), CAST({} AS INTEGER))",
        (1, 2),
    ),
    # The generalisations of the successor, which takes no others.
    "floor_by": Function(None, (), (_N, _N), _N, "(floor({0} / {1}) * {1})", (1,), _by_size),
    "round_by": Function(
        None, (), (_N, _N), _N, f"(floor({{0}} / {{1}} + {HALF}) * {{1}})", (1,), _by_size
    ),
}
GENERALISING = ("floor_by", "round_by")
_BY_NODE = {function.node: name for name, function in FUNCTIONS.items() if function.node}
# Marks that sqlglot leaves on a node and that change nothing about what it means here.
HARMLESS = {"typed", "safe", "is_numeric", "dialect"}
TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}

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


def refuse(node: exp.Expression, part: str | None = None) -> Refused:
    """The one text for whatever is not allowed."""
    kind = "*" if isinstance(node, exp.Star) else type(node).__name__
    what = CLAUSES.get(part or "", f"{kind} with {part}" if part else kind)
    return Refused(
        f"This part of the query is not allowed: {what}. A query selects count, sum or avg FROM "
        "one table, with conditions joined by AND (=, <>, ranges, IN, LIKE, IS NULL) and GROUP BY."
    )


@dataclass(frozen=True)
class Reader:
    """Reads expressions over the columns of a table.

    ``generalises`` says whether the functions ``floor_by`` and ``round_by`` exist.
    """

    table: Table
    generalises: bool = False

    def expression(self, node: exp.Expression) -> Expression:
        """The expression of a parsed node, checked against the limit on functions."""
        expression = self._read(node, 0)
        calls = _count_calls(expression)
        if calls > MOST_CALLS and _mentions(expression, Constant):
            raise Refused(
                "Queries containing expressions with a high number of functions that are used in "
                f"combination with constants are prohibited: at most {MOST_CALLS}."
            )
        if calls and not _mentions(expression, Column):
            raise Refused("A function of constants only: write the constant itself.")
        return expression

    def constant(self, node: exp.Expression) -> Constant:
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
            self.check_simple_text(expression.arguments[0], where)

    def _read(self, node: exp.Expression | None, depth: int) -> Expression:
        if depth > DEEPEST or node is None:
            raise Refused(f"An expression is nested more than {DEEPEST} deep, or incomplete.")
        if type(node) is exp.Paren:
            return self._read(node.this, depth + 1)
        if type(node) is exp.Column:
            return self._column(node)
        if type(node) in (exp.Literal, exp.Neg):
            return _literal(node)
        if type(node) is exp.Trim:
            return self._trim(node, depth)
        if type(node) is exp.Anonymous and node.name.lower() in GENERALISING:
            if not self.generalises:
                raise Refused("The functions floor_by and round_by do not exist in this release.")
            return self._call(node.name.lower(), node.expressions, depth)
        if type(node) not in _BY_NODE:
            raise refuse(node)
        function = _BY_NODE[type(node)]
        names = FUNCTIONS[function].names
        only(node, *names)
        return self._call(function, [node.args.get(name) for name in names], depth)

    def _column(self, node: Any) -> Column:
        only(node, "this", "table")
        of_table = node.args.get("table")
        known = of_table is None or of_table.name.lower() == self.table.name.lower()
        if known and isinstance(node.this, exp.Identifier):
            for name, kind in self.table.columns.items():
                if name == node.name or (
                    not node.this.quoted and name.lower() == node.name.lower()
                ):
                    return Column(name, kind)
        raise Refused(
            f"Column `{node.name[:60]}` doesn't exist in table `{self.table.name}`; it has "
            f"{', '.join(self.table.columns)}."
        )

    def _trim(self, node: Any, depth: int) -> Expression:
        only(node, "this", "position")
        position = str(node.args.get("position") or "").upper()
        if position not in TRIMS:
            raise refuse(node, "position")
        return self._call(TRIMS[position], [node.this], depth)

    def _call(self, name: str, nodes: list[exp.Expression | None], depth: int) -> Call:
        function = FUNCTIONS[name]
        if len(nodes) != len(function.takes):
            raise Refused(f"The function {name} takes {len(function.takes)} arguments here.")
        arguments = tuple(self._read(node, depth + 1) for node in nodes)
        for place, (argument, kind) in enumerate(zip(arguments, function.takes, strict=True)):
            if argument.kind.numeric != kind.numeric:
                raise Refused(f"The function {name} does not take a {argument.kind} there.")
            if place in function.fixed and not isinstance(argument, Constant):
                raise Refused(f"Argument {place + 1} of {name} must be a constant.")
        _check_constants(name, arguments)
        return Call(name, arguments, function.gives)


def _check_constants(name: str, arguments: tuple[Expression, ...]) -> None:
    """Refuse constants with which a row could raise an error."""
    values = [a.value for a in arguments[1:] if isinstance(a, Constant)]
    numbers = [value for value in values if isinstance(value, Fraction)]
    if name == "/" and 0 in numbers:
        raise Refused("Division by 0.")
    if name == "pow" and not 0 <= numbers[0] <= MOST_EXPONENT:
        raise Refused(f"The exponent of pow must lie between 0 and {MOST_EXPONENT}.")
    if name in ("left", "right", "substring") and not all(
        number.denominator == 1 and 1 <= number <= LAST_POSITION for number in numbers
    ):
        raise Refused(f"The positions of {name} are whole numbers from 1 to {LAST_POSITION}.")
    if name in GENERALISING and numbers[0] <= 0:
        raise Refused(f"The width of {name} must be above 0.")


def _literal(node: exp.Expression) -> Constant:
    sign = 1
    while type(node) is exp.Neg:
        only(node, "this")
        sign, node = -sign, node.this
    if type(node) is not exp.Literal:
        raise refuse(node)
    only(node, "this", "is_string")
    if node.is_string:
        if sign < 0 or len(node.name) > LONGEST_TEXT or not node.name.isprintable():
            raise Refused(
                f"A text constant has at most {LONGEST_TEXT} printable characters and no sign."
            )
        return Constant(node.name)
    return Constant(sign * _number(node.name))


@lru_cache(maxsize=4096)
def _number(text: str) -> Fraction:
    """The number a literal writes, within what functions can bear."""
    try:
        size = float(text)
        if size and not SMALLEST_CONSTANT <= abs(size) <= LARGEST_CONSTANT:
            raise ValueError
        return Fraction(text)
    except (ValueError, OverflowError):
        raise Refused(
            f"The number {text[:20]} cannot be used; write one between {SMALLEST_CONSTANT:g} and "
            f"{LARGEST_CONSTANT:g}."
        ) from None


def _count_calls(expression: Expression) -> int:
    if not isinstance(expression, Call):
        return 0
    return 1 + sum(map(_count_calls, expression.arguments))


def _mentions(expression: Expression, kind: type[Column] | type[Constant]) -> bool:
    """Whether a column, or a constant, stands anywhere in the expression."""
    if isinstance(expression, Call):
        return any(_mentions(argument, kind) for argument in expression.arguments)
    return isinstance(expression, kind)
