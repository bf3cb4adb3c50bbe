import numpy as np
import pytest

from benchmarks.solvers import OURS, Row, growth, instance, measure
from countleak.errors import InputError


@pytest.mark.parametrize("rows", ["random", "digits"])
def test_instances_are_as_large_as_asked_fresh_and_repeatable(rows):
    problem = instance(rows, 30, 120, (1, 2))
    assert problem.A.shape == (120, 30)
    assert np.array_equal(problem.b, instance(rows, 30, 120, (1, 2)).b)
    assert not np.array_equal(problem.b, instance(rows, 30, 120, (1, 3)).b)


def test_other_rows_are_refused():
    with pytest.raises(InputError, match="choose random or digits"):
        instance("dice", 3, 3, (0,))


def test_slow_peers_are_left_out_and_named():
    found = measure([(10, 60)], repeats=1, limit=0.0)
    assert {row.solver for row in found.rows} == {OURS}
    assert not found.ratios
    assert any("left out at 10 x 60" in remark for remark in found.remarks)


def test_growth_fits_the_exponent():
    rows = [Row(n, 10 * n, "a", 1, 3e-6 * n**2.5, 0.0, 1) for n in (50, 100, 200)]
    assert np.isclose(growth(rows, "a"), 2.5)
    assert growth(rows[:1], "a") is None
