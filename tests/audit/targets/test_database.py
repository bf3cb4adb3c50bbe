"""Databases by their SQLAlchemy URL: SQLite, SQL Server rendered, MariaDB where there is one."""

import os
import sqlite3

import numpy as np
import pytest
from sqlalchemy import create_engine, text
from sqlglot import parse_one

from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit, Category, Number
from countleak.attack.transcript import Journal
from countleak.audit.people import People
from countleak.audit.run import ask, ask_into
from countleak.audit.targets.database import DatabaseTarget
from countleak.audit.targets.pool import RequestLimits
from countleak.audit.targets.retries import Retries
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import CountleakError, InputError, MissingExtra, NoCount, TargetError
from tests.audit.targets.test_sql import truth

SECRET = Bit("status = 'C'")
ONCE = RequestLimits(retries=Retries(0))
KEYS = {
    "integers": [-5, 0, 2**62],
    "text": ["007", "7", "it's \\ %s"],
    "uuid": ["0b7e9c1e-0000-4000-8000-000000000001", "0b7e9c1e-0000-4000-8000-000000000002"],
    "composite": [("a", 1), ("a", 2), ("b", 1)],
}
SECRETS = [
    SECRET,
    Category("status", ("B", "C")),
    Number("size"),
    Bit("status = 'C' AND size IN (1, 2)"),
    Bit("order IS NULL AND status <> 'x'"),
]
KINDS = {"i": "BIGINT", "f": "DOUBLE PRECISION", "U": "VARCHAR(50)"}


def people_by(ids):
    columns = {
        "status": np.resize(["C", "B"], len(ids)),
        "size": np.arange(1.0, len(ids) + 1),
        "order": np.array([None if k % 2 else k for k in range(len(ids))], dtype=object),
    }
    return People(id_array(ids), columns, ("Branch No", "select") if ids[0] == ("a", 1) else "Key")


def create(url, people, table):
    """The people as a table, made without the code under test."""
    engine = create_engine(url)
    name = engine.dialect.identifier_preparer.quote_identifier
    columns = people.all_columns
    defined = ", ".join(
        f"{name(column)} {KINDS.get(values.dtype.kind, 'BIGINT')}"
        for column, values in columns.items()
    )
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE IF EXISTS {name(table)}"))
        connection.execute(text(f"CREATE TABLE {name(table)} ({defined})"))
        marks = ", ".join(f":c{k}" for k in range(len(columns)))
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            values = {f"c{k}": value for k, value in enumerate(row)}
            connection.execute(text(f"INSERT INTO {name(table)} VALUES ({marks})"), values)
    engine.dispose()


def check_counts(url, ids, secret):
    people = people_by(ids)
    create(url, people, "Mixed Case")
    queries = random_subsets(people.ids, 12, np.random.default_rng(0))
    target = DatabaseTarget(url, SqlQuestions("Mixed Case", people.key, secret, PLAIN), ONCE)
    found = ask(queries, target, secret)
    assert found.values.tolist() == truth(queries, people, secret)


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'clinic.db'}"


@pytest.mark.parametrize("ids", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("secret", SECRETS, ids=str)
def test_sqlite_counts_truly_whatever_the_ids(sqlite_url, ids, secret):
    check_counts(sqlite_url, ids, secret)


def test_sqlite_counts_by_digits_over_several_connections(sqlite_url, bank, tmp_path):
    people = bank.between(2000, 2999)
    create(sqlite_url, people, "loans")
    queries = digit_queries(people.ids, primes=1, exponents=(0.5, 0.7))
    questions = SqlQuestions("loans", ("client_id",), SECRET, PLAIN)
    target = DatabaseTarget(sqlite_url, questions, RequestLimits(3))
    assert target.is_local
    kept = Journal(tmp_path / "answers.jsonl", queries, SECRET, str(target))
    exact = queries.dot(people.truth(SECRET))
    assert np.array_equal(ask_into(kept, target).values, exact)
    assert target.tables() == {"loans": ("client_id", "status", "amount", "duration")}


def test_sqlite_is_only_read_and_not_for_ever(sqlite_url):
    create(sqlite_url, people_by([1, 2, 3]), "people")
    questions = SqlQuestions("people", ("Key",), SECRET, PLAIN)
    target = DatabaseTarget(sqlite_url, questions, RequestLimits(seconds=0.2))
    connection = target.connect()
    for statement in (
        "DELETE FROM people",
        "CREATE TABLE x (y)",
        "PRAGMA query_only = OFF; DELETE",
    ):
        with pytest.raises(TargetError):
            connection.ask(statement)
    endless = (
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
    )
    with pytest.raises(TargetError, match=r"no answer within 0\.2 seconds"):
        connection.ask(endless)
    for statement in ("SELECT 'many'", "SELECT 1, 2", "SELECT 1 UNION ALL SELECT 2"):
        with pytest.raises(NoCount):
            connection.ask(statement)
    assert connection.ask("SELECT count(*) FROM people") == 3.0
    connection.close()


def test_a_locked_database_is_asked_again(sqlite_url, tmp_path):
    people = people_by([1, 2, 3])
    create(sqlite_url, people, "people")
    queries = random_subsets(people.ids, 9, np.random.default_rng(0))
    questions = SqlQuestions("people", ("Key",), SECRET, PLAIN)
    limits = RequestLimits(seconds=0.05, retries=Retries(12, 60))
    writer = sqlite3.connect(tmp_path / "clinic.db", isolation_level=None)
    heard = []
    for number, batch in enumerate(
        DatabaseTarget(sqlite_url, questions, limits).answer(queries, np.arange(9))
    ):
        heard += batch.values.tolist()
        if number == 3:
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("ROLLBACK")
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TargetError, match="locked"):
        ask(
            queries,
            DatabaseTarget(sqlite_url, questions, RequestLimits(seconds=0.05, retries=Retries(0))),
        )
    writer.close()
    assert heard == truth(queries, people, SECRET)


FAULTS = {
    "sqlite:///absent.db": "absent.db: no such file",
    "sqlite://": "name the file",
    "nosuch://me:hush@db/x": "there is no database called 'nosuch'",
    "mysql+pymysql://me:hu@sh@db/x": "cannot be read",
    "mysql+pymysql://me:hu/sh@db/x": "cannot be read",
    "oracle+nosuch://me:hush@db/x": "there is no database",
    "mssql+pyodbc://me:hush@db/x": r"pip install '\.\[databases\]' pyodbc",
    "mysql://me:hush@db/x": r"pip install '\.\[databases\]' mysqlclient",
    "mysql+mysqlconnector://me:hush@db/x": "mysql-connector-python",
    "postgresql+asyncpg://me:hush@db/x": "the driver asyncpg is asynchronous",
}


@pytest.mark.parametrize("url", FAULTS)
def test_what_cannot_be_asked_is_one_line_without_its_password(url):
    with pytest.raises((InputError, MissingExtra), match=FAULTS[url]) as caught:
        DatabaseTarget(url, SqlQuestions("people", ("id",), SECRET, PLAIN))
    assert not any(part in str(caught.value) for part in ("hush", "hu@sh", "hu/sh", "sh@db"))
    assert "\n" not in str(caught.value)


def test_faults_of_the_database_are_one_line(sqlite_url, tmp_path):
    create(sqlite_url, people_by([1, 2, 3]), "people")
    queries = random_subsets(np.array([1, 2, 3]), 3, np.random.default_rng(0))
    missing = Bit("status = 'C' AND absent = 1")
    for questions, words in (
        (SqlQuestions("absent", ("Key",), SECRET, PLAIN), "no such table"),
        # SQLite would take a quoted name that is no column for a text.
        (SqlQuestions("people", ("no",), SECRET, PLAIN), "no column 'no'; the columns are Key, "),
        (SqlQuestions("people", ("Key",), missing, PLAIN), "no column 'absent'"),
    ):
        with pytest.raises(CountleakError, match=words):
            ask(queries, DatabaseTarget(sqlite_url, questions))
    (tmp_path / "none.db").write_text("no database, " * 99)
    target = DatabaseTarget(f"sqlite:///{tmp_path}/none.db", SqlQuestions("t", ("id",)))
    with pytest.raises(CountleakError, match="not a database") as caught:
        ask(queries, target)
    assert "\n" not in str(caught.value)
    away = "mysql+pymysql://me:hush@127.0.0.1:1/x?charset=utf8mb4"
    target = DatabaseTarget(away, SqlQuestions("t", ("id",)), ONCE)
    with pytest.raises(TargetError, match=r"refused.*check the address") as caught:
        ask(queries, target)
    assert "hush" not in f"{caught.value}{target}{target!r}"
    assert str(target) == "mysql+pymysql://me@127.0.0.1:1/x"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("mysql+pymysql://me@127.0.0.1/x", True),
        ("mysql+pymysql://me@localhost:3307/x?charset=utf8mb4", True),
        ("mysql+pymysql://me@[::1]/x", True),
        ("mysql+pymysql://me@db.example/x", False),
        ("mysql+pymysql://me@10.0.0.7/x", False),
        ("mysql+pymysql:///x", False),
        ("mysql+pymysql://me@localhost/x?host=db.example", False),
    ],
)
def test_which_addresses_are_this_machine(url, local):
    assert DatabaseTarget(url, SqlQuestions("t", ("id",))).is_local is local


def test_sql_servers_syntax():
    queries = random_subsets(id_array([("a", 1), ("b", 2)]), 20, np.random.default_rng(1))
    both = int(np.flatnonzero(queries.matrix.sum(axis=1) == 2)[0])
    key, secret = ("Branch No", "select"), Bit("active = true AND zip IN ('10001', '10002')")
    statement = SqlQuestions("dbo.loans", key, secret, PLAIN, "tsql").statement(queries, both)
    assert statement == (
        "SELECT COUNT(*) FROM (SELECT DISTINCT [Branch No] AS [Branch No], [select] AS [select] "
        "FROM [dbo].[loans] WHERE (([Branch No] = 'a' AND [select] = 1) OR ([Branch No] = 'b' AND "
        "[select] = 2)) AND ([active] = 1 AND [zip] IN ('10001', '10002'))) AS [people]"
    )
    assert parse_one(statement, dialect="tsql").sql("tsql") == statement
    digits = digit_queries(np.array([3, 9]), primes=1)
    single = SqlQuestions("dbo.loans", ("id",), Bit("s IS NOT NULL"), PLAIN, "tsql")
    assert single.statement(digits, 0) == (
        "SELECT COUNT(DISTINCT [id]) FROM [dbo].[loans] WHERE FLOOR(5 * POWER(([id] * 2), 0.5) + "
        "0.5) = FLOOR(5 * POWER(([id] * 2), 0.5)) AND NOT [s] IS NULL AND [id] BETWEEN 3 AND 9"
    )


def test_long_lists_and_oracle():
    ids = np.arange(5000)
    queries = random_subsets(ids, 2, np.random.default_rng(1))
    statement = SqlQuestions("loans", ("id",), SECRET, PLAIN, "oracle").statement(queries, 0)
    tree = parse_one(statement, dialect="oracle")
    from sqlglot import exp

    lists = [len(each.expressions) for each in tree.find_all(exp.In)]
    assert max(lists) == 1000
    assert sum(lists) == queries.matrix[0].sum()


def test_many_composite_keys_are_not_too_deep_for_sqlite(sqlite_url):
    ids = [(f"b{k // 50}", k % 50) for k in range(3000)]
    people = People(id_array(sorted(ids)), {"status": np.resize(["C", "B"], 3000)}, ("x", "y"))
    create(sqlite_url, people, "people")
    queries = random_subsets(people.ids, 3, np.random.default_rng(0))
    target = DatabaseTarget(sqlite_url, SqlQuestions("people", ("x", "y"), SECRET, PLAIN), ONCE)
    assert ask(queries, target).values.tolist() == truth(queries, people, SECRET)


MARIADB = os.environ.get("COUNTLEAK_MARIADB")
needs_mariadb = pytest.mark.skipif(
    MARIADB is None,
    reason="no MariaDB server; set COUNTLEAK_MARIADB to one's URL, mysql+pymysql://user:password@...",
)


@needs_mariadb
@pytest.mark.parametrize("ids", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("secret", SECRETS, ids=str)
def test_mariadb_counts_truly_whatever_the_ids(ids, secret):
    check_counts(MARIADB, ids, secret)


@needs_mariadb
def test_mariadb_is_only_read_not_for_ever_and_asked_again_when_cut_off():
    people = people_by([1, 2, 3])
    create(MARIADB, people, "people")
    questions = SqlQuestions("people", ("Key",), SECRET, PLAIN)
    target = DatabaseTarget(MARIADB, questions, RequestLimits(seconds=1))
    connection = target.connect()
    with pytest.raises(TargetError, match="READ ONLY"):
        connection.ask("DELETE FROM people")
    with pytest.raises(TargetError, match="max_statement_time"):
        connection.ask("SELECT count(*) FROM people WHERE sleep(20) = 0")
    connection.close()
    queries = random_subsets(people.ids, 30, np.random.default_rng(0))
    admin = create_engine(MARIADB)
    heard = []
    with admin.connect() as own:
        for number, batch in enumerate(target.answer(queries, np.arange(30))):
            heard += batch.values.tolist()
            if number in (5, 11):
                mine = own.execute(text("SELECT connection_id()")).scalar()
                others = own.execute(text("SELECT id FROM information_schema.processlist"))
                for (other,) in others.fetchall():
                    if other != mine:
                        own.execute(text(f"KILL {other}"))
    admin.dispose()
    assert heard == truth(queries, people, SECRET)
    wrong = MARIADB.replace("@", "x@", 1)
    with pytest.raises(TargetError, match="Access denied") as caught:
        ask(queries, DatabaseTarget(wrong, questions))
    assert "\n" not in str(caught.value)
