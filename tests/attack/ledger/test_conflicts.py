"""Rows that cannot all be true: really contradictory, and none of them too many."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.conflicts import conflict_of
from countleak.attack.ledger.proofs import Prover

MOST = 3


def ledger_of(rows, ends):
    low, high = np.array(ends, float).T
    return Ledger(csr_array(np.array(rows, float)), low.copy(), high.copy())


@st.composite
def ledgers(draw):
    """Up to 4 cells and 6 rows, the last of which bounds all cells, so that brute force is fair."""
    n = draw(st.integers(2, 4))
    row = st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(any)
    rows = draw(st.lists(row, min_size=2, max_size=6))
    low = st.integers(0, MOST)
    ends = draw(st.lists(st.tuples(low, st.integers(0, 1)), min_size=len(rows), max_size=len(rows)))
    return ledger_of(rows, [(low, low + wide) for low, wide in ends])


def fits(ledger, rows):
    """Whether any counts solve the rows; a cell needs no more people than the largest end."""
    rows = np.array(rows, int)
    most = int(ledger.high[rows].max(initial=0)) + 1
    counts = np.array(list(product(range(most + 1), repeat=ledger.cells)))
    sums = counts @ ledger.A.toarray()[rows].T
    return bool(((sums >= ledger.low[rows]) & (sums <= ledger.high[rows])).all(axis=1).any())


@settings(max_examples=60, deadline=None)
@given(ledgers())
def test_what_is_named_cannot_be_true_and_is_irreducible(ledger):
    conflict = conflict_of(ledger)
    every = range(ledger.A.shape[0])
    assert (conflict is None) == fits(ledger, every)
    if conflict is None:
        return
    assert not fits(ledger, conflict.rows)
    assert conflict.irreducible
    for row in conflict.rows:
        assert fits(ledger, [other for other in conflict.rows if other != row])
    if conflict.proof is not None:
        nobody = np.zeros(0, np.int64)
        assert conflict.proof.shows_at_most(ledger, nobody, 1, -1)
        assert {row for row, _ in conflict.proof.terms} == set(conflict.rows)


def test_what_only_whole_numbers_rule_out_is_named_too():
    # Each two of three groups have one person together: half a person in each would fit.
    rows = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]]
    ledger = ledger_of(rows, [(1, 1), (1, 1), (1, 1), (2, 2), (0, 90)])
    assert Prover(ledger).contradiction() is None
    conflict = conflict_of(ledger)
    assert conflict.rows == (0, 1, 2)
    assert conflict.proof is None
    assert conflict.irreducible


def test_a_row_that_leaves_nothing_stands_alone():
    conflict = conflict_of(ledger_of([[1, 0], [1, 1]], [(2, 2), (9, 8)]))
    assert conflict.rows == (1,)


def test_of_many_rows_the_two_that_disagree_are_named():
    rows = [*np.eye(30, dtype=int).tolist(), [1] * 30]
    ends = [(1, 1)] * 30 + [(30, 30)]
    ledger = ledger_of([*rows, [1, 1] + [0] * 28], [*ends, (3, 3)])
    conflict = conflict_of(ledger)
    assert conflict.rows == (0, 1, 31)
    assert {abs(times) for _, times in conflict.proof.terms} == {Fraction(1)}


def test_without_time_the_rows_of_a_proof_are_named_all_the_same():
    conflict = conflict_of(ledger_of([[1, 0], [1, 0]], [(1, 1), (2, 2)]), time_limit=0.0)
    assert conflict.rows == (0, 1)
    assert not conflict.irreducible
