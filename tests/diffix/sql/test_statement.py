from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.diffix.sql.statement import (
    Column,
    Kind,
    Range,
    Statement,
    Table,
    is_width,
    snap,
    snap_ranges,
)


@pytest.mark.parametrize(
    ("low", "high", "snapped"),
    [
        (2000, 3000, (2000, 3000)),
        (10000, 12000, (10000, 12000)),
        (3000, 5000, (3000, 5000)),
        (0, 3, (0, 5)),
        (1000, 20000, (0, 20000)),
        (9, 11, (9, 11)),
        (-7, 1, (-10, 10)),
        (Fraction("0.1"), Fraction("0.3"), (Fraction("0.1"), Fraction("0.3"))),
    ],
)
def test_ranges_by_hand(low, high, snapped):
    assert snap(Fraction(low), Fraction(high)) == snapped


@given(
    st.fractions(-(10**6), 10**6, max_denominator=1000),
    st.fractions(Fraction(1, 1000), 10**6, max_denominator=1000),
)
def test_snapped_is_on_the_grid_holds_the_range_and_stays(low, width):
    start, stop = snap(low, low + width)
    size = stop - start
    assert start <= low < low + width <= stop
    assert is_width(size)
    assert (2 * start / size).denominator == 1
    assert snap(start, stop) == (start, stop)


def test_a_moved_range_is_noticed_in_the_vendors_words():
    column = Column("amount", Kind.WHOLE)
    table = Table("loans", "id", {"amount": Kind.WHOLE})
    asked = Statement(table, (), conditions=(Range(column, Fraction(1000), Fraction(20000)),))
    moved = snap_ranges(asked)
    assert moved.conditions == (Range(column, 0, 20000),)
    expected = "The range for column `amount` has been adjusted to 0 <= `amount` < 20000."
    assert moved.notices == (expected,)
    assert snap_ranges(moved) == replace(moved, notices=())
