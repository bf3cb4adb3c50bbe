import json

import numpy as np
import pytest
from countleak.GONE import count_statement

from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.errors import InputError, ShapeError

IDS = np.arange(1000, 1021)


def test_products_are_those_of_the_matrix():
    queries = random_signs(IDS, 30, np.random.default_rng(0))
    x, y = np.random.default_rng(1).random(21), np.random.default_rng(2).random(30)
    assert np.allclose(queries.dot(x), queries.matrix.astype(float) @ x)
    assert np.allclose(queries.tdot(y), queries.matrix.astype(float).T @ y)


@pytest.mark.parametrize(
    "queries",
    [
        random_subsets(IDS, 9, np.random.default_rng(0), "uid"),
        random_signs(IDS, 9, np.random.default_rng(0)),
        digit_queries(IDS, primes=2, exponents=(0.5, 0.7)),
    ],
    ids=lambda q: q.family,
)
def test_a_file_holds_all_of_the_queries(tmp_path, queries):
    path = tmp_path / "queries.jsonl"
    write_queries(path, queries)
    again = read_queries(path)
    assert again.digest == queries.digest
    assert np.array_equal(again.matrix, queries.matrix)
    assert (again.family, again.where) == (queries.family, queries.where)
    for name, values in queries.parameters.items():
        assert np.array_equal(again.parameters[name], values)


@pytest.mark.parametrize("members", ["zz", "", "ffff", "ffffffff", "ffffff"])
def test_damaged_members_are_reported_by_line(tmp_path, members):
    path = tmp_path / "queries.jsonl"
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({"members": members})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="line 3: members must be 21 bits"):
        read_queries(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ids": [1, 1]}, "the header is damaged"),
        ({"ids": [1, 2.5]}, "the header is damaged"),
        ({"ids": [10**30]}, "the header is damaged"),
        ({"signed": None}, "the header is damaged"),
        ({"queries": 9}, "the header promises 9 queries, the file holds 3"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path, change, complaint):
    path = tmp_path / "queries.jsonl"
    write_queries(path, random_subsets(IDS, 3, np.random.default_rng(0)))
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | change), *lines]) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_queries(path)


def test_take_keeps_rows_parameters_and_sql_together():
    queries = digit_queries(IDS, primes=2, exponents=(0.5, 0.7))
    some = queries.take(np.array([3, 1]))
    assert np.array_equal(some.matrix, queries.matrix[[3, 1]])
    assert some.where == (queries.where[3], queries.where[1])
    assert some.parameters["constant"].tolist() == queries.parameters["constant"][[3, 1]].tolist()


def test_queries_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="no queries"):
        Queries(IDS, np.empty((0, 21), np.int8), Subsets())
    with pytest.raises(ShapeError, match="21 ids but queries over 5 people"):
        Queries(IDS, np.ones((2, 5), np.int8), Subsets())
    with pytest.raises(ShapeError, match="2 queries but 1 predicates"):
        Queries(IDS, np.ones((2, 21), np.int8), Subsets(), {}, ("a",))


def test_the_statement_is_the_recorded_one_to_the_letter(recorded):
    log = recorded["10000-12000"].log
    where = log.queries(np.array([10023, 10040])).where
    for entry, predicate in zip(log.entries, where, strict=True):
        statement = count_statement(
            predicate,
            table="loans",
            column="client_id",
            condition="status = 'A'",
            between=(10000, 12000),
        )
        assert statement == entry.sql
