"""All groups bounded at once, in batches, against all counts that fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array

from countleak.attack.ledger import Ledger, rows_of
from countleak.attack.ledger import bounds as module
from countleak.attack.ledger.bounds import Bounder, Contradiction, ends_of
from tests.attack.ledger.test_ledger import ledgers, solutions


def side_by_side(first, second):
    """Two systems that say nothing of each other, as one."""
    A = csr_array(block_diag([first.A, second.A], format="csr"))
    low, high = (
        np.concatenate([getattr(each, end) for each in (first, second)]) for end in ("low", "high")
    )
    return Ledger(A, low, high)


@settings(max_examples=40, deadline=None)
@given(ledgers(), ledgers(), st.data())
def test_all_at_once_they_are_those_of_all_solutions(first, second, data):
    ledger = side_by_side(first, second)
    chosen = st.lists(st.integers(0, ledger.cells - 1), unique=True, max_size=ledger.cells)
    groups = data.draw(st.lists(chosen, min_size=1, max_size=6))
    most = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 2.0, np.inf]), min_size=6, max_size=6))
    )
    rows = rows_of([np.array(group, np.int64) for group in groups], ledger.cells)
    batch = data.draw(st.sampled_from([1, 1000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH", batch)
        ends = ends_of(ledger, rows, most[: len(groups)])
    a, b = solutions(first), solutions(second)
    for at, group in enumerate(groups):
        x_part = [j for j in group if j < first.cells]
        y_part = [j - first.cells for j in group if j >= first.cells]
        low = min(x[x_part].sum() for x in a) + min(y[y_part].sum() for y in b)
        high = max(x[x_part].sum() for x in a) + max(y[y_part].sum() for y in b)
        if ends.large[at]:
            assert high > most[at]
            continue
        interval = ends.interval(at)
        assert interval.exact
        assert (interval.low, interval.high) == (low, high)


def latin(size):
    """A cube of which all sums along its edges are published, and one of the counts behind them."""
    a, b, c = (axis.ravel() for axis in np.indices((size,) * 3))
    pairs = [(a, b), (a, c), (b, c)]
    A = np.vstack([
        (x * size + y)[None] == np.arange(size * size)[:, None] for x, y in pairs
    ]).astype(float)  # fmt: skip
    truth = ((a + b) % size == c).astype(float)
    return Ledger(csr_array(A), A @ truth, A @ truth)


def test_what_only_whole_numbers_settle_is_settled():
    # In the Latin squares of order 4, each cell is 0 in some and 1 in others.
    ledger = latin(4)
    ends = ends_of(ledger, rows_of([np.array([j]) for j in range(64)], 64))
    assert ends.exact.all()
    assert (ends.low == 0).all()
    assert (ends.high == 1).all()
    bounder = Bounder(ledger)
    for j in (0, 17, 63):
        assert bounder.interval(np.array([j])) == ends.interval(j)


def test_without_time_for_integer_programs_intervals_are_no_narrower():
    ledger = latin(3)
    every = rows_of([np.arange(27)[part] for part in np.eye(27, dtype=bool)], 27)
    quick, full = ends_of(ledger, every, time_limit=0), ends_of(ledger, every)
    assert full.exact.all()
    assert (quick.low <= full.low).all()
    assert (quick.high >= full.high).all()
    assert (quick.low[quick.exact] == full.low[quick.exact]).all()


def test_what_only_halves_solve_is_a_contradiction():
    # Three pairs of which each has one person.
    A = csr_array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    ledger = Ledger(A, np.ones(3), np.ones(3))
    for seconds in (0, 60):
        with pytest.raises(Contradiction):
            ends_of(ledger, rows_of([np.array([0])], 3), time_limit=seconds)


def test_a_published_sum_of_nobody_is_none():
    ledger = Ledger(csr_array((1, 2)), np.ones(1), np.ones(1))
    with pytest.raises(Contradiction):
        ends_of(ledger, rows_of([np.array([0])], 2))
