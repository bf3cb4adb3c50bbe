"""Intervals clustered by world, against simulated worlds and the textbook."""

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from benchmarks.clusters import Interval, mean_interval, rate_interval


def test_the_interval_of_a_mean_is_students():
    values = np.random.default_rng(0).normal(1.0, 2.0, 12)
    interval = mean_interval(values)
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.estimate == pytest.approx(values.mean())
    assert mean_interval(values[:1]) is None


def worlds(rng, count, rate, alike, people=100):
    """Claims per world whose chances of being right scatter: intra-class correlation ``alike``."""
    claims = rng.integers(1, people, count)
    if alike == 0:
        return rng.binomial(claims, rate), claims
    size = 1 / alike - 1
    return rng.binomial(claims, rng.beta(rate * size, (1 - rate) * size, count)), claims


@pytest.mark.parametrize(("rate", "alike"), [(0.95, 0.0), (0.95, 0.1), (0.8, 0.2), (0.99, 0.05)])
def test_the_interval_of_a_rate_holds_it_as_often_as_it_says(rate, alike):
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(1000):
        interval = rate_interval(*worlds(rng, 20, rate, alike))
        inside += interval.low <= rate <= interval.high
    # The rate of a few unlike worlds is skewed; the standard error of a coverage here is .008.
    assert inside / 1000 > 0.9


def test_the_upper_end_seldom_accuses_claims_that_are_as_right_as_they_say():
    rng = np.random.default_rng(2)
    accused = sum(
        not rate_interval(*worlds(rng, 20, 0.99, 0.02)).reaches(0.99, 1.0) for _ in range(1000)
    )
    assert accused / 1000 < 0.05


def test_claims_that_are_too_sure_are_found():
    rng = np.random.default_rng(3)
    found = sum(
        not rate_interval(*worlds(rng, 20, 0.9, 0.02)).reaches(0.95, 1.0) for _ in range(200)
    )
    assert found > 180


def test_independent_claims_have_about_the_binomial_interval():
    rng = np.random.default_rng(4)
    right, claims = worlds(rng, 400, 0.9, 0.0)
    exact = binomtest(int(right.sum()), int(claims.sum())).proportion_ci(0.95)
    interval = rate_interval(right, claims)
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high), abs=2e-3)


def test_claims_that_are_all_right_are_worth_one_per_world():
    claims = np.full(20, 50)
    exact = binomtest(20, 20).proportion_ci(0.95)
    assert rate_interval(claims, claims) == Interval(1.0, pytest.approx(exact.low), 1.0)
    assert rate_interval(0 * claims, claims).low == 0.0
    # Two claims elsewhere do not make a world of 100 claims two.
    lopsided = np.array([100, 1, 1])
    assert rate_interval(lopsided, lopsided).low == pytest.approx(0.025 ** (1 / 1.0402), rel=1e-3)


def test_worlds_without_claims_say_nothing():
    right, claims = np.array([0, 9, 10, 0]), np.array([0, 10, 12, 0])
    assert rate_interval(right, claims) == rate_interval(right[1:3], claims[1:3])
    assert rate_interval(np.zeros(3, np.int64), np.zeros(3, np.int64)) is None


def test_one_world_is_read_as_independent_claims():
    exact = binomtest(5, 10).proportion_ci(0.95)
    interval = rate_interval(np.array([5]), np.array([10]))
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high))


def test_an_interval_reaches_what_it_overlaps():
    interval = Interval(0.05, 0.02, 0.08)
    assert interval.reaches(-0.02, 0.02) and not interval.reaches(-0.02, 0.019)
    assert interval.reaches(0.08, 1.0) and not interval.reaches(0.081, 1.0)
