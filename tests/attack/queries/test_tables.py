import duckdb
import numpy as np
import pytest

from countleak.attack.queries.tables import random_tables, table_queries
from countleak.errors import InputError

COLUMNS = {
    "sex": np.array(["f", "m", "f", "o'b", "m"]),
    "age": np.array([30, 30, 40, 40, 40]),
}
IDS = np.arange(5)


def test_every_cell_counts_those_in_it_and_its_sql_says_the_same():
    queries = table_queries(IDS, COLUMNS, [("sex",), ("age",), ("sex", "age")])
    assert queries.parameters["table"].tolist() == [0] * 3 + [1] * 2 + [2] * 5
    connection = duckdb.connect()
    connection.execute("create table people (id int, sex text, age int)")
    rows = zip(IDS.tolist(), COLUMNS["sex"].tolist(), COLUMNS["age"].tolist(), strict=True)
    connection.executemany("insert into people values (?, ?, ?)", list(rows))
    for row, where in zip(queries.matrix, queries.where, strict=True):
        found = connection.execute(f"select id from people where {where} order by id").fetchall()
        assert [i for (i,) in found] == IDS[row == 1].tolist()


def test_each_table_counts_everyone_once():
    queries = table_queries(IDS, COLUMNS, [("sex",), ("sex", "age")])
    for table in (0, 1):
        assert (queries.matrix[queries.parameters["table"] == table].sum(axis=0) == 1).all()


def test_tables_are_drawn_without_repeating():
    tables = random_tables(list("abcdef"), 40, np.random.default_rng(0))
    assert len(set(tables)) == 40
    with pytest.raises(InputError, match="6 columns make 41 tables of up to 3, not 42"):
        random_tables(list("abcdef"), 42, np.random.default_rng(0))
    with pytest.raises(InputError, match="no column 'job'"):
        table_queries(IDS, COLUMNS, [("job",)])
    with pytest.raises(InputError, match="at least one column"):
        table_queries(IDS, COLUMNS, [()])
