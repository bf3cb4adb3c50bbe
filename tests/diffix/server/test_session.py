"""What statements do in a session."""

import asyncio

import pytest

from countleak.diffix.server.errors import Failure
from countleak.diffix.server.results import FLOAT8, INT8, TEXT
from countleak.diffix.server.session import Session
from countleak.diffix.sql.parser import split
from countleak.errors import Refused
from tests.diffix.conftest import loans_engine
from tests.diffix.server.conftest import OR, QUERY
from tests.diffix.server.in_process import InProcess, run, texts


@pytest.fixture(scope="module")
def served(bank):
    return InProcess(loans_engine(bank))


@pytest.fixture
def session(served):
    return Session(served, "analyst", {"application_name": "Test", "client_encoding": "utf-8"})


@pytest.mark.parametrize(
    ("sql", "tag"),
    [
        ("BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN"),
        ("START TRANSACTION READ ONLY", "BEGIN"),
        ("COMMIT", "COMMIT"),
        ("end", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("ABORT", "ROLLBACK"),
        ("SAVEPOINT a", "SAVEPOINT"),
        ("RELEASE SAVEPOINT a", "RELEASE"),
        ("SET search_path TO public", "SET"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"),
        ("SET LOCAL statement_timeout = 0", "SET"),
        ("SET TIME ZONE 'UTC'", "SET"),
        ("RESET ALL", "RESET"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("DEALLOCATE ALL", "DEALLOCATE ALL"),
        ("UNLISTEN *", "UNLISTEN"),
        ("CLOSE ALL", "CLOSE"),
    ],
)
def test_words_to_the_session_are_heard(session, sql, tag):
    assert run(session, sql).tag == tag


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("standard_conforming_strings", "on"),
        ("TRANSACTION ISOLATION LEVEL", "read committed"),
        ("server_version", "14.0"),
        ("application_name", "Test"),
        ("DATESTYLE", "ISO, MDY"),
        ("time zone", "UTC"),
    ],
)
def test_settings_are_shown(session, name, value):
    assert texts(run(session, f"SHOW {name}")) == [(value,)]


def test_settings_are_set_and_reset(session):
    result = run(session, "SET application_name = 'My App'")
    assert result.changed == {"application_name": "My App"}
    assert texts(run(session, "SHOW application_name")) == [("My App",)]
    assert run(session, "RESET application_name").changed == {"application_name": "Test"}
    run(session, "SET my.own TO 5")
    assert texts(run(session, "SHOW my.own")) == [("5",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW nothing",
        "SET server_version = '99'",
        "SET client_encoding = 'LATIN1'",
        "SET standard_conforming_strings = off",
        "SET x",
        f"SET {'x' * 2000} = 1",
    ],
)
def test_settings_that_make_no_sense_are_refused(session, sql):
    with pytest.raises(Failure):
        run(session, sql)


def test_a_failed_transaction_waits_for_its_end(session):
    run(session, "BEGIN")
    session.state.fail()
    for sql in (QUERY, "SELECT 1", "SET x = 1", "SAVEPOINT a"):
        with pytest.raises(Failure, match="transaction is aborted"):
            run(session, sql)
    assert run(session, "COMMIT").tag == "ROLLBACK"
    assert session.state.status == "I"
    assert run(session, QUERY).rows


def test_fields_are_known_before_a_question_is_asked(session):
    sql = (
        "SELECT count(*), status, floor(amount / 1000), avg(amount) AS mean, sum(duration) "
        "FROM loans WHERE client_id BETWEEN $1 AND $2 GROUP BY status, floor(amount / 1000), "
        "duration"
    )
    described = asyncio.run(session.describe(sql))
    assert [(field.name, field.type) for field in described.fields] == [
        ("count", INT8),
        ("status", TEXT),
        ("FLOOR(amount / 1000)", FLOAT8),
        ("mean", FLOAT8),
        ("sum", INT8),
    ]
    result = run(session, sql, [0, 10_000])
    assert result.fields == described.fields
    assert all(len(row) == 5 for row in texts(result))


def test_the_star_of_merged_groups_is_null_among_numbers(session):
    sql = "SELECT status, amount, count(*) FROM loans GROUP BY status, amount"
    last = texts(run(session, sql))[-1]
    assert last[:2] == ("*", None)
    assert int(last[2]) > 500


def test_the_schema_public_may_be_named(session):
    assert run(session, QUERY.replace("loans", "public.loans")).rows == run(session, QUERY).rows


@pytest.mark.parametrize(
    "sql",
    [
        OR,
        "SELECT * FROM loans",
        "SELECT count(*) FROM nothing",
        "SELECT count(*) FROM public.nothing",
        "INSERT INTO loans VALUES (1)",
        "DROP TABLE loans",
        "EXPLAIN SELECT count(*) FROM loans",
        "SELECT (",
        "'",
        "SELECT count(*) FROM loans; SELECT count(*) FROM loans",
        "(" * 5000,
        "PREPARE a AS SELECT 1",
        "COPY loans TO STDOUT",
    ],
)
def test_what_diffix_does_not_answer_is_refused_in_its_words(session, sql):
    with pytest.raises(Refused):
        run(session, sql)


def test_an_empty_statement_is_nothing(session):
    assert asyncio.run(session.describe(" ; -- nothing\n")) is None
    assert asyncio.run(session.run(" ; -- nothing\n")) == (None, ())


def test_statements_are_parted_at_their_semicolons(session):
    parts = ["SELECT ';'", "-- a;b\nSELECT 2 /* ; */"]
    assert [source.text for source in split(";".join([*parts, ""]))] == parts
