import duckdb
import numpy as np
import pytest

from countleak.attack.queries.tables import (
    merged_in,
    statements_of,
    table_queries,
)
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import People
from countleak.audit.targets.simulated import Exactly, Simulated
from countleak.errors import InputError

COLUMNS = {
    "sex": np.array(["f", "m", "f", "o'b", "m"]),
    "age": np.array([30, 30, 40, 40, 40]),
}
IDS = np.arange(5)
PEOPLE = People(IDS, COLUMNS, "id", "people")


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


def test_a_table_needs_columns_that_are_known():
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


def merged_table():
    queries = table_queries(IDS, COLUMNS, [("sex",), ("age",)], merged=True)
    return queries, merged_in(queries)


def test_what_is_merged_counts_those_whose_cells_are_hidden():
    queries, merged = merged_table()
    assert np.flatnonzero(merged).tolist() == [3, 6]
    released = np.ones(len(queries), np.bool_)
    released[[0, 2]] = False
    values = np.where(released, queries.dot(np.ones(5)), np.nan)
    values[3] = 3.0
    seen = Transcript.of(queries, Answers.to_all(values, released))
    # Of sex the cells f and o'b are hidden; of age nothing is, so nothing was merged.
    assert len(seen) == len(queries) - 1
    assert seen.queries.matrix[3].tolist() == [1, 0, 1, 1, 0]
    assert np.abs(seen.residuals(np.ones(5))).max() == 0


def test_what_is_merged_is_nobody_where_a_cell_was_not_asked():
    queries, _ = merged_table()
    answers = Answers(np.array([0, 1, 3]), np.array([np.nan, 2.0, 1.0]), np.array([0, 1, 1]) == 1)
    assert len(Transcript.of(queries, answers)) == 2
    with pytest.raises(InputError, match="has no condition"):
        queries.predicate(3, ("id",))
    with pytest.raises(InputError, match="merges no cells"):
        next(Simulated(PEOPLE, None, Exactly()).answer(queries, np.arange(7)))


def test_rows_are_read_as_the_cells_they_are_about():
    queries, _ = merged_table()
    table = next(statements_of(queries, np.arange(4)))
    assert table.merged == 3
    assert table.read([(("f",), 5.0), (("*",), 7.0)]) == {0: 5.0, 3: 7.0}
    assert table.read([(("f",), 5.0), ((None,), 7.0)]) == {0: 5.0, 3: 7.0}
    # Somebody unknown is in the table, and may have been merged.
    assert np.isnan(table.read([(("x",), 5.0), (("*",), 7.0)])[3])
    assert np.isnan(table.read([(("f",), 5.0), (("f",), 6.0)])[0])


def test_a_group_of_no_value_is_not_taken_for_what_was_merged():
    nobody = {"sex": np.array(["f", "m", None, "f", "m"], dtype=object)}
    with_merged = table_queries(IDS, nobody, [("sex",)], merged=True)
    without = table_queries(IDS, nobody, [("sex",)])
    rows = [(("f",), 2.0), ((None,), 1.0)]
    told = next(statements_of(with_merged, np.arange(4))).read(rows)
    assert told[0] == 2.0
    assert all(np.isnan(told[at]) for at in (2, 3))
    assert next(statements_of(without, np.arange(3))).read(rows) == {0: 2.0, 2: 1.0}
