from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.ledger.bits import common, eliminate, refine
from countleak.attack.ledger.row_space import RowSpace, _as_fraction

PRIME = 2**31 - 1


def packed(A):
    """Rows of 0 and 1 as words."""
    m, n = A.shape
    wide = np.zeros((m, -(-n // 64) * 64), np.uint8)
    wide[:, :n] = A
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


def exact_rank(rows):
    """The rank of some rows, by Gauss in fractions."""
    rows = [[Fraction(int(x)) for x in row] for row in rows]
    rank = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            times = rows[i][column] / rows[rank][column]
            rows[i] = [a - times * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def first_row(A, cells):
    """The first row with which a group is in the row space; None where it never is."""
    wanted = np.zeros(A.shape[1], np.int64)
    wanted[list(cells)] = 1
    for row in range(A.shape[0]):
        if exact_rank(A[: row + 1]) == exact_rank([*A[: row + 1], wanted]):
            return row
    return None


def distinct(A):
    """The rows without empty ones and without those that came before."""
    kept = list(dict.fromkeys(tuple(row) for row in A.tolist() if any(row)))
    return np.array(kept, np.int64).reshape(len(kept), A.shape[1])


@st.composite
def rows_and_people(draw):
    n = draw(st.integers(1, 7))
    row = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    A = distinct(np.array(draw(st.lists(row, min_size=1, max_size=9)), np.int64))
    people = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    return A, np.array(people, np.int64)


@given(rows_and_people(), st.integers(1, 2))
@settings(max_examples=80, deadline=None)
def test_what_is_pinned_and_from_which_row_on_is_what_brute_force_says(case, most):
    A, people = case
    if not A.size:
        return
    found = {pin.cells: pin for pin in RowSpace(packed(A), A.shape[1]).pinned(people, most)}
    singles = {(cell,): first_row(A, [cell]) for cell in range(A.shape[1]) if people[cell] <= most}
    expected = {cells: row for cells, row in singles.items() if row is not None}
    for pair in combinations(range(A.shape[1]), 2):
        row = first_row(A, pair) if people[list(pair)].sum() <= most else None
        last = [expected.get((cell,)) for cell in pair]
        if row is not None and (None in last or row < max(last)):
            expected[pair] = row
    assert {cells: pin.row for cells, pin in found.items()} == expected
    for cells, pin in found.items():
        total = sum((times * A[row].astype(object) for row, times in pin.terms), Fraction(0))
        assert np.flatnonzero(total).tolist() == list(cells)
        assert all(total[cell] == 1 for cell in cells)
        assert max(row for row, _ in pin.terms) == pin.row


@given(rows_and_people())
@settings(max_examples=30, deadline=None)
def test_larger_groups_are_what_rows_count_or_count_beyond_others(case):
    A, people = case
    if not A.size:
        return
    found = {pin.cells for pin in RowSpace(packed(A), A.shape[1]).pinned(people, 6)}
    for row in A:
        cells = tuple(np.flatnonzero(row).tolist())
        if len(cells) > 2 and people[list(cells)].sum() <= 6:
            assert cells in found
        for inner in A:
            rest = tuple(np.flatnonzero(row - inner).tolist())
            if len(rest) > 2 and (row >= inner).all() and people[list(rest)].sum() <= 6:
                assert rest in found


def test_a_tracker_is_two_rows_and_its_last_row_is_where_it_ends():
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (40, 300))
    A[31] = A[12]
    A[31, 5] = 1 - A[12, 5]
    (pin,) = RowSpace(packed(A), 300).pinned(np.ones(300, np.int64), 2)
    assert (pin.cells, pin.row) == ((5,), 31)
    sign = 1 if A[31, 5] else -1
    assert dict(pin.terms) == {31: sign, 12: -sign}


def test_rows_that_are_published_at_once_have_no_order():
    A = np.array([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]])
    ones = np.ones(4, np.int64)
    one_by_one = RowSpace(packed(A), 4).pinned(ones, 2)
    assert [pin.cells for pin in one_by_one] == [(0, 2), (1, 3), (0,), (2,)]
    at_once = RowSpace(packed(A), 4, np.array([1, 2, 4, 4])).pinned(ones, 2)
    assert [pin.cells for pin in at_once] == [(0, 2), (1, 3), (0,), (2,)]
    assert {pin.cells: len(pin.terms) for pin in at_once}[2,] == 1


def test_a_proof_of_long_fractions_is_exact():
    rng = np.random.default_rng(1)
    A = rng.integers(0, 2, (40, 40))
    space = RowSpace(packed(A), 40)
    assert space.rank == exact_rank(A) == 40
    pins = space.pinned(np.ones(40, np.int64), 1)
    assert len(pins) == 40
    for pin in pins:
        total = sum(times * A[row].astype(object) for row, times in pin.terms)
        assert total.tolist() == [int(cell in pin.cells) for cell in range(40)]
    assert not space.adds_up(pins[0].terms, (1,))


@pytest.mark.parametrize("value", [Fraction(1), Fraction(-3, 7), Fraction(0), Fraction(1000, 999)])
def test_residues_are_read_as_fractions(value):
    residue = value.numerator * pow(value.denominator, -1, PRIME) % PRIME
    assert _as_fraction(residue, PRIME) == value


@given(rows_and_people())
@settings(max_examples=30, deadline=None)
def test_elimination_shows_which_rows_depend_on_earlier_ones(case):
    A, _ = case
    if not A.size:
        return
    gram = common(packed(A))
    assert (gram == A @ A.T).all()
    matrix = (gram % PRIME).astype(np.uint64)
    assert eliminate(matrix, np.uint64(PRIME))
    free = [exact_rank(A[: i + 1]) > exact_rank(A[:i]) for i in range(len(A))]
    assert (np.diag(matrix) != 0).tolist() == free


def test_labels_tell_apart_who_differs():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 5, 3000).astype(np.int32)
    words = rng.integers(0, 7, 3000).astype(np.uint64)
    new, first = refine(labels, words)
    _, numbers = np.unique(labels * 7 + words.astype(np.int32), return_inverse=True)
    assert len(set(zip(new.tolist(), numbers.tolist(), strict=True))) == first.size == 35
    assert (new[first] == np.arange(first.size)).all()
