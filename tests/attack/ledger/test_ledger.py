"""The release ledger against brute force, and its proofs in exact arithmetic."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.bounds import Bounder, Contradiction
from countleak.attack.ledger.proofs import (
    Proof,
    prove_at_most,
    prove_contradiction,
    prove_equal,
)
from countleak.attack.ledger.propagation import components, propagate

MOST = 3


@st.composite
def ledgers(draw, consistent=True):
    """Up to 5 cells of up to 3 people, and up to 6 sums of them, exact or in a range."""
    n = draw(st.integers(1, 5))
    truth = np.array(draw(st.lists(st.integers(0, MOST), min_size=n, max_size=n)))
    rows = draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=6))
    A = np.array([np.ones(n), *rows])
    below = draw(st.lists(st.integers(0, 2), min_size=len(A), max_size=len(A)))
    above = draw(st.lists(st.integers(0, 2), min_size=len(A), max_size=len(A)))
    sums = A @ truth
    low, high = np.maximum(sums - below, 0), sums + above
    high[0], low[0] = min(high[0], MOST * n), low[0]
    if not consistent:
        low = low + draw(st.integers(0, 3))
        high = np.maximum(low, high)
    return Ledger(csr_array(A), low.astype(float), high.astype(float))


def solutions(ledger):
    most = int(ledger.high[0])
    counts = product(range(most + 1), repeat=ledger.cells)
    return [x for x in map(np.array, counts) if x.sum() <= most and ledger.holds(x)]


@settings(max_examples=60, deadline=None)
@given(ledgers(), st.data())
def test_intervals_are_those_of_all_solutions(ledger, data):
    every = solutions(ledger)
    bounder = Bounder(ledger)
    chosen = data.draw(st.lists(st.booleans(), min_size=ledger.cells, max_size=ledger.cells))
    groups = [np.array([j]) for j in range(ledger.cells)] + [np.flatnonzero(chosen)]
    for group in groups:
        sums = [x[group].sum() for x in every]
        interval = bounder.interval(group)
        assert interval.exact
        assert (interval.low, interval.high) == (min(sums), max(sums))


@settings(max_examples=60, deadline=None)
@given(ledgers())
def test_proofs_hold_for_all_solutions_and_no_tighter_one_is_given(ledger):
    every = solutions(ledger)
    for j in range(ledger.cells):
        cell = np.array([j])
        low, high = min(x[j] for x in every), max(x[j] for x in every)
        at_most = prove_at_most(ledger, cell, 1, high)
        at_least = prove_at_most(ledger, cell, -1, -low)
        assert at_most is None or at_most.shows_at_most(ledger, cell, 1, high)
        assert prove_at_most(ledger, cell, 1, high - 1) is None
        assert at_least is None or at_least.shows_at_most(ledger, cell, -1, -low)
        assert prove_at_most(ledger, cell, -1, -low - 1) is None
        equal = prove_equal(ledger, cell)
        if equal is not None:
            assert low == high == equal.most(ledger)


@settings(max_examples=60, deadline=None)
@given(ledgers(consistent=False))
def test_what_no_counts_fit_is_a_contradiction(ledger):
    if solutions(ledger):
        assert Bounder(ledger).interval(np.arange(ledger.cells)).exact
        assert prove_contradiction(ledger) is None
        return
    with pytest.raises(Contradiction):
        Bounder(ledger)
    proof = prove_contradiction(ledger)
    # What only whole numbers contradict has no proof by multipliers.
    if proof is not None:
        rows = np.array([row for row, _ in proof.terms])
        assert not solutions_of_rows(ledger, rows)


def solutions_of_rows(ledger, rows):
    some = ledger.part(rows, np.arange(ledger.cells))
    finite = some.high[np.isfinite(some.high)]
    most = int(max(finite.max(initial=0), some.low.max()))
    return [x for x in product(range(most + 1), repeat=ledger.cells) if some.holds(np.array(x))]


@settings(max_examples=60, deadline=None)
@given(ledgers())
def test_propagation_loses_no_solution(ledger):
    limits = propagate(ledger, Limits.none(ledger.cells))
    assert limits is not None
    for x in solutions(ledger):
        assert (limits.low <= x).all()
        assert (x <= limits.high).all()


def test_a_false_proof_is_not_one():
    ledger = Ledger(csr_array([[1.0, 1.0]]), np.array([3.0]), np.array([3.0]))
    first = np.array([0])
    assert prove_equal(ledger, first) is None
    assert not Proof(((0, 1),)).shows_at_most(ledger, first, 1, 2)
    assert Proof(((0, 1),)).shows_at_most(ledger, first, 1, 3)
    assert not Proof(((0, 1),)).equals(ledger, first)
    assert not Proof(((0, -1),)).shows_at_most(ledger, first, 1, 3)


def test_parts_that_say_nothing_of_each_other_are_programs_of_their_own():
    A = csr_array([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    ledger = Ledger(A, np.array([2.0, 3.0, 4.0]), np.array([2.0, 3.0, 4.0]))
    limits = propagate(ledger, Limits.none(5))
    parts = components(ledger, limits)
    assert [(rows.tolist(), cells.tolist()) for rows, cells in parts] == [
        ([0], [0, 1]),
        ([1], [2, 3]),
    ]
    assert limits.low[4] == limits.high[4] == 4


def test_cells_that_nothing_was_published_of_have_no_end():
    ledger = Ledger(csr_array([[1.0, 0.0]]), np.array([3.0]), np.array([np.inf]))
    interval = Bounder(ledger).interval(np.array([0, 1]))
    assert (interval.low, interval.high) == (3, np.inf)
