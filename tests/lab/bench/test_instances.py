import numpy as np
import pytest

from countleak import InputError
from countleak.lab.bench.instances import instance


@pytest.mark.parametrize("rows", ["random", "digits"])
def test_instances_are_as_large_as_asked_fresh_and_repeatable(rows):
    problem = instance(rows, 30, 120, (1, 2))
    assert problem.A.shape == (120, 30)
    assert np.array_equal(problem.b, instance(rows, 30, 120, (1, 2)).b)
    assert not np.array_equal(problem.b, instance(rows, 30, 120, (1, 3)).b)


def test_other_rows_are_refused():
    with pytest.raises(InputError, match="choose random or digits"):
        instance("dice", 3, 3, (0,))
