"""Solution variability against all pairs of data sets that fit."""

from fractions import Fraction
from itertools import product
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger import variability as module
from countleak.attack.ledger.bounds import Contradiction, taken_apart
from countleak.attack.ledger.component import Clock
from countleak.attack.ledger.variability import reconstructed, variability
from tests.attack.ledger.test_ledger import ledgers, solutions


@settings(max_examples=25, deadline=None)
@given(ledgers())
def test_it_is_that_of_the_two_furthest_apart_and_the_bound_holds(ledger):
    every = solutions(ledger)
    furthest = max(np.maximum(x - y, 0).sum() for x, y in product(every, every))
    found = variability(ledger)
    assert found.at_least == furthest == found.searched <= found.at_most
    assert not (found.determined and len(every) > 1)
    rushed = variability(ledger, time_limit=0.0)
    assert rushed.at_least <= furthest <= rushed.searched == rushed.at_most == found.at_most
    for x in (found.first.astype(float), found.second.astype(float), reconstructed(ledger)):
        assert ledger.holds(x)


@settings(max_examples=20, deadline=None)
@given(ledgers())
def test_any_multipliers_give_a_bound_and_it_is_that_of_fractions(ledger):
    _, parts = taken_apart(ledger, Clock(monotonic() + 10))
    for part, _ in parts:
        model = module._program(part, 0, {"threads": 1})
        model.run()
        assert module._certified(model) == in_fractions(model)


def in_fractions(model):
    """The bound of the multipliers, term by term."""
    lp, total = model.getLp(), Fraction(0)
    starts, index, value = (
        list(getattr(lp.a_matrix_, f"{a}_")) for a in ("start", "index", "value")
    )
    u = [
        Fraction(round(-v * module.FINENESS), module.FINENESS) for v in model.getSolution().row_dual
    ]
    for i, (low, high) in enumerate(zip(lp.row_lower_, lp.row_upper_, strict=True)):
        end = high if u[i] > 0 else low
        u[i] = Fraction(0) if np.isinf(end) else u[i]
        total += u[i] * int(end) if u[i] else 0
    for j in range(lp.num_col_):
        entries = range(starts[j], starts[j + 1])
        left = int(-lp.col_cost_[j]) - sum(u[index[k]] * int(value[k]) for k in entries)
        total += left * int(lp.col_upper_[j] if left > 0 else lp.col_lower_[j])
    return total // 1


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


@pytest.mark.parametrize("people", [0.0, 3.0])
def test_a_cell_that_nothing_bounds_above_is_free(people):
    ledger = Ledger(csr_array([[1.0, 0.0]]), np.array([people]), np.array([people]))
    found = variability(ledger)
    assert found.at_most == np.inf
    assert found.second.tolist() == [people, 0]


def test_nothing_fits_a_contradiction():
    ledger = Ledger(csr_array([[1.0], [1.0]]), np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    for function in (variability, reconstructed):
        with pytest.raises(Contradiction):
            function(ledger)
