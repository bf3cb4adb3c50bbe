"""Expressions of a question: columns, constants and the functions that are allowed."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlglot import exp

from countleak.diffix.sql.functions import (
    FUNCTIONS,
    LARGEST_CONSTANT,
    MOST_EXPONENT,
    SMALLEST_CONSTANT,
)
from countleak.diffix.sql.statement import (
    Call,
    Column,
    Constant,
    Expression,
    Table,
    count_calls,
    uses_constant,
)
from countleak.errors import Refused

MOST_CALLS = 5
DEEPEST = 12

# How sqlglot calls what we call by the key's name, and the arguments it reads in order.
NODES: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Add: ("+", ("this", "expression")),
    exp.Sub: ("-", ("this", "expression")),
    exp.Mul: ("*", ("this", "expression")),
    exp.Div: ("/", ("this", "expression")),
    exp.Pow: ("pow", ("this", "expression")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Round: ("round", ("this",)),
    exp.Trunc: ("trunc", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
}
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
    """Reads expressions over the columns of a table."""

    table: Table

    def expression(self, node: exp.Expression) -> Expression:
        """The expression of a parsed node, checked against the limit on functions."""
        found = self._read(node, 0)
        if count_calls(found) > MOST_CALLS and uses_constant(found):
            raise Refused(
                "Queries containing expressions with a high number of functions that are used in "
                f"combination with constants are prohibited: at most {MOST_CALLS}."
            )
        if count_calls(found) and not _mentions_column(found):
            raise Refused("A function of constants only: write the constant itself.")
        return found

    def constant(self, node: exp.Expression) -> Constant:
        """The constant of a parsed node."""
        found = self.expression(node)
        if not isinstance(found, Constant):
            raise Refused("There must be a constant here: a number or a text in quotes.")
        return found

    def check_simple_text(self, expression: Expression, where: str) -> None:
        """Refuse functions on the left of IN and <> but the simple ones of texts."""
        if isinstance(expression, Call):
            if not FUNCTIONS[expression.function].simple_text:
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
        if type(node) is exp.Anonymous and node.name.lower() in ("floor_by", "round_by"):
            return self._call(node.name.lower(), node.expressions, depth)
        if type(node) not in NODES:
            raise refuse(node)
        function, names = NODES[type(node)]
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
        number.denominator == 1 and 1 <= number <= 1000 for number in numbers
    ):
        raise Refused(f"The positions of {name} are whole numbers from 1 to 1000.")
    if name.endswith("_by") and numbers[0] <= 0:
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
        if sign < 0 or len(node.name) > 1000 or not node.name.isprintable():
            raise Refused("A text constant has at most 1000 printable characters and no sign.")
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


def _mentions_column(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(_mentions_column(argument) for argument in expression.arguments)
    return isinstance(expression, Column)
