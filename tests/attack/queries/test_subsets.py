import duckdb
import numpy as np
import pytest

from countleak.attack.queries.subsets import random_subsets
from countleak.errors import InputError


def test_half_of_the_people_on_average():
    matrix = random_subsets(np.arange(200), 500, np.random.default_rng(0)).matrix
    # Six standard errors of the mean of 100,000 fair bits.
    assert abs(matrix.mean() - 0.5) < 6 * 0.5 / np.sqrt(100_000)


def test_the_sql_selects_the_row(bank, postgres):
    ids = bank.ids[:40]
    queries = random_subsets(ids, 50, np.random.default_rng(0), "client_id")
    table = f"(VALUES {', '.join(f'({i})' for i in ids)}) AS loans (client_id)"
    for row, where in zip(queries.matrix, queries.where, strict=True):
        statement = f"SELECT client_id FROM {table} WHERE {where} ORDER BY 1"
        expected = [(i,) for i in ids[row == 1].tolist()]
        assert duckdb.sql(statement).fetchall() == expected
        assert postgres.connection.execute(statement.encode()).fetchall() == expected


def test_nobody_is_a_predicate_too():
    queries = random_subsets(np.array([1, 2]), 64, np.random.default_rng(0), "uid")
    empty = np.flatnonzero(queries.matrix.sum(axis=1) == 0)
    assert empty.size
    assert queries.where[empty[0]] == "uid <> uid"


def test_no_queries_are_refused():
    with pytest.raises(InputError, match="at least one"):
        random_subsets(np.arange(5), 0, np.random.default_rng(0))
