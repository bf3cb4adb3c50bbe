import duckdb
import numpy as np
import pytest

from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.modular import modular_queries
from countleak.errors import InputError

IDS = np.array([0, 1, 2, 1000, 2**31 - 1, 2**31, 2**40 + 7, 2**62])


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_the_sql_selects_the_row(postgres, dialect):
    queries = modular_queries(IDS, 20, np.random.default_rng(0))
    connection = duckdb.connect() if dialect == "duckdb" else postgres.connection
    connection.execute("CREATE TEMPORARY TABLE hashes (id bigint)")
    for person in IDS.tolist():
        connection.execute(f"INSERT INTO hashes VALUES ({person})")
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("id",)).sql(dialect)
        found = connection.execute(f"SELECT id FROM hashes WHERE {where} ORDER BY id").fetchall()
        assert [i for (i,) in found] == IDS[row == 1].tolist()
    connection.execute("DROP TABLE hashes")


def test_they_are_as_good_as_random():
    matrix = modular_queries(np.arange(500), 2000, np.random.default_rng(1)).matrix
    # Four standard errors of shares over 2000 queries, and the largest of 125,000 correlations.
    assert np.abs(matrix.mean(axis=0) - 0.5).max() < 4 * 0.5 / np.sqrt(2000) + 0.005
    together = np.corrcoef(matrix.T)[np.triu_indices(500, 1)]
    assert np.abs(together).max() < 6.5 / np.sqrt(2000)
    assert abs(together.std() * np.sqrt(2000) - 1) < 0.1


def test_a_file_holds_the_parameters(tmp_path):
    queries = modular_queries(IDS, 5, np.random.default_rng(0))
    write_queries(tmp_path / "q.jsonl", queries)
    assert read_queries(tmp_path / "q.jsonl").digest == queries.digest


@pytest.mark.parametrize("ids", [id_array(["a", "b"]), np.array([-1, 3])])
def test_only_whole_numbers_have_a_hash(ids):
    with pytest.raises(InputError, match="take whole-number ids of 0 or more"):
        modular_queries(ids, 5, np.random.default_rng(0))
