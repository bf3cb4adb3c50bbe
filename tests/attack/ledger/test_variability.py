"""Solution variability against all pairs of data sets that fit."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.bounds import Contradiction
from countleak.attack.ledger.variability import reconstructed, variability
from tests.attack.ledger.test_ledger import ledgers, solutions


@settings(max_examples=40, deadline=None)
@given(ledgers())
def test_it_is_that_of_the_two_furthest_apart(ledger):
    every = solutions(ledger)
    furthest = max(np.maximum(x - y, 0).sum() for x, y in product(every, every))
    found = variability(ledger)
    assert found.exact
    assert found.shown == furthest
    assert ledger.holds(found.first)
    assert ledger.holds(found.second)
    assert ledger.holds(reconstructed(ledger))


def test_cells_without_an_end_can_be_any_distance_apart():
    ledger = Ledger(csr_array([[1.0, 0.0]]), np.array([3.0]), np.array([3.0]))
    found = variability(ledger)
    assert found.most == np.inf
    assert not found.exact


def test_nothing_fits_a_contradiction():
    ledger = Ledger(csr_array([[1.0], [1.0]]), np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    for function in (variability, reconstructed):
        with pytest.raises(Contradiction):
            function(ledger)
