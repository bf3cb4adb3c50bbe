"""What is secret about a person: a yes or no, one value of several, or a number.

    Bit("status = 'C'")                  a condition that holds or does not, of one column or more
    Category("status")                   one of several values; they may be named
    Number("amount")                     a number that systems add up

``parse_secret`` reads all three from text: ``status = 'C'``, ``status``, ``status IN ('A', 'B')``
and ``sum(amount)``.
"""

import re
from dataclasses import dataclass
from math import isfinite
from numbers import Integral
from typing import TYPE_CHECKING

from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

NAME = r'"(?:[^"]|"")+"|[^\W\d]\w*'
TEXT = r"'(?:[^']|'')*'"
DIGITS = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
CONDITION = re.compile(rf"\s*({NAME})\s*(=|==|<>|!=|<=|>=|<|>)\s*({TEXT}|{DIGITS}|\w+)\s*")
MEMBERS = re.compile(rf"\s*({NAME})\s+in\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
MEMBER = re.compile(rf"\s*({TEXT}|{DIGITS}|\w+|\.\.\.|…)\s*(,|\Z)")
TOTAL = re.compile(rf"\s*sum\s*\(\s*({NAME})\s*\)\s*", re.IGNORECASE)
# Longer than any float, shorter than what Python refuses to convert.
LONGEST_NUMBER = 400
TRUTHS = {"true": True, "false": False}
SAME = {"==": "=", "!=": "<>"}
# What a person has who has none of the values that a category names.
OTHER = "other"


@dataclass(frozen=True)
class Clause:
    """What a column is compared with: one value, one or none of several, or whether it is missing.

    ``comparison`` is ``=``, ``<>``, ``<=``, ``>=``, ``<`` or ``>`` with one value, ``IN`` or ``NOT
    IN`` with one or more, ``IS NULL`` or ``IS NOT NULL`` with none.
    """

    column: str
    comparison: str
    values: tuple[str | float, ...] = ()

    def __str__(self) -> str:
        start = f"{_quoted(self.column)} {self.comparison}"
        texts = ", ".join(map(_text, self.values))
        if self.comparison in ("IN", "NOT IN"):
            return f"{start} ({texts})"
        return f"{start} {texts}" if texts else start

    def expression(self) -> "exp.Expr":
        """The clause as SQL, with its column quoted."""
        from sqlglot import exp

        column = exp.column(self.column, quoted=True)
        values = [exp.convert(value) for value in self.values]
        if self.comparison in ("IN", "NOT IN"):
            among = exp.In(this=column, expressions=values)
            return among if self.comparison == "IN" else exp.Not(this=among)
        if not values:
            missing = exp.Is(this=column, expression=exp.Null())
            return missing if self.comparison == "IS NULL" else exp.Not(this=missing)
        operators: dict[str, type[exp.Binary]] = {
            "=": exp.EQ, "<>": exp.NEQ, "<=": exp.LTE, ">=": exp.GTE, "<": exp.LT, ">": exp.GT,
        }  # fmt: skip
        return operators[self.comparison](this=column, expression=values[0])


@dataclass(frozen=True)
class Bit:
    """A yes-no question about a person: what must hold of its columns, as SQL writes it.

    ``status = 'C'``, ``amount >= 5000 AND zip IN ('10001', '10002')``, ``"loan type" IS NOT NULL``.
    A quoted value is text, also where it looks like a number; ``true`` and ``false`` are truth
    values.
    """

    condition: str

    def __post_init__(self) -> None:
        if match := CONDITION.fullmatch(self.condition):
            column, comparison, value = match.groups()
            same = SAME.get(comparison, comparison)
            clauses: tuple[Clause, ...] = (Clause(_name(column), same, (_value(value),)),)
        else:
            # Loaded here: most conditions are one comparison.
            from countleak.attack.conditions import read_clauses

            clauses = tuple(
                Clause(column, comparison, tuple(_value(value) for value in values))
                for column, comparison, values in read_clauses(self.condition)
            )
        text = " AND ".join(map(str, clauses))
        object.__setattr__(self, "_clauses", clauses)
        # A list alone would be read as a category.
        alone = len(clauses) == 1 and clauses[0].comparison == "IN"
        object.__setattr__(self, "condition", f"({text})" if alone else text)

    @classmethod
    def of(cls, column: str, comparison: str, value: str | float) -> "Bit":
        """The condition with these parts."""
        return cls(f"{_quoted(column)} {comparison} {_text(value)}")

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """What must hold, all of it."""
        clauses: tuple[Clause, ...] = self._clauses  # type: ignore[attr-defined]
        return clauses

    @property
    def parts(self) -> tuple[str, str, str | float]:
        """Column, comparison and value of a condition that is one comparison."""
        (clause,) = self.clauses
        (value,) = clause.values
        return clause.column, clause.comparison, value

    @property
    def column(self) -> str:
        """The column that the condition is about, or the first of them."""
        return self.clauses[0].column

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the condition is about."""
        return tuple(dict.fromkeys(clause.column for clause in self.clauses))

    @property
    def conditions(self) -> tuple["Bit | None", ...]:
        """The conditions to count by: this one."""
        return (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values to tell apart: a bit needs none."""
        return ()

    def expression(self) -> "exp.Expr":
        """The condition as SQL, with its columns quoted."""
        from sqlglot import exp

        return exp.and_(*(clause.expression() for clause in self.clauses), copy=False)

    def __str__(self) -> str:
        return self.condition


@dataclass(frozen=True)
class Category:
    """One of several values in ``column``; ``values`` names them, once they are known.

    With ``open`` a person may have a value that is not named; such people have ``OTHER``.
    """

    column: str
    values: tuple[str | float, ...] = ()
    open: bool = False

    def __post_init__(self) -> None:
        _check_column(self.column)
        if len({str(value) for value in self.values}) < len(self.values):
            raise InputError(f"{self}: a value is named twice; name each once")
        if len(self.values) + self.open == 1:
            raise InputError(f"{self}: name two values or more, or end the list with ...")
        if self.open and OTHER in self.names[:-1]:
            raise InputError(f"{self}: {OTHER!r} stands for values that are not named; drop it")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it is about: one."""
        return (self.column,)

    @property
    def conditions(self) -> tuple[Bit | None, ...]:
        """The conditions to count by, one per named value."""
        if not self.values:
            raise InputError(
                f"the values of {self.column!r} are not known; name them like "
                f"{self.column} IN ('A', 'B', 'C')"
            )
        return tuple(Bit.of(self.column, "=", value) for value in self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values to tell apart."""
        return (*(str(value) for value in self.values), *([OTHER] if self.open else []))

    def __str__(self) -> str:
        if not self.values:
            return _quoted(self.column)
        named = ", ".join([*map(_text, self.values), *(["..."] if self.open else [])])
        return f"{_quoted(self.column)} IN ({named})"


@dataclass(frozen=True)
class Number:
    """A number in ``column`` that a system adds up."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it is about: one."""
        return (self.column,)

    @property
    def conditions(self) -> tuple[Bit | None, ...]:
        """The conditions to sum by: none, everyone who is asked about is summed."""
        return (None,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values to tell apart: a number needs none."""
        return ()

    def __str__(self) -> str:
        return f"sum({_quoted(self.column)})"


Secret = Bit | Category | Number


def parse_secret(text: str) -> Secret:
    """The secret that a text describes, as the module says."""
    if match := TOTAL.fullmatch(text):
        return Number(_name(match[1]))
    if match := MEMBERS.fullmatch(text):
        try:
            return _category(_name(match[1]), match[2], text)
        except InputError:
            # A list may be the first or the last part of a condition.
            if not re.search(r"\band\b", text, re.IGNORECASE):
                raise
    if match := re.fullmatch(rf"\s*({NAME})\s*", text):
        return Category(_name(match[1]))
    try:
        return Bit(text)
    except InputError as error:
        raise InputError(
            f"secret {text!r} cannot be read; write it like status = 'C' (a condition), status "
            f"(one value of several) or sum(amount) (a number){_reason(error)}"
        ) from None


def _reason(error: InputError) -> str:
    """What a condition holds that cannot be read, if that is known."""
    _, holds, what = str(error).partition("; it holds ")
    return f"{holds}{what}"


def _category(column: str, members: str, text: str) -> Category:
    values: list[str | float] = []
    unnamed, at, more = False, 0, True
    while more:
        match = MEMBER.match(members, at)
        if not match or unnamed:
            raise InputError(f"secret {text!r} cannot be read; write it like status IN ('A', 'B')")
        unnamed = match[1] in ("...", "…")
        values += [] if unnamed else [_value(match[1])]
        at, more = match.end(), match[2] == ","
    return Category(column, tuple(values), unnamed)


def _check_column(name: str) -> None:
    if not name:
        raise InputError("a column without a name; name the column that holds the secret")


def _name(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _quoted(name: str) -> str:
    if re.fullmatch(r"[^\W\d]\w*", name):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _value(text: str) -> str | float:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if len(text) > LONGEST_NUMBER and re.fullmatch(DIGITS, text):
        raise InputError(f"number {text[:9]}... has more than {LONGEST_NUMBER} digits; write fewer")
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(DIGITS, text):
        return float(text)
    return TRUTHS.get(text.lower(), text)


def _text(value: str | float) -> str:
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    if isinstance(value, bool):
        return str(value).lower()
    if not isfinite(value):
        raise InputError(f"a condition compares with {value}; write a finite number or a text")
    return repr(int(value)) if isinstance(value, Integral) else repr(float(value))
