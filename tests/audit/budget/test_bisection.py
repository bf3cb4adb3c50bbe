import pytest

from countleak.audit.budget.bisection import turning_point


def test_the_turning_point_is_met_from_the_side_that_does_not_break():
    found = turning_point(lambda value: value < 2**0.5, 0.0, 2.0)
    assert found == pytest.approx(2**0.5, abs=1e-14)
    assert found >= 2**0.5
    assert turning_point(lambda value: value < 0.7, 0.0, 1.0, halvings=2) == 0.75
