"""Ranges snapped to a grid, so that they cannot be moved along one person at a time.

A range becomes the smallest [low, high) around it whose size is 1, 2 or 5 times a power of ten
and which starts at a multiple of half its size.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from countleak.diffix.sql.statement import Range


def snap(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """The bounds of the grid's smallest range that holds [low, high)."""
    for size in _sizes(high - low):
        start = (low // (size / 2)) * (size / 2)
        if start + size >= high:
            return start, start + size
    raise AssertionError("sizes grow without end")


@lru_cache(maxsize=1000)
def align(wanted: Range) -> tuple[Range, str | None]:
    """The range on the grid and, where it moved, the notice that says so."""
    low, high = snap(wanted.low, wanted.high)
    if (low, high) == (wanted.low, wanted.high):
        return wanted, None
    name = wanted.column.name
    notice = (
        f"The range for column `{name}` has been adjusted to {show(low)} <= `{name}` < "
        f"{show(high)}."
    )
    return replace(wanted, low=low, high=high), notice


def is_width(width: Fraction) -> bool:
    """Whether a width is 1, 2 or 5 times a power of ten."""
    return width > 0 and next(_sizes(width)) == width


def show(number: Fraction) -> str:
    """A bound as people write it: 2000, 0.5."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"


def _sizes(least: Fraction) -> Iterator[Fraction]:
    """The sizes of the grid from ``least`` upwards."""
    power = Fraction(1)
    while power > least:
        power /= 10
    while power * 10 <= least:
        power *= 10
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                yield factor * power
        power *= 10
