import duckdb
import numpy as np
import pytest

from countleak.attack.queries.ids import id_array, id_list
from countleak.attack.queries.subsets import random_subsets
from countleak.errors import InputError


def test_half_of_the_people_on_average():
    matrix = random_subsets(np.arange(200), 500, np.random.default_rng(0)).matrix
    # Six standard errors of the mean of 100,000 fair bits.
    assert abs(matrix.mean() - 0.5) < 6 * 0.5 / np.sqrt(100_000)


# People by id, and the SQL of a table that holds them, for both databases.
TABLES = {
    "integers": ([3, 7, 2**62], "(VALUES (3), (7), (4611686018427387904)) AS t (k)"),
    "text": (["007", "7", "it's"], "(VALUES ('007'), ('7'), ('it''s')) AS t (k)"),
    "hostile": (
        ["a'); DROP TABLE x; --", 'b"', "c\\"],
        "(VALUES ('a''); DROP TABLE x; --'), ('b\"'), ('c\\')) AS t (k)",
    ),
    "uuid": (
        ["0b7e9c1e-0000-4000-8000-000000000001", "0b7e9c1e-0000-4000-8000-000000000002"],
        "(VALUES ('0b7e9c1e-0000-4000-8000-000000000001'::uuid), "
        "('0b7e9c1e-0000-4000-8000-000000000002'::uuid)) AS t (k)",
    ),
    "big": (
        [10**30, 10**30 + 1],
        "(VALUES (1000000000000000000000000000000::numeric(38)), "
        "(1000000000000000000000000000001::numeric(38))) AS t (k)",
    ),
}
PAIRS = [("a", 1), ("a", 2), ("it's", 1)]
PAIR_TABLE = "(VALUES ('a', 1), ('a', 2), ('it''s', 1)) AS t (k, \"order\")"


def rows(postgres, dialect, statement):
    if dialect == "postgres":
        return postgres.connection.execute(statement.encode()).fetchall()
    return duckdb.execute(statement).fetchall()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("kind", TABLES)
def test_the_sql_selects_the_row_whatever_the_ids_are(postgres, kind, dialect):
    people, table = TABLES[kind]
    queries = random_subsets(id_array(people), 12, np.random.default_rng(0))
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("k",)).sql(dialect)
        found = rows(postgres, dialect, f"SELECT k::text FROM {table} WHERE {where}")
        assert sorted(found) == sorted((str(i),) for i in id_list(queries.ids[row == 1]))


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_the_sql_selects_the_row_by_a_composite_key(postgres, dialect):
    queries = random_subsets(id_array(PAIRS), 12, np.random.default_rng(0))
    assert {len(id_list(queries.ids[row == 1])) for row in queries.matrix} == {0, 1, 2, 3}
    for at, row in enumerate(queries.matrix):
        where = queries.predicate(at, ("k", "order")).sql(dialect)
        found = rows(postgres, dialect, f'SELECT k, "order" FROM {PAIR_TABLE} WHERE {where}')
        assert sorted(found) == id_list(queries.ids[row == 1])


def test_the_sql_selects_the_row(bank, postgres):
    ids = bank.ids[:40]
    queries = random_subsets(ids, 50, np.random.default_rng(0))
    table = f"(VALUES {', '.join(f'({i})' for i in ids)}) AS loans (client_id)"
    for at, row in enumerate(queries.matrix):
        expected = [(i,) for i in ids[row == 1].tolist()]
        for dialect in ("duckdb", "postgres"):
            where = queries.predicate(at, ("client_id",)).sql(dialect)
            statement = f"SELECT client_id FROM {table} WHERE {where} ORDER BY 1"
            assert rows(postgres, dialect, statement) == expected


def test_nobody_is_a_predicate_too():
    queries = random_subsets(np.array([1, 2]), 64, np.random.default_rng(0))
    empty = np.flatnonzero(queries.matrix.sum(axis=1) == 0)
    assert empty.size
    assert queries.predicate(int(empty[0]), ("uid",)).sql("postgres") == '"uid" <> "uid"'


def test_no_queries_are_refused():
    with pytest.raises(InputError, match="at least one"):
        random_subsets(np.arange(5), 0, np.random.default_rng(0))
