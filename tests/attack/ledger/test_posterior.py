"""Probabilities of whole solutions against all of them, and chains against enumeration."""

from math import exp, lgamma, log
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger import posterior as module
from countleak.attack.ledger.bounds import taken_apart
from countleak.attack.ledger.component import Clock, Component
from countleak.attack.ledger.posterior import draws_of, every_point, kernel_basis, r_hat
from tests.attack.ledger.test_ledger import ledgers, solutions


@settings(max_examples=25, deadline=None)
@given(ledgers(), st.integers(0, 9))
def test_all_solutions_are_enumerated_and_weighed(ledger, seed):
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.2, 5, ledger.cells)
    every = np.array(solutions(ledger))
    for part, cells in taken_apart(ledger, soon())[1]:
        points = every_point(part)
        assert sorted(map(tuple, points.tolist())) == sorted(
            {tuple(x) for x in every[:, cells].tolist()}
        )
        draws = draws_of(part, rate[cells], rng)
        weight = [
            exp(sum(k * log(r) - lgamma(k + 1) for k, r in zip(x, rate[cells], strict=True)))
            for x in points.tolist()
        ]
        assert np.allclose(draws.weight, np.array(weight) / sum(weight))
        assert draws.enumerated


def soon():
    return Clock(monotonic() + 10)


def square(side, people, hidden_rows=0):
    """A component: a table of people by two dimensions, its margins exact."""
    rng = np.random.default_rng(side)
    truth = rng.multinomial(people, np.full(side * side, 1 / side**2))
    cells = np.arange(side * side).reshape(side, side)
    rows = [*cells, *cells.T]
    A = np.array([np.isin(np.arange(side * side), row).astype(float) for row in rows])
    sums = A @ truth
    low, high = sums.copy(), sums.copy()
    low[:hidden_rows] -= 1
    high[:hidden_rows] += 1
    limits = Limits(np.zeros(truth.size), np.full(truth.size, float(people)))
    return Component(Ledger(csr_array(A), np.maximum(low, 0), high), limits, soon())


@pytest.mark.parametrize("hidden", [0, 2])
def test_chains_draw_what_enumeration_weighs(monkeypatch, hidden):
    part, rng = square(3, 14, hidden), np.random.default_rng(4)
    rate = rng.uniform(0.5, 3, 9)
    exact = draws_of(part, rate, rng)
    assert exact.enumerated
    monkeypatch.setattr(module, "MOST_POINTS", 1)
    monkeypatch.setattr(module, "every_point", lambda part: None)
    chains = draws_of(part, rate, rng)
    assert not chains.enumerated
    for cells in (np.array([0]), np.array([4]), np.array([0, 4, 8])):
        first, second = exact.counts(cells), chains.counts(cells)
        size = max(first.size, second.size)
        gap = np.resize(np.append(first, np.zeros(size)), size) - np.resize(
            np.append(second, np.zeros(size)), size
        )
        # 8,000 draws that are not independent.
        assert np.abs(gap).max() < 0.04
        assert chains.agree(cells)
    assert all(part.holds(x) for x in chains.points[::100].astype(float))


def test_the_basis_generates_the_kernel():
    A = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 1, 0]])
    basis = kernel_basis(A)
    assert basis.shape == (3, 5)
    assert not (A @ basis.T).any()
    # A basis of all whole solutions and not only of some: its minors have no common divisor.
    minors = [round(np.linalg.det(basis[:, [a, b, c]])) for a, b, c in
              [(0, 1, 2), (0, 2, 3), (2, 3, 4), (0, 1, 4), (1, 2, 4)]]  # fmt: skip
    assert np.gcd.reduce(minors) == 1


def test_chains_that_cannot_meet_are_withdrawn(monkeypatch):
    # 2x = 2y in disguise: two solutions with nothing between that these moves reach.
    monkeypatch.setattr(module, "every_point", lambda part: None)
    monkeypatch.setattr(module, "kernel_basis", lambda A: np.array([[7, -7]]))
    ledger = Ledger(csr_array([[1.0, 1.0]]), np.array([6.0]), np.array([6.0]))
    part = Component(ledger, Limits(np.zeros(2), np.full(2, 6.0)), soon())
    said = draws_of(part, np.ones(2), np.random.default_rng(1))
    assert "do not agree" in said


def test_no_upper_limit_leaves_no_probabilities():
    ledger = Ledger(csr_array([[1.0, 1.0]]), np.array([3.0]), np.array([np.inf]))
    part = Component(ledger, Limits(np.zeros(2), np.full(2, np.inf)), soon())
    assert draws_of(part, np.ones(2), np.random.default_rng(1)) == ("a count has no upper limit")


def test_halves_that_differ_do_not_agree():
    rng = np.random.default_rng(1)
    same = rng.normal(size=(8, 500))
    assert r_hat(same) < 1.02
    assert r_hat(same + np.arange(8)[:, None]) > 1.5
    assert r_hat(np.ones((8, 10))) == 1.0
