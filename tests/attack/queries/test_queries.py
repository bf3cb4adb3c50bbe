import numpy as np
import pytest

from countleak.attack.guess import Basis, bits_from
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.signs import Signs, random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.audit.people import People
from countleak.errors import InputError, ShapeError

IDS = np.arange(1000, 1021)


def test_products_are_those_of_the_matrix():
    queries = random_signs(IDS, 30, np.random.default_rng(0))
    x = np.random.default_rng(1).random(21)
    assert np.allclose(queries.dot(x), queries.matrix.astype(float) @ x)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.bool_, np.float32])
def test_counts_do_not_overflow_whatever_the_type_of_the_secret(kind):
    ids = np.arange(600)
    everyone = Queries(ids, np.ones((2, 600), np.int8), Subsets())
    counts = everyone.dot(np.ones(600, kind))
    assert counts.dtype == np.float64
    assert counts.tolist() == [600.0, 600.0]
    signs = Queries(ids, np.where(ids < 590, -1, 1).astype(np.int8)[None, :], Subsets())
    assert signs.dot(np.ones(600, kind)).tolist() == [-580.0]


def test_bits_of_people_and_of_guesses_add_up_beyond_a_byte():
    ids = np.arange(600)
    everyone = Queries(ids, np.ones((1, 600), np.int8), Subsets())
    truth = People(ids, {"sick": np.ones(600, np.int64)}).truth("sick = 1")
    guess = bits_from(ids, np.ones(600), Basis(decoder="none"))
    for bits in (truth, guess.values):
        assert (everyone.matrix @ bits).tolist() == [600]


def test_take_keeps_rows_parameters_and_sql_together():
    queries = digit_queries(IDS, primes=2, exponents=(0.5, 0.7))
    some = queries.take(np.array([3, 1]))
    assert np.array_equal(some.matrix, queries.matrix[[3, 1]])
    assert some.predicate(0, ("uid",)) == queries.predicate(3, ("uid",))
    assert some.predicate(1, ("uid",)) == queries.predicate(1, ("uid",))
    assert some.parameters["constant"].tolist() == queries.parameters["constant"][[3, 1]].tolist()


def test_queries_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="no queries"):
        Queries(IDS, np.empty((0, 21), np.int8), Subsets())
    with pytest.raises(ShapeError, match="21 ids but queries over 5 people"):
        Queries(IDS, np.ones((2, 5), np.int8), Subsets())
    with pytest.raises(ShapeError, match="2 queries but 1 values of a"):
        Queries(IDS, np.ones((2, 21), np.int8), Subsets(), {"a": np.zeros(1)})


def test_the_digest_tells_people_rows_and_words_apart():
    queries = random_subsets(IDS, 3, np.random.default_rng(0))
    assert Queries(IDS.copy(), queries.matrix.copy(), Subsets()).digest == queries.digest
    # The SQL is built from family and parameters, so other ones are other questions.
    settings = {"server": np.arange(3)}
    assert Queries(IDS, queries.matrix, Subsets(), settings).digest != queries.digest
    assert Queries(IDS, queries.matrix, Signs()).digest != queries.digest
    assert queries.take(np.array([0, 1])).digest != queries.digest
    assert queries.without(IDS == 1000).digest != queries.digest
    assert Queries(IDS + 1, queries.matrix, Subsets()).digest != queries.digest
    assert Queries(IDS.astype(str), queries.matrix, Subsets()).digest != queries.digest
