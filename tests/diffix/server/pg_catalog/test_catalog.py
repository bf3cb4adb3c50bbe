"""Look-ups: the shape of the tables and nothing else, whatever is asked."""

import psycopg
import pytest

from countleak.diffix.server.session import Session
from countleak.errors import TargetError
from tests.diffix.conftest import loans_engine
from tests.diffix.server.in_process import InProcess, run, texts


@pytest.fixture(scope="module")
def session(bank):
    return Session(InProcess(loans_engine(bank)), "analyst", {})


def rows(session, sql):
    return texts(run(session, sql))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT current_database(), current_user, current_schema()",
            ("bank", "analyst", "public"),
        ),
        ("SELECT 'loans'::regclass::oid = oid FROM pg_class WHERE relname = 'loans'", ("t",)),
        ("SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = 2200", ("public",)),
        ("SELECT format_type(25, NULL)", ("text",)),
        ("SELECT setting FROM pg_settings WHERE name = 'server_encoding'", ("UTF8",)),
        ("SELECT current_setting('server_version')", ("14.0",)),
        ("SELECT count(*) FROM information_schema.columns WHERE table_name = 'loans'", ("4",)),
        ("SELECT 1 + 1", ("2",)),
        ("SELECT pg_advisory_unlock_all()", (None,)),
        ("SELECT relname FROM pg_class WHERE relname ~ '^lo'", ("loans",)),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM b", ("1",)),
        ("WITH a AS (SELECT 2 AS x) SELECT x FROM a UNION SELECT (SELECT x FROM a)", ("2",)),
    ],
)
def test_look_ups_are_answered(session, sql, expected):
    assert rows(session, sql) == [expected]


def test_columns_are_named_as_postgresql_names_them(session, postgres):
    for sql in (
        "SELECT 1, 'a', version(), current_schema(), 1 AS one",
        "SELECT relname, oid::text, upper(relname), relname || 'x' FROM pg_class",
        "SELECT count(*), max(oid) FROM pg_catalog.pg_class",
    ):
        fields = run(session, sql).fields
        theirs = postgres.connection.execute(sql).description
        assert [field.name for field in fields] == [column.name for column in theirs]


def test_columns_of_the_system_tables_are_those_of_postgresql(postgres):
    """A name that PostgreSQL does not have would be a slip of the pen."""
    from countleak.diffix.server.pg_catalog.definitions import SYSTEM_TABLES

    real = postgres.connection.execute(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pg_catalog'"
    ).fetchall()
    # Of releases before or after the one that runs here.
    other = {"relhasoids", "indnullsnotdistinct", "datcollate", "adsrc"}
    for table, columns in SYSTEM_TABLES.items():
        if not table.startswith("information_schema_"):
            theirs = {column for name, column in real if name == table}
            assert set(columns) - theirs - other == set(), table


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM pg_catalog.read_text('/etc/passwd')",
        "SELECT read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM pg_catalog."/etc/passwd"',
        'SELECT * FROM pg_catalog."x.csv"',
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM pg_catalog.duckdb_tables()",
        "SELECT * FROM information_schema.duckdb_settings",
        "SELECT * FROM pg_catalog.sqlite_master",
        "SELECT rolpassword FROM pg_authid",
        "SELECT * FROM pg_shadow",
        "COPY pg_class TO '/tmp/x'",
        "COPY (SELECT 1) TO '/tmp/x'",
        "ATTACH '/tmp/x' AS x",
        "INSTALL httpfs",
        "PRAGMA database_list",
        "CREATE TABLE pg_x AS SELECT 1",
        "INSERT INTO pg_class (relname) VALUES ('x')",
        "DELETE FROM pg_class",
        "UPDATE pg_class SET relname = 'x'",
        "DROP TABLE pg_class",
        "SELECT 1 INTO x",
        "WITH gone AS (DELETE FROM pg_class RETURNING *) SELECT * FROM gone",
        "SELECT * FROM generate_series(1, 1000000)",
        "SELECT client_id FROM pg_catalog.loans",
        "SELECT client_id FROM information_schema.loans",
        "SELECT loans.client_id FROM pg_class, loans",
        "SELECT * FROM pg_class JOIN public.loans ON true",
        "SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM loans WHERE client_id = 2)",
        "WITH loans AS (SELECT 1) SELECT * FROM pg_class, public.loans",
        "WITH x AS (SELECT * FROM loans) SELECT * FROM x",
        "SELECT (SELECT count(*) FROM loans)",
        # A WITH names a table in its own query, and behind itself; elsewhere it is DuckDB's.
        "SELECT * FROM (WITH duckdb_views AS (SELECT 1) SELECT 1) a, duckdb_views",
        "WITH duckdb_tables AS (SELECT * FROM duckdb_tables) SELECT * FROM duckdb_tables",
        "WITH a AS (SELECT * FROM duckdb_views), duckdb_views AS (SELECT 1) SELECT * FROM a",
        "(WITH duckdb_views AS (SELECT 1) SELECT 1) UNION SELECT sql FROM duckdb_views",
        'SELECT * FROM (WITH "x.csv" AS (SELECT 1) SELECT * FROM "x.csv") a, "x.csv"',
        "SELECT 1 UNION SELECT client_id FROM loans",
    ],
)
def test_nothing_else_comes_out(session, sql):
    with pytest.raises(TargetError) as caught:
        rows(session, sql)
    # It is refused before the database of the catalog hears of it.
    assert not str(caught.value).startswith("The catalog cannot answer this")
    assert rows(session, "SELECT count(*) FROM pg_class") == [("1",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 1000000000)",
        "SELECT lpad('x', 1000000000)",
        "WITH RECURSIVE t AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM t) SELECT s FROM t",
        "SELECT string_agg('x', '') FROM generate_series(1, 100000000000)",
    ],
)
def test_a_look_up_that_would_take_all_memory_is_refused(session, sql):
    with pytest.raises(TargetError):
        rows(session, sql)


def test_a_failed_look_up_over_the_wire_is_one_error(server):
    with server.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM pg_catalog.pg_nothing")
        assert connection.execute("SELECT 1").fetchone() == (1,)
