"""How far apart solutions are, against all of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.furthest import variability
from countleak.attack.ledger.pieces import joined, taken_apart
from tests.attack.ledger.test_ledger import ledgers, solutions


@settings(max_examples=25, deadline=None)
@given(ledgers())
def test_two_solutions_are_as_far_apart_as_any_and_the_bound_holds(ledger):
    every = solutions(ledger)
    furthest = max(np.maximum(x - y, 0).sum() for x, y in product(every, every))
    found = variability(ledger)
    assert ledger.holds(found.first.astype(float))
    assert ledger.holds(found.second.astype(float))
    assert found.at_least == furthest == found.searched <= found.at_most
    assert not (found.determined and len(every) > 1)


def test_what_is_published_whole_is_determined():
    ledger = Ledger(csr_array(np.eye(3)), np.array([1.0, 0, 4]), np.array([1.0, 0, 4]))
    found = variability(ledger)
    assert found.determined
    assert found.first.tolist() == [1, 0, 4]


def test_without_a_total_there_is_no_limit():
    ledger = Ledger(csr_array([[1.0, 1.0]]), np.array([3.0]), np.array([np.inf]))
    found = variability(ledger)
    assert found.at_most == found.searched == np.inf
    assert not found.determined


@settings(max_examples=25, deadline=None)
@given(ledgers())
def test_pieces_have_the_solutions_of_the_whole(ledger):
    apart = taken_apart(ledger)
    every = np.array(solutions(ledger))
    for piece in apart.pieces:
        parts = {tuple(x) for x in every[:, piece.cells].tolist()}
        highest = int(every.max())
        boxes = product(range(highest + 1), repeat=piece.cells.size)
        assert parts == {x for x in boxes if piece.holds(np.array(x, float))}
    if apart.pieces:
        row = apart.pieces[0].cells[:1]
        value = float(every[0, row[0]])
        cells, together = joined(apart.pieces, row, value)
        assert together.holds(every[0, cells].astype(float))


@pytest.mark.parametrize("people", [0, 3])
def test_a_cell_that_nothing_bounds_above_is_free(people):
    ledger = Ledger(csr_array([[1.0, 0.0]]), np.array([float(people)]), np.array([float(people)]))
    found = variability(ledger)
    assert found.at_most == np.inf
    assert found.second.tolist() == [people, 0]
