"""Epsilon against the library, against the definition's integral, and against sampled losses."""

import sys
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from countleak.audit.budget.privacy import epsilon_of, sigma_for_epsilon
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.errors import InputError, MissingExtra, NoPrediction


@pytest.mark.parametrize("queries", [1, 30, 2000])
@pytest.mark.parametrize("sigma", [0.5, 4.0, 300.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_normal_counts_cost_what_the_library_says(sigma, queries, delta):
    import dp_accounting

    found = epsilon_of(Gaussian(sigma), queries, delta)
    spread = sigma / sqrt(queries)
    expected = dp_accounting.get_epsilon_gaussian(spread, delta)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), queries)
    accountant = dp_accounting.pld.PLDAccountant(
        value_discretization_interval=max(1e-4, expected / 1e4)
    )
    assert accountant.compose(event).get_epsilon(delta) == pytest.approx(found, rel=2e-3, abs=1e-4)


@pytest.mark.parametrize(("sigma", "queries"), [(4.0, 50), (40.0, 100)])
def test_epsilon_meets_the_definition(sigma, queries):
    # delta is how much the answers with a person outweigh e^epsilon times those without.
    s, delta = sigma / sqrt(queries), 1e-4
    epsilon = epsilon_of(Gaussian(sigma), queries, delta)
    excess = quad(
        lambda t: max(0.0, norm.pdf(t, 1, s) - exp(epsilon) * norm.pdf(t, 0, s)),
        0.5,
        1 + 12 * s,
        limit=500,
        points=[epsilon * s * s + 0.5],
    )[0]
    assert excess == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("mechanism", [Gaussian(4.0), SimulatedDiffix(4.0), Laplace(4.0)], ids=str)
@pytest.mark.parametrize("queries", [1, 726])
def test_the_noise_for_an_epsilon_costs_that_epsilon(mechanism, queries):
    sigma = sigma_for_epsilon(mechanism, queries, 1.0, 1e-6)
    assert epsilon_of(type(mechanism)(sigma), queries, 1e-6) == pytest.approx(1.0, rel=2e-3)


def test_one_laplace_count_costs_what_its_formula_says():
    scale, delta = 4 / sqrt(2), 1e-3
    exact = 1 / scale + 2 * log(1 - delta)
    assert epsilon_of(Laplace(4.0), 1, delta) == pytest.approx(exact, rel=1e-4)


def test_many_laplace_counts_cost_what_their_sampled_losses_say():
    queries, scale, delta = 20, 4 / sqrt(2), 0.01
    rng = np.random.default_rng(5)
    noise = rng.laplace(0, scale, (400_000, queries))
    losses = ((np.abs(noise + 1) - np.abs(noise)) / scale).sum(axis=1)
    epsilon = epsilon_of(Laplace(4.0), queries, delta)
    sampled = np.maximum(0.0, 1 - np.exp(epsilon - losses)).mean()
    assert sampled == pytest.approx(delta, rel=0.03)
    assert epsilon < queries / scale


def test_noise_so_large_that_delta_covers_it_costs_nothing():
    assert epsilon_of(Gaussian(1e6), 1, 1e-3) == 0.0


def test_bounded_noise_is_never_private():
    for mechanism in (Uniform(50), RoundedToBase(100)):
        assert epsilon_of(mechanism, 1, 1e-6) is None
        assert sigma_for_epsilon(mechanism, 1, 1.0, 1e-6) is None


def test_bad_promises_are_refused():
    with pytest.raises(InputError, match="delta is 0; it must lie between 0 and 1"):
        epsilon_of(Gaussian(4.0), 1, 0.0)
    with pytest.raises(InputError, match="epsilon is -1"):
        sigma_for_epsilon(Gaussian(4.0), 1, -1.0, 1e-6)


def test_without_the_library_laplace_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"\'\.\[privacy\]\'"):
        epsilon_of(Laplace(4.0), 10, 1e-6)
    assert epsilon_of(Gaussian(4.0), 10, 1e-6) > 0


@pytest.mark.parametrize(
    ("mechanism", "queries", "delta"),
    [(Gaussian(1e-3), 10**12, 1e-300), (Gaussian(1e6), 1, 1e-320), (Laplace(1e6), 2, 0.999)],
    ids=str,
)
def test_the_ends_of_every_range_have_an_epsilon(mechanism, queries, delta):
    assert epsilon_of(mechanism, queries, delta) >= 0
    assert sigma_for_epsilon(mechanism, queries, 1e-6, delta) > 0


def test_what_cannot_be_read_is_one_line():
    for mechanism, queries in ((Gaussian(1e-300), 10), (Gaussian(4.0), 10**5000)):
        with pytest.raises(InputError, match="the closed form holds"):
            epsilon_of(mechanism, queries, 1e-6)
    for mechanism, queries in ((Laplace(1e-3), 1000), (Laplace(4.0), 10**9)):
        with pytest.raises(NoPrediction, match="beyond what is read as differential privacy"):
            epsilon_of(mechanism, queries, 1e-6)
    with pytest.raises(NoPrediction, match="choose one up to 100"):
        sigma_for_epsilon(Laplace(4.0), 10, 1e6, 1e-6)
    for epsilon in (1e-300, 1e300, float("nan")):
        with pytest.raises(InputError, match="epsilon is"):
            sigma_for_epsilon(Gaussian(4.0), 10, epsilon, 1e-6)
