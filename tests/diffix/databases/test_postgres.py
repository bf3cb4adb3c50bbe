"""DuckDB and a real PostgreSQL give the same answers for the same salt."""

import numpy as np
import pytest
from psycopg.conninfo import make_conninfo

import countleak as cl
from countleak.diffix.databases.postgres import PADDED, connect
from countleak.diffix.engine import Engine
from countleak.diffix.sql.render import Hash, Where
from countleak.diffix.sql.statement import Column, Kind
from countleak.errors import InputError, Refused, TargetError
from tests.diffix.conftest import salt_number
from tests.diffix.grammar import generated_statements

TYPES = {"i": "bigint", "f": "double precision", "U": "text"}


def url(postgres):
    return postgres.connection.info.dsn


def load(connection, name, columns):
    described = ", ".join(f'"{c}" {TYPES[v.dtype.kind]}' for c, v in columns.items())
    connection.execute(f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({described})')
    with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            copy.write_row(row)


@pytest.fixture(scope="module")
def loans(postgres, bank):
    load(postgres.connection, "loans", {bank.id_column: bank.ids, **bank.columns})
    with connect(url(postgres), table="loans", user="client_id") as database:
        yield database


def test_the_table_is_described_alike(loans, engine):
    assert loans.table == engine.database.table


def agree(loans, bank, positions):
    queries = cl.digit_queries(bank.between(2000, 2999).ids).take(positions)
    over_postgres = cl.Diffix(loans, "status = 'C'", salt=salt_number(0))
    over_duckdb = cl.Diffix(bank, "status = 'C'", salt=salt_number(0))
    found, expected = cl.ask(queries, over_postgres), cl.ask(queries, over_duckdb)
    return np.array_equal(found.values, expected.values, equal_nan=True)


def test_some_attack_queries_are_answered_alike(loans, bank):
    assert agree(loans, bank, np.arange(0, 3500, 10))


@pytest.mark.slow
def test_all_attack_queries_are_answered_alike(loans, bank):
    assert agree(loans, bank, np.arange(3500))


@pytest.mark.parametrize("count", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_generated_questions_are_answered_alike(loans, engine, count):
    other = Engine(loans, engine.release, engine.salt)
    refused = 0
    for text in generated_statements(count, seed=1):
        try:
            expected = engine.ask(text)
        except Refused as reason:
            refused += 1
            with pytest.raises(Refused) as caught:
                other.ask(text)
            assert str(caught.value) == str(reason)
            continue
        assert other.ask(text) == expected, text
    assert refused < count / 3


def test_several_rows_a_user_are_answered_alike(postgres, visits):
    names = list(visits.database.table.columns)
    rows = visits.database.rows(f"SELECT {', '.join(names)} FROM visits WHERE uid IS NOT NULL")
    columns = {
        name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    load(postgres.connection, "visits", columns)
    texts = [
        "SELECT count(*), count(DISTINCT uid), sum(cost), avg(cost), count(weight) FROM visits",
        "SELECT place, count(*), sum(weight), count(DISTINCT cost) FROM visits GROUP BY place",
        "SELECT cost, count(*), avg(weight) FROM visits WHERE place <> 'east' GROUP BY cost",
        "SELECT count(*) FROM visits WHERE weight BETWEEN 60 AND 80 AND place LIKE '%o%'",
        "SELECT n, count(*) FROM (SELECT uid, count(*) AS n FROM visits GROUP BY uid) x GROUP BY n",
        "SELECT floor(s / 50), count(*), sum(s), max(a) FROM (SELECT uid, sum(cost) AS s, "
        "avg(weight) AS a FROM visits WHERE cost BETWEEN 0 AND 50 GROUP BY uid) x GROUP BY 1",
        "SELECT count(*) FROM (SELECT uid, sum(weight) AS s, min(cost) AS l FROM visits "
        "WHERE place <> 'east' GROUP BY uid) x WHERE s BETWEEN 0 AND 200 AND l <> 3",
    ]
    with connect(url(postgres), table="visits", user="uid") as database:
        assert database.table == visits.database.table
        other = Engine(database, visits.release, visits.salt)
        for text in texts:
            assert other.ask(text) == visits.ask(text), text


def test_few_rows_are_as_many_to_hash_as_none(loans, bank):
    """Decoys fill up the rows that match, and nobody's; they count for nothing."""
    user = Column("client_id", Kind.WHOLE)
    dialect = loans.dialect(salt_number(0))
    for count in (0, 1, 5, PADDED - 1, PADDED, 40):
        ids = ", ".join(map(str, [-1, *bank.ids[:count]]))
        where = f'("client_id" IN ({ids}) OR "client_id" IS NULL)'
        every = dialect.source(loans.table, [user])
        hashes, others = [Hash(user, "user")], f"SELECT * FROM {every} WHERE client_id IS NOT NULL"
        for either in (Where(where, None), Where("TRUE", where)):
            source = dialect.matching(loans.table, every, hashes, either, others)
            (row,) = loans.rows(
                f"SELECT count(*), count({dialect.counted('client_id')}), "
                f'count(CASE WHEN "user hash of client_id" <> 0 THEN 1 END) FROM {source}'
            )
            assert row == (max(count + 1, PADDED), count, count)


def test_what_is_costly_is_computed_of_as_many_rows_for_one_as_for_none(loans, bank, engine):
    """By what PostgreSQL says that it did, in the node that computes."""

    def computed_of(number):
        text = f"SELECT count(*) FROM loans WHERE client_id = {number} AND sqrt(amount) = 2"
        plans = []
        for sent, values in sent_for(Engine(loans, engine.release, engine.salt), text):
            ((found,),) = loans.rows(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sent}", values)
            plans += [node for node in nodes_of(found[0]["Plan"]) if "sqrt" in str(node["Filter"])]
        return [node["Actual Rows"] + node["Rows Removed by Filter"] for node in plans]

    assert computed_of(bank.ids[5]) == computed_of(-1) == [PADDED]


def sent_for(engine, question):
    """The statements that a question becomes, with their values."""
    sent = []

    class Recorded:
        tables = engine.database.tables
        dialect = engine.database.dialect

        def rows(self, text, values=()):
            sent.append((text, values))
            return engine.database.rows(text, values)

    Engine(Recorded(), engine.release, engine.salt).ask(question)
    return sent


def nodes_of(plan):
    yield {"Filter": "", **plan}
    for inner in plan.get("Plans", []):
        yield from nodes_of(inner)


def test_the_server_only_reads_and_not_for_ever(loans, postgres):
    for statement in ("DELETE FROM loans", "CREATE TABLE other (x int)", "DROP TABLE loans"):
        with pytest.raises(TargetError, match="could not compute"):
            loans.rows(statement)
    with (
        connect(url(postgres), table="loans", user="client_id", seconds=1) as database,
        pytest.raises(TargetError),
    ):
        database.rows("SELECT pg_sleep(20)")


def test_a_role_that_only_reads_the_table_is_enough(loans, postgres, engine):
    postgres.connection.execute(
        "DROP ROLE IF EXISTS auditor; CREATE ROLE auditor LOGIN; GRANT SELECT ON loans TO auditor"
    )
    try:
        auditor = make_conninfo(url(postgres), user="auditor")
        with connect(auditor, table="loans", user="client_id") as database:
            other = Engine(database, engine.release, engine.salt)
            text = "SELECT status, count(*) FROM loans GROUP BY status"
            assert other.ask(text) == engine.ask(text)
            with pytest.raises(TargetError):
                database.rows("SELECT rolpassword FROM pg_authid")
    finally:
        postgres.connection.execute("DROP OWNED BY auditor; DROP ROLE auditor")


def test_what_cannot_be_asked_is_refused(postgres):
    with (
        pytest.raises(InputError, match="no table 'absent'"),
        connect(url(postgres), table="absent", user="uid"),
    ):
        pass
    with (
        pytest.raises(InputError, match="no PostgreSQL server"),
        connect("postgresql://127.0.0.1:1/none", table="t", user="u"),
    ):
        pass
