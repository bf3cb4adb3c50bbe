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
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("id",)).sql("duckdb")
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


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_cells_of_any_columns_and_values_stay_names_and_literals(postgres, dialect):
    columns = {
        "order": np.array(["it's", "'; DROP TABLE x; --", "it's", "a\\'b"]),
        'my "col"': np.array([1.5, -2.0, 1.5, 0.25]),
        "größe; --": np.array([True, False, False, True]),
    }
    queries = table_queries(np.arange(4), columns, [(name,) for name in columns] + [tuple(columns)])
    connection = duckdb.connect() if dialect == "duckdb" else postgres.connection
    connection.execute(
        'CREATE TEMPORARY TABLE cells (id int, "order" text, "my ""col""" float8, '
        '"größe; --" boolean)'
    )
    mark = "%s" if dialect == "postgres" else "?"
    for person, values in enumerate(zip(*(v.tolist() for v in columns.values()), strict=True)):
        connection.execute(f"INSERT INTO cells VALUES ({', '.join([mark] * 4)})", [person, *values])
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("id",)).sql(dialect)
        statement = f"SELECT id FROM cells WHERE {where} ORDER BY id"
        found = connection.execute(statement.encode() if dialect == "postgres" else statement)
        assert [i for (i,) in found.fetchall()] == np.flatnonzero(row == 1).tolist()
    connection.execute("DROP TABLE cells")
