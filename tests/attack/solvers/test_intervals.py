from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.solvers.intervals import Box, CountIntervals, changeable, propagate
from countleak.errors import InputError, ShapeError


def every_solution(intervals):
    """All x that solve (W), by trying all 2^n."""
    bits = np.array(list(product((0, 1), repeat=intervals.people)), np.int8)
    counts = bits.astype(np.int64) @ intervals.A.astype(np.int64).T
    return bits[((intervals.low <= counts) & (counts <= intervals.high)).all(axis=1)]


@st.composite
def small_intervals(draw, most=8):
    """Intervals around counts of a secret, or around anything: some have no solution."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, n = int(rng.integers(1, most)), int(rng.integers(1, most))
    A = rng.integers(-1 if rng.random() < 0.5 else 0, 2, (m, n)).astype(np.int8)
    counts = A.astype(np.int64) @ rng.integers(0, 2, n)
    if rng.random() < 0.3:
        counts = counts + rng.integers(-1, 2, m)
    width = int(rng.integers(0, 3))
    return CountIntervals(A, counts - rng.integers(0, width + 1, m), counts + width)


@settings(max_examples=200, deadline=None)
@given(small_intervals())
def test_propagation_keeps_every_solution(intervals):
    solutions = every_solution(intervals)
    box = propagate(intervals, Box.whole(intervals.people))
    if box is None:
        assert not len(solutions)
    else:
        assert ((box.lower <= solutions) & (solutions <= box.upper)).all()


def test_propagation_goes_from_row_to_row():
    A = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, -1]], np.int8)
    box = propagate(CountIntervals.around(A, [2, 1, -1]), Box.whole(4))
    assert box is not None
    assert box.lower.tolist() == box.upper.tolist() == [1, 1, 0, 1]


@settings(max_examples=200, deadline=None)
@given(small_intervals())
def test_whoever_a_neighbour_changes_is_changed_by_a_solution(intervals):
    solutions = every_solution(intervals)
    for x in solutions[:3]:
        free = (solutions != x).any(axis=0)
        near = solutions[(solutions != x).sum(axis=1) <= 2]
        # Two flips of a kind are no exchange.
        kept = ((near != x).sum(axis=1) == 1) | (near.sum(axis=1) == x.sum())
        found = changeable(intervals, x)
        assert not (found & ~free).any()
        assert (found == (near[kept] != x).any(axis=0)).all()


def test_fractions_and_infinite_ends_become_whole_ones():
    A = np.array([[1, 1, 1], [1, -1, 0], [1, 0, 0], [0, 1, 1]])
    found = CountIntervals.between(A, [0.3, -np.inf, 12.7 - 0.7, -5], [2.9, np.inf, 99, -3])
    assert found.low.tolist() == [1, -2, 2, -1]
    assert found.high.tolist() == [2, 2, 2, -1]
    assert CountIntervals.around(A[:1], [2.7], 0.7).low.tolist() == [2]
    # The third and the fourth row cannot hold, and still do not.
    for row in (2, 3):
        alone = CountIntervals(found.A[[row]], found.low[[row]], found.high[[row]])
        assert not len(every_solution(alone))


def test_what_is_no_system_of_intervals_is_rejected():
    A, ends = np.ones((2, 3), np.int8), np.ones(2, np.int64)
    with pytest.raises(ShapeError, match="2 queries but low"):
        CountIntervals(A, np.ones(3, np.int64), ends)
    with pytest.raises(ShapeError, match=r"\(0, 3\)"):
        CountIntervals(A[:0], ends[:0], ends[:0])
    with pytest.raises(InputError, match="whole numbers"):
        CountIntervals(A, np.array([np.nan, 1.0]), ends)
    with pytest.raises(InputError, match="NaN"):
        CountIntervals.around(A, [np.nan, 1.0])
    with pytest.raises(InputError, match="-1, 0 and 1"):
        CountIntervals(2 * A, ends, ends)
    with pytest.raises(InputError, match="-1, 0 and 1"):
        CountIntervals.around(0.5 * A, [1, 1])
    with pytest.raises(InputError, match="cannot be negative"):
        CountIntervals.around(A, [1, 1], -1.0)


def test_counts_beyond_the_type_of_the_bits():
    intervals = CountIntervals.around(np.ones((1, 300), np.int8), [300])
    assert intervals.holds(np.ones(300, np.int8))
    assert intervals.counts(np.ones(300, np.int8)).tolist() == [300]
    assert not intervals.holds(np.full(300, 2, np.int8))
    assert intervals.holds(np.array([np.ones(300), np.zeros(300)])).tolist() == [True, False]
