"""Dates of a question: read as days since 1970, so that they compare, round and have ranges.

A column's dates from the year 1 to 9999 are read, others as NULL, and no expression moves them out
of what databases hold: no row can raise an error.
"""

import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction

from countleak.errors import Refused

FIRST = date(1970, 1, 1)
EARLIEST, LATEST = "0001-01-01", "9999-12-31"
# No question moves a date by more days at once.
MOST_DAYS = 36_600
# What sqlglot calls the units of an interval, in days.
INTERVALS = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}
# Parts of a date, and what it can be cut down to, under their names in SQL.
FIELDS = {"year": "year", "quarter": "quarter", "month": "month", "day": "day", "isodow": "weekday"}
TRUNCATED = ("year", "quarter", "month", "week")

_DATE = f"(DATE '{FIRST}' + CAST({{}} AS INTEGER))"


def field_in_sql(name: str) -> str:
    """A part of a date, from its days."""
    return f"CAST(extract({name} FROM {_DATE}) AS DOUBLE PRECISION)"


def truncated_in_sql(unit: str) -> str:
    """The days of the date cut down to a unit."""
    cut = f"CAST(date_trunc('{unit}', CAST({_DATE} AS TIMESTAMP)) AS DATE)"
    return f"CAST(({cut} - DATE '{FIRST}') AS DOUBLE PRECISION)"


def date_in_sql() -> str:
    """The date as it is written, from its days; beyond the years read, the first or last."""
    first, last = days_of(EARLIEST), days_of(LATEST)
    return f"CAST({_DATE.format(f'least(greatest({{}}, {first}), {last})')} AS VARCHAR)"


def column_in_sql(value: str) -> str:
    """The days of a date column; NULL for dates that are not read."""
    inside = f"{value} >= DATE '{EARLIEST}' AND {value} <= DATE '{LATEST}'"
    days = f"CAST(({value} - DATE '{FIRST}') AS DOUBLE PRECISION)"
    return f"CASE WHEN {inside} THEN {days} END"


def days_of(text: str) -> Fraction:
    """The days of a date as a question writes it."""
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            return Fraction((date.fromisoformat(text) - FIRST).days)
    except ValueError:
        pass
    raise Refused(f"'{text[:20]}' is no date; write one as '2017-01-31'.")


def date_of(days: Fraction | float) -> str:
    """The first date at or after ``days``, as it is written; beyond the years read, the last."""
    whole = -int(-days // 1) + FIRST.toordinal()
    return date.fromordinal(min(max(whole, 1), date.max.toordinal())).isoformat()


def snap_dates(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """The smallest range of the grid that holds [low, high).

    Its size is 1, 2, 5, 10 or 20 days, 1, 2, 3 or 6 months, or 1, 2 or 5 times a power of ten in
    years, and it starts at a multiple of half its size, as far as that is whole.
    """
    for start, end in _around(low, high):
        if start <= low and end >= high:
            return start, end
    return days_of(EARLIEST), days_of(LATEST) + 1


def _around(low: Fraction, high: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """Ranges of the grid that begin at or before ``low``, by size."""
    for size in (1, 2, 5, 10, 20):
        if size >= high - low:
            step = max(size // 2, 1)
            start = Fraction(low // step * step)
            yield start, start + size
    first = date.fromordinal(int(low) + FIRST.toordinal())
    month = 12 * first.year + first.month - 1
    years = [factor * 10**power for power in range(4) for factor in (1, 2, 5)]
    for months in (1, 2, 3, 6, *(12 * size for size in years)):
        step = max(months // 2, 1) if months < 12 else 12 * max(months // 24, 1)
        start = month // step * step
        yield _day(start), _day(start + months)


def _day(month: int) -> Fraction:
    """The first day of a month that counts from the year 0, within the years read."""
    year = month // 12
    if not 1 <= year <= 9999:
        return days_of(EARLIEST) if year < 1 else days_of(LATEST) + 1
    return Fraction((date(year, month % 12 + 1, 1) - FIRST).days)
