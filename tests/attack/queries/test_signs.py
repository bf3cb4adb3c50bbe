import numpy as np
import pytest

from countleak.attack.queries.signs import random_signs, two_subsets
from countleak.errors import InputError


def test_weights_are_signs_and_balanced():
    matrix = random_signs(np.arange(200), 500, np.random.default_rng(0)).matrix
    assert set(np.unique(matrix)) == {-1, 1}
    assert abs(matrix.mean()) < 6 / np.sqrt(100_000)


def test_two_subsets_subtract_to_the_query():
    queries = random_signs(np.arange(30), 40, np.random.default_rng(0))
    plus, minus = two_subsets(queries)
    assert np.array_equal(plus.matrix - minus.matrix, queries.matrix)


def test_no_queries_are_refused():
    with pytest.raises(InputError, match="at least one"):
        random_signs(np.arange(5), 0, np.random.default_rng(0))
