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
tables = {{ loans = "client_id" }}

[databases.store]
file = "store.duckdb"
tables = {{ loans = "client_id", branches = "id" }}

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


@pytest.fixture
def found(tmp_path, monkeypatch, bank, postgres_loans):
    bank.write_csv(tmp_path / "loans.csv")
    with duckdb.connect(str(tmp_path / "store.duckdb")) as store:
        store.execute(f"CREATE TABLE loans AS SELECT * FROM read_csv('{tmp_path}/loans.csv')")
        store.execute("CREATE TABLE branches AS SELECT range AS id, 1 AS kind FROM range(99)")
        store.execute(f"COPY loans TO '{tmp_path}/loans.parquet'")
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
    assert ask(found, "store", "SELECT count(*) FROM pg_tables") == 2
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=OR_REFUSED.split("`")[0]):
        ask(found, "ledger", "SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'")


def test_users_ask_what_is_theirs(found):
    assert ask(found, "flat", QUERY, user="clerk") > 1
    with pytest.raises(psycopg.OperationalError, match='"store" does not exist; there is flat'):
        ask(found, "store", QUERY, user="clerk")
    sources = f"{found.rest}/api/data_sources"
    assert httpx.get(sources).status_code == 401
    named = httpx.get(sources, headers={"auth-token": "token"}).json()["data_sources"]
    assert [source["name"] for source in named] == ["ledger", "store", "flat"]
