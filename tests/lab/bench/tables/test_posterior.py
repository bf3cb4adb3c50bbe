"""A small world of each kind, and the measure of calibration."""

import numpy as np

from countleak.lab.bench.tables.posterior import (
    HOUSEHOLD,
    calibration_error,
    clustered,
    measure_posterior,
)


def test_likely_counts_are_about_as_likely_as_said():
    matching, other = measure_posterior(worlds=1, people=150, regions=2)
    assert matching.groups > 15
    assert matching.accuracy >= matching.baseline - 0.1
    # One small world: a few dozen groups that depend on each other.
    assert abs(matching.accuracy - matching.confidence) < 0.25
    assert other.kind == "clustered"


def test_households_share_their_age_and_region():
    everyone = clustered(np.random.default_rng(1), 31, 4)
    assert everyone.age.size == everyone.sex.size == 31
    first = everyone.age[:HOUSEHOLD]
    assert (first == first[0]).all()


def test_a_calibration_error_is_the_gap_in_each_bin():
    stated = np.array([0.95, 0.95, 0.55, 0.55])
    assert np.isclose(calibration_error(stated, np.array([True, True, True, False])), 0.05)
    assert np.isclose(calibration_error(stated, np.array([False, False, True, False])), 0.5)
