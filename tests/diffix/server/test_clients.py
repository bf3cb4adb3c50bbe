"""psql, psycopg, asyncpg, SQLAlchemy and an HTTP client, each against a server that runs."""

import asyncio
import os
import subprocess
from decimal import Decimal

import asyncpg
import httpx
import psycopg
import pytest
import sqlalchemy as sa

from tests.diffix.conftest import loans_engine
from tests.diffix.server.conftest import OR, OR_REFUSED, QUERY

GROUPED = "SELECT status, count(*) FROM loans GROUP BY status"
RANGED = "SELECT count(*) FROM loans WHERE status = {} AND client_id BETWEEN {} AND {}"


@pytest.fixture(scope="module")
def expect(bank):
    """What the engine itself answers."""
    engine = loans_engine(bank)
    return lambda sql: [row.values for row in engine.ask(sql).rows]


def test_psycopg_simple(server, database, expect):
    with server.connect(database, cursor_factory=psycopg.ClientCursor) as connection:
        assert connection.execute(QUERY).fetchall() == expect(QUERY)
        several = connection.execute(f"{QUERY}; {GROUPED};")
        assert several.fetchall() == expect(QUERY)
        assert several.nextset()
        assert several.fetchall() == expect(GROUPED)
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="Combining conditions"):
            connection.execute(OR)
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(QUERY)
        connection.rollback()
        assert connection.execute(QUERY).fetchall() == expect(QUERY)


@pytest.mark.parametrize("mark", ["%s", "%b", "%t"])
def test_psycopg_parameters_as_text_and_binary(server, database, expect, mark):
    sql, literal = RANGED.format(mark, mark, mark), RANGED.format("'C'", 2000, 3000)
    with server.connect(database) as connection:
        for values in (["C", 2000, 3000], ["C", Decimal("2000"), 3000.0]):
            assert connection.execute(sql, values).fetchall() == expect(literal)
        negative = f"SELECT count(*) FROM loans WHERE amount BETWEEN {mark} AND {mark}"
        found = connection.execute(negative, [Decimal("-0.5"), 99_999.5]).fetchall()
        assert found == expect(negative.replace(mark, "-0.5", 1).replace(mark, "99999.5"))
        # What looks like SQL in a value is a value.
        nobody = connection.execute(sql, ["C' OR '1' = '1", 0, 10_000]).fetchone()
        assert nobody == (0,)


def test_psycopg_prepared_and_binary_results(server, database, expect):
    sql = "SELECT status, avg(amount), sum(duration) FROM loans WHERE duration = %s GROUP BY status"
    with server.connect(database) as connection:
        for _ in range(7):
            with connection.cursor(binary=True) as cursor:
                rows = cursor.execute(sql, [24], prepare=True).fetchall()
                assert rows == expect(sql.replace("%s", "24"))
                assert [column.type_code for column in cursor.description] == [25, 701, 20]


def test_psycopg_pipeline_recovers_at_the_next_sync(server, database, expect):
    with server.connect(database, autocommit=True) as connection:
        with connection.pipeline():
            found = [connection.execute(RANGED.format("%s", 0, 9999), [s]) for s in "ABCD"]
            assert [c.fetchall() for c in found] == [
                expect(RANGED.format(f"'{s}'", 0, 9999)) for s in "ABCD"
            ]
        with pytest.raises(psycopg.errors.FeatureNotSupported), connection.pipeline() as pipeline:
            first = connection.execute(QUERY)
            connection.execute(OR)
            connection.execute(QUERY)
            pipeline.sync()
        assert first.fetchall() == expect(QUERY)
        assert connection.execute(QUERY).fetchall() == expect(QUERY)


def test_asyncpg(server, database, expect):
    async def converse() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="analyst", database=database
        )
        rows = await connection.fetch(RANGED.format("$1", "$2", "$3"), "C", 2000, 3000)
        assert [tuple(row) for row in rows] == expect(RANGED.format("'C'", 2000, 3000))
        statement = await connection.prepare("SELECT count(*) FROM loans WHERE duration = $1")
        assert [parameter.name for parameter in statement.get_parameters()] == ["int8"]
        for months in (12, 24):
            wanted = expect(f"SELECT count(*) FROM loans WHERE duration = {months}")
            assert await statement.fetchval(months) == wanted[0][0]
        many = "SELECT status, duration, count(*) FROM loans GROUP BY status, duration"
        async with connection.transaction():
            # A portal that is read three rows at a time.
            fetched = [tuple(row) async for row in connection.cursor(many, prefetch=3)]
        assert fetched == expect(many)
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="Combining conditions"):
            await connection.fetch(OR)
        found = await connection.fetch(
            "SELECT relname FROM pg_catalog.pg_class WHERE relkind = $1", "r"
        )
        assert [row["relname"] for row in found] == ["loans"]
        await connection.reset()
        assert await connection.fetchval(QUERY) == expect(QUERY)[0][0]
        await connection.close()

    asyncio.run(converse())


def test_sqlalchemy_asks_and_reflects(server, database, expect):
    engine = sa.create_engine(f"postgresql+psycopg://analyst@127.0.0.1:{server.port}/{database}")
    loans = sa.Table("loans", sa.MetaData(), autoload_with=engine)
    assert [column.name for column in loans.columns] == [
        "client_id",
        "status",
        "amount",
        "duration",
    ]
    assert isinstance(loans.c.amount.type, sa.BigInteger)
    chosen = sa.select(sa.func.count()).where(
        loans.c.status == "C", loans.c.client_id.between(2000, 3000)
    )
    with engine.connect() as connection:
        wanted = expect(RANGED.format("'C'", 2000, 3000))
        assert connection.execute(chosen.select_from(loans)).scalar() == wanted[0][0]
        grouped = sa.select(sa.func.count(), loans.c.status).group_by(loans.c.status)
        rows = connection.execute(grouped).fetchall()
        assert [(status, count) for count, status in rows] == expect(GROUPED)
        with pytest.raises(sa.exc.DBAPIError, match="Combining conditions"):
            connection.execute(sa.text(OR))
    assert sa.inspect(engine).get_table_names() == ["loans"]
    engine.dispose()


def run_psql(psql, server, database, *commands):
    words = [word for command in commands for word in ("-c", command)]
    return subprocess.run(
        [psql, "-X", "-At", *words, server.dsn(database)],
        capture_output=True,
        text=True,
        env={**os.environ, "PGCONNECT_TIMEOUT": "20"},
    )


def test_psql(psql, server, database, expect):
    assert run_psql(psql, server, database, QUERY).stdout == f"{expect(QUERY)[0][0]}\n"
    refused = run_psql(psql, server, database, OR)
    assert refused.stderr == f"ERROR:  {OR_REFUSED}\n"
    assert refused.returncode == 1
    described = run_psql(psql, server, database, r"\d loans").stdout
    assert [line.split("|")[:2] for line in described.splitlines()] == [
        ["client_id", "bigint"],
        ["status", "text"],
        ["amount", "bigint"],
        ["duration", "bigint"],
    ]
    assert run_psql(psql, server, database, r"\dt").stdout == "public|loans|table|countleak\n"
    assert run_psql(psql, server, database, r"\l").stdout.startswith(f"{database}|countleak|UTF8")


@pytest.mark.parametrize(
    "command", [r"\d", r"\d+ loans", r"\dt+", r"\l+", r"\dn", r"\du", r"\df", r"\dp", r"\conninfo"]
)
def test_psql_looks_around(psql, server, command):
    found = run_psql(psql, server, "bank", command)
    assert found.returncode == 0
    assert found.stderr == ""


def test_notices_reach_psql(psql, server):
    found = run_psql(
        psql, server, "bank", "SELECT count(*) FROM loans WHERE client_id BETWEEN 1990 AND 3010"
    )
    assert "NOTICE:  The range for column `client_id` has been adjusted" in found.stderr


def test_http(server, database, expect):
    def ask(sql):
        given = {"query": {"statement": sql, "data_source_name": database}}
        handed_in = httpx.post(f"{server.rest}/api/queries", json=given).json()
        assert handed_in["success"]
        found = httpx.get(f"{server.rest}/api/queries/{handed_in['query_id']}?wait=30").json()
        return found["query"]

    answer = ask(QUERY)
    assert answer["state"] == "completed"
    assert answer["columns"] == ["count"]
    assert answer["rows"] == [{"row": list(expect(QUERY)[0]), "released": True}]
    refused = ask(OR)
    assert (refused["state"], refused["error"]) == ("error", OR_REFUSED)
    nobody = ask("SELECT count(*) FROM loans WHERE client_id = 1")
    assert nobody["rows"] == [{"row": [0], "released": False}]
    adjusted = ask("SELECT count(*) FROM loans WHERE client_id BETWEEN 1990 AND 3010")
    assert "adjusted" in adjusted["notices"][0]
