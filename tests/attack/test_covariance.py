"""Covariances from queries: positive, of unit diagonal; and what they leave of answers' worth."""

import numpy as np
import pytest

from countleak.attack.covariance import (
    InTurn,
    Overlap,
    SameParameter,
    SamePeople,
    Shared,
    correlation,
    effective_share,
    value_labels,
    whiten,
)
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets

KERNELS = [
    SamePeople(),
    Overlap(4),
    Overlap(64),
    SameParameter(("first",)),
    SameParameter(("first", "second")),
    InTurn(3.0),
]


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(2)
    matrix = rng.integers(-1, 2, (60, 12), dtype=np.int8)
    matrix[30:40] = matrix[:10]
    matrix[5] = 0
    first, second = np.divmod(np.arange(60), 8)
    return Queries(np.arange(12), matrix, Subsets(), {"first": first, "second": second})


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_correlations(queries, kernel):
    K = kernel.matrix(queries)
    np.testing.assert_allclose(np.diag(K), 1.0)
    np.testing.assert_allclose(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    assert kernel.words.startswith("answers")


def test_conditions_count_wherever_they_are_held(queries):
    K = SameParameter(("first", "second")).matrix(queries)
    first, second = queries.parameters["first"], queries.parameters["second"]
    i, j = 8 * 1 + 2, 8 * 2 + 5
    assert (first[i], second[i], first[j], second[j]) == (1, 2, 2, 5)
    assert K[i, j] == pytest.approx(0.5)
    assert K[8 * 1 + 2, 8 * 3 + 4] == 0


def test_answers_keep_some_noise_of_their_own(queries):
    R = correlation([Shared(SamePeople(), 0.7), Shared(InTurn(3.0), 0.3)], queries)
    np.testing.assert_allclose(np.diag(R), 1.0)
    assert np.linalg.eigvalsh(R).min() > 1e-3
    np.testing.assert_array_equal(correlation([], queries), np.eye(60))


def test_whitened_products_are_those_of_generalised_least_squares(queries):
    shared = [Shared(InTurn(3.0), 0.8)]
    b = np.random.default_rng(1).normal(size=60)
    A, whitened = whiten(queries, queries.matrix, b, shared)
    inverse = np.linalg.inv(correlation(shared, queries))
    dense = queries.matrix.astype(float)
    np.testing.assert_allclose(A.T @ A, dense.T @ inverse @ dense)
    np.testing.assert_allclose(A.T @ whitened, dense.T @ inverse @ b)


def test_four_answers_with_the_same_noise_are_worth_one():
    rows = np.random.default_rng(0).integers(0, 2, (50, 10), dtype=np.int8)
    repeated = Queries(np.arange(10), np.tile(rows, (4, 1)), Subsets())
    assert effective_share(repeated, [], 2.0, 0.0) == 1
    shared = [Shared(SamePeople(), 0.995)]
    assert effective_share(repeated, shared, 2.0, 0.0) == pytest.approx(0.25, abs=0.01)


def test_an_error_per_person_limits_what_answers_say():
    rows = np.random.default_rng(0).integers(0, 2, (400, 10), dtype=np.int8)
    queries = Queries(np.arange(10), rows, Subsets())
    variance = 4.0 * np.diag(np.linalg.inv(rows.T.astype(float) @ rows))
    expected = (variance / (variance + 0.09)).mean()
    assert effective_share(queries, [], 2.0, 0.3) == pytest.approx(expected)


def test_values_of_several_types_have_labels():
    labels = value_labels(np.array([None, 3, "a", 3, None], dtype=object))
    assert (labels[0], labels[1]) == (labels[4], labels[3])
    assert np.unique(labels).size == 3
