"""How a table groups people: by the values of a column, or by ranges or beginnings of them.

Each way means the same twice: as SQL that a system groups by, and as the label of everyone whose
value of the column is known.

    status                      the values themselves
    floor_by(amount, 5000)      ranges, by a function that noisy fronts have
    round_by(amount, 5000)      ranges around multiples of the width, so moved by half of it
    floor(amount / 5000)        the ranges of floor_by in plain SQL
    round(amount, -3)           ranges around multiples of a power of ten, in plain SQL
    width_bucket(amount, ...)   the ranges of floor_by, numbered from 0
    substring(zip, 1, 3)        the beginning of a text
    date_trunc('month', born)   the first day of a month, a quarter or a year
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from math import copysign, floor, log, log10
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

Label = str | int | float | None
RANGES = ("floor_by", "round_by", "floor", "width_bucket", "round")
# So many ranges are numbered by width_bucket; what is above them is in one more.
BUCKETS = 1000
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
# The first month of the unit that a month is in.
UNITS: dict[str, Callable[[int], int]] = {
    "year": lambda month: 1,
    "quarter": lambda month: month - (month - 1) % 3,
    "month": lambda month: month,
}
# Where labels are numbers, those that differ by less are the same: servers round as they like.
DIGITS = 9
# Of a column with more values than this its values are no groups of their own.
MOST_VALUES = 100
BEGINNINGS = (1, 2, 3, 4)
# Where any width will do, each is so many times the last.
WIDER = 1.15


@dataclass(frozen=True)
class Grouping:
    """A ``column`` as it is, or through a ``function`` with ``size``: a width, length or unit."""

    column: str
    function: str = ""
    size: int | str = 0

    def __post_init__(self) -> None:
        if self.function not in ("", *RANGES, "substring", "date_trunc"):
            raise InputError(f"there is no grouping {self.function!r}")
        if self.function == "date_trunc" and self.size not in UNITS:
            raise InputError(f"dates are cut to {', '.join(UNITS)}, not {self.size!r}")
        is_size = isinstance(self.size, int) and self.size >= 1
        if self.function == "round" and not (is_size and set(str(self.size)) <= {"0", "1"}):
            raise InputError(f"round takes a power of ten, not {self.size!r}")
        if self.function in (*RANGES, "substring") and not is_size:
            raise InputError(f"{self.function} takes a whole number above 0, not {self.size!r}")

    def __str__(self) -> str:
        return self.expression().sql(dialect="postgres")

    def labels(self, values: NDArray[Any]) -> list[Label]:
        """The group of everyone, by the ``values`` (n,) of the column; None where it has none."""
        return [None if value is None else self._label(value) for value in values.tolist()]

    def _label(self, value: Any) -> Label:
        if self.function in RANGES:
            assert isinstance(self.size, int)
            return _range(self.function, self.size, value)
        if self.function == "substring":
            assert isinstance(self.size, int)
            return str(value)[: self.size]
        if self.function == "date_trunc":
            year, month = str(value)[:4], int(str(value)[5:7])
            return f"{year}-{UNITS[str(self.size)](month):02d}-01"
        return as_label(value)

    def expression(self) -> "exp.Expr":
        """What a statement groups by."""
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        of, size = column(self.column), exp.convert(self.size)
        match self.function:
            case "floor_by" | "round_by":
                return exp.Anonymous(this=self.function, expressions=[of, size])
            case "floor":
                assert isinstance(self.size, int)
                # A fraction, so that no database divides whole numbers by its own rule.
                return exp.Floor(this=exp.Div(this=of, expression=exp.convert(float(self.size))))
            case "width_bucket":
                assert isinstance(self.size, int)
                ends = [exp.convert(0), exp.convert(BUCKETS * self.size)]
                return exp.Anonymous(
                    this="width_bucket", expressions=[of, *ends, exp.convert(BUCKETS)]
                )
            case "round":
                places = exp.Neg(this=exp.convert(len(str(self.size)) - 1))
                return exp.Round(this=of, decimals=places)
            case "substring":
                return exp.Substring(this=of, start=exp.convert(1), length=size)
            case "date_trunc":
                return exp.TimestampTrunc(this=of, unit=exp.var(str(self.size).upper()))
        return of


def _range(function: str, size: int, value: float) -> int:
    """The range of a number, as a function tells it."""
    match function:
        case "floor":
            return floor(value / size)
        case "width_bucket":
            return min(max(floor(value / size) + 1, 0), BUCKETS + 1)
        case "round":
            # The middle of two multiples goes away from 0, as in SQL.
            return int(copysign(floor(abs(value) / size + 0.5), value)) * size
    # Of round_by the middle goes up.
    return floor(value / size + (function == "round_by") / 2) * size


def as_label(value: Any) -> Label:
    """A value as a label: numbers that are whole are whole numbers, and dates are texts."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, date):
        # Of a time of day nothing is said where it is midnight.
        return value.isoformat().removesuffix("T00:00:00")
    number = round(float(value), DIGITS)
    return int(number) if number.is_integer() else number


def as_shown(label: Label, shown: Any) -> Label:
    """What a system shows of a group, told in the way of a ``label`` of the same grouping.

    Servers send numbers as text, dates with a time of day, and truth values as letters.
    """
    if shown is None or type(shown) is type(label):
        known: Label = shown
        return known
    text = str(shown)
    if isinstance(label, bool):
        return {"t": True, "true": True, "1": True}.get(text.lower(), False)
    if isinstance(label, int | float):
        try:
            return as_label(float(text))
        except ValueError:
            return text
    return text


def groupings_of(
    name: str,
    values: NDArray[Any],
    functions: Sequence[str] = ("", "floor"),
    of_any_width: Sequence[str] = (),
) -> list[Grouping]:
    """The ways to group by a known column that leave some people together and some apart.

    Ranges are 1, 2 or 5 times a power of ten wide; by the functions ``of_any_width`` also others.
    """
    present = [value for value in values.tolist() if value is not None]
    distinct = set(present)
    if len(distinct) < 2:
        return []
    found = [Grouping(name)] if "" in functions and len(distinct) <= MOST_VALUES else []
    if all(isinstance(value, int | float) for value in distinct):
        spread = float(max(distinct) - min(distinct))
        ranges = [function for function in RANGES if function in functions]
        found += [
            Grouping(name, function, width)
            for function in ranges
            for width in _widths(spread, len(present), function in of_any_width)
            if function != "round" or str(width).startswith("1")
        ]
    elif all(DAY.match(str(value)) for value in distinct):
        units = UNITS if "date_trunc" in functions else ()
        found += [Grouping(name, "date_trunc", unit) for unit in units]
    elif "substring" in functions:
        lengths = [k for k in BEGINNINGS if k < max(map(len, map(str, distinct)))]
        found += [Grouping(name, "substring", length) for length in lengths]
    return _different(found, values)


def _different(groupings: list[Grouping], values: NDArray[Any]) -> list[Grouping]:
    """Those that put some people apart, and no two of a function that put the same together."""
    seen: dict[tuple[str, tuple[int, ...]], Grouping] = {}
    for grouping in groupings:
        number: dict[Label, int] = {}
        parts = tuple(number.setdefault(x, len(number)) for x in grouping.labels(values))
        if len(number) > 1 and ("", parts) not in seen:
            seen.setdefault((grouping.function, parts), grouping)
    return list(seen.values())


def _widths(spread: float, people: int, any_width: bool) -> list[int]:
    """Widths, 1, 2, 5 times a power of ten or any, of from 2 ranges to a few people in each."""
    least = max(1.0, spread / people)
    powers = range(max(0, floor(log10(least))), floor(log10(max(spread, 1.0))) + 1)
    widths = {step * 10**power for power in powers for step in (1, 2, 5)}
    if any_width:
        between = log(max(spread, 1.0) / least) / log(WIDER)
        widths |= {round(least * WIDER**step) for step in range(floor(between) + 1)}
    return [width for width in sorted(widths) if least <= width <= spread]
