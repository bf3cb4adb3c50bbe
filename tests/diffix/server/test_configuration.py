"""A file that declares databases of every kind; the command line's tests hold the refusals."""

import duckdb
import httpx
import psycopg
import pytest

from countleak.diffix.server.configuration import from_file
from countleak.diffix.server.users import Verifier
from tests.diffix.server.conftest import OR_REFUSED, QUERY, running

FILE = """
salt_file = "salt"

[listen]
postgres_port = 0
rest_port = 0

[limits]
seconds = 20

[databases.ledger]
url_env = "LEDGER_URL"
tables = {{ loans = "client_id", cards = "owner" }}

[databases.store]
file = "store.duckdb"
tables = {{ loans = "client_id", cards = "owner", branches = "id" }}

[databases.flat]
file = "loans.parquet"
tables = {{ loans = "client_id" }}

[users.auditor]
verifier = "{verifier}"
token_sha256 = "{token}"

[users.clerk]
verifier = "{verifier}"
databases = ["flat"]
"""


TOKEN = {"auth-token": "token"}
# Every second person with a loan has a card.
CARDS = """CREATE TABLE cards AS SELECT client_id AS owner, 'region ' || client_id % 3 AS region
FROM loans WHERE client_id % 2 = 0"""


@pytest.fixture
def found(tmp_path, monkeypatch, bank, postgres_loans):
    bank.write_csv(tmp_path / "loans.csv")
    with duckdb.connect(str(tmp_path / "store.duckdb")) as store:
        store.execute(f"CREATE TABLE loans AS SELECT * FROM read_csv('{tmp_path}/loans.csv')")
        store.execute("CREATE TABLE branches AS SELECT range AS id, 1 AS kind FROM range(99)")
        store.execute(CARDS)
        store.execute(f"COPY loans TO '{tmp_path}/loans.parquet'")
    with psycopg.connect(postgres_loans, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS cards; {CARDS}")
    # The sum of the word "token".
    token = "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0"
    text = FILE.format(verifier=Verifier.of_password("a password"), token=token)
    (tmp_path / "serve.toml").write_text(text)
    monkeypatch.setenv("LEDGER_URL", postgres_loans)
    server = from_file(tmp_path / "serve.toml", {})
    assert server.limits.seconds == 20
    with running(server) as where:
        yield where


def ask(found, database, sql, user="auditor"):
    with found.connect(database, user, password="a password") as connection:
        return connection.execute(sql).fetchone()[0]


def test_every_kind_of_database_gives_the_same_answer(found):
    answers = {ask(found, name, QUERY) for name in ("ledger", "store", "flat")}
    assert len(answers) == 1
    assert answers.pop() > 1
    assert ask(found, "store", "SELECT count(*) FROM branches") > 80
    assert ask(found, "store", "SELECT count(*) FROM pg_tables") == 3
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=OR_REFUSED.split("`")[0]):
        ask(found, "ledger", "SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'")


def test_users_ask_what_is_theirs(found):
    assert ask(found, "flat", QUERY, user="clerk") > 1
    with pytest.raises(psycopg.OperationalError, match='"store" does not exist; there is flat'):
        ask(found, "store", QUERY, user="clerk")
    sources = f"{found.rest}/api/data_sources"
    assert httpx.get(sources).status_code == 401
    named = httpx.get(sources, headers=TOKEN).json()["data_sources"]
    assert [source["name"] for source in named] == ["ledger", "store", "flat"]


@pytest.mark.slow
def test_tables_are_joined_over_both_protocols(found):
    written = (
        "SELECT count(DISTINCT l.client_id) FROM loans l JOIN cards ON client_id = owner "
        "WHERE l.status = {} AND cards.region = {}"
    )
    answers = set()
    for name in ("ledger", "store"):
        with found.connect(name, "auditor", password="a password") as connection:
            rows = connection.execute(written.format("%s", "%s"), ["C", "region 1"]).fetchall()
            answers.add(rows[0][0])
            described = connection.execute(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE column_name IN ('client_id', 'owner') ORDER BY 1"
            ).fetchall()
            assert described == [("cards", "owner"), ("loans", "client_id")]
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="This JOIN is not"):
                connection.execute("SELECT count(*) FROM loans LEFT JOIN cards ON true")
        answers.add(over_rest(found, name, written.format("'C'", "'region 1'")))
    assert len(answers) == 1
    assert answers.pop() > 20


def over_rest(found, name, text):
    query = {"query": {"statement": text, "data_source_name": name}}
    asked = httpx.post(f"{found.rest}/api/queries?wait=20", json=query, headers=TOKEN)
    (row,) = asked.json()["query"]["rows"]
    return row["row"][0]
