import duckdb
import numpy as np
import pytest

from countleak.attack.queries.files import read_queries, write_queries
from countleak.attack.queries.ranges import range_queries
from countleak.errors import InputError

COLUMNS = {
    "age": np.array([30, 41, 52, 63, 74]),
    "born": np.array(["1999-01-31", "2001-02-28", "1980-12-01", "1975-07-07", "1950-05-05"]),
    "sex": np.array(["f", "m", "f", "m", "f"]),
}
IDS = np.arange(5)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_the_sql_selects_the_row(postgres, dialect):
    queries = range_queries(IDS, COLUMNS, 30, np.random.default_rng(0))
    assert set(queries.parameters["column"]) == {"age", "born"}
    connection = duckdb.connect() if dialect == "duckdb" else postgres.connection
    connection.execute("CREATE TEMPORARY TABLE people_in_ranges (id int, age int, born date)")
    for person, age, born in zip(IDS, COLUMNS["age"], COLUMNS["born"], strict=True):
        connection.execute(f"INSERT INTO people_in_ranges VALUES ({person}, {age}, '{born}')")
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("id",)).sql(dialect)
        text = f"SELECT id FROM people_in_ranges WHERE {where} ORDER BY id"
        assert [i for (i,) in connection.execute(text).fetchall()] == IDS[row == 1].tolist()
    connection.execute("DROP TABLE people_in_ranges")


def test_a_file_holds_the_parameters(tmp_path):
    queries = range_queries(IDS, COLUMNS, 5, np.random.default_rng(0))
    write_queries(tmp_path / "q.jsonl", queries)
    assert read_queries(tmp_path / "q.jsonl").digest == queries.digest


def test_texts_have_no_ranges():
    with pytest.raises(InputError, match="no known column has ranges"):
        range_queries(IDS, {"sex": COLUMNS["sex"]}, 5, np.random.default_rng(0))
