"""The wire gives the same bits as the engine in process; a plain PostgreSQL true counts."""

import numpy as np
import pytest

from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Journal
from countleak.audit.run import ask, ask_into, reconstruct
from countleak.audit.scores import score
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.retries import Retries
from countleak.audit.targets.sql import DIFFIX, PLAIN, SqlQuestions
from countleak.diffix.server.background import serve_columns
from countleak.errors import InputError, Refused, TargetError
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load, url

SECRET = Bit("status = 'C'")
QUESTIONS = SqlQuestions("loans", ("client_id",), SECRET)


def same(found, expected):
    return np.array_equal(found.values, expected.values, equal_nan=True)


@pytest.mark.parametrize("connections", [1, 3])
def test_the_wire_gives_the_bits_of_the_engine(address, bank, connections):
    queries = digit_queries(bank.between(2000, 2999).ids).take(np.arange(0, 3500, 9))
    over_wire = ask(queries, PostgresTarget(address, QUESTIONS, RequestLimits(connections)))
    assert same(over_wire, ask(queries, Diffix(bank, SECRET, salt=salt_number(0))))


@pytest.mark.slow
def test_the_whole_attack_over_the_wire(address, bank):
    people = bank.between(2000, 2999)
    run = reconstruct(digit_queries(people.ids), PostgresTarget(address, QUESTIONS))
    inside = ask(run.transcript.queries, Diffix(bank, SECRET, salt=salt_number(0)))
    assert same(run.transcript, inside)
    assert score(run.guess, people.truth(SECRET)).accuracy > 0.95


def test_a_suppressed_count_is_marked(address, bank):
    few = random_subsets(bank.ids[:3], 4, np.random.default_rng(1))
    found = ask(few, PostgresTarget(address, QUESTIONS))
    assert same(found, ask(few, Diffix(bank, SECRET, salt=salt_number(0))))
    assert not found.released.any()


@pytest.fixture
def plain(postgres, bank):
    load(postgres.connection, "loans", bank.all_columns)
    return url(postgres)


def test_a_plain_database_counts_truly_and_its_0_is_a_count(plain, postgres, bank):
    people = bank.between(2000, 2999)
    queries = digit_queries(people.ids, primes=2, exponents=(0.7, 1.9), arithmetic=postgres)
    exact = queries.dot(people.truth(SECRET).astype(float))
    questions = SqlQuestions("loans", ("client_id",), SECRET, PLAIN)
    found = ask(queries, PostgresTarget(plain, questions, RequestLimits(2)))
    assert np.array_equal(found.values, exact)
    nobody = SqlQuestions("loans", ("client_id",), Bit("status = 'none'"), PLAIN)
    assert (ask(queries, PostgresTarget(plain, nobody)).values == 0).all()
    hidden = SqlQuestions("loans", ("client_id",), nobody.secret, DIFFIX)
    assert not ask(queries, PostgresTarget(plain, hidden)).released.any()


def test_sessions_only_read_and_not_for_ever(plain):
    connection = PostgresTarget(plain, QUESTIONS, RequestLimits(seconds=1)).connect()
    with pytest.raises(TargetError, match="read-only transaction"):
        connection.ask("CREATE TABLE other (x int)")
    with pytest.raises(TargetError, match="statement timeout"):
        connection.ask("SELECT pg_sleep(20)")
    with pytest.raises(TargetError, match="is no count"):
        connection.ask("SELECT 'many'")
    connection.close()


def test_faults_are_one_line(plain, address, bank):
    queries = digit_queries(bank.between(2000, 2999).ids, primes=1)
    with pytest.raises(TargetError, match='relation "absent" does not exist'):
        ask(queries, PostgresTarget(plain, SqlQuestions("absent", ("client_id",), SECRET)))
    with pytest.raises(Refused, match="ask about `loans`"):
        ask(queries, PostgresTarget(address, SqlQuestions("absent", ("client_id",), SECRET)))
    secret = "pass-with-words"
    closed = PostgresTarget(f"postgresql://me:{secret}@127.0.0.1:1/bank", QUESTIONS)
    with pytest.raises(TargetError, match="onnection refused") as caught:
        ask(queries, closed)
    assert "\n" not in str(caught.value)
    assert secret not in f"{caught.value}{closed}{closed!r}"
    with pytest.raises(InputError, match="cannot be read") as caught:
        PostgresTarget(f"postgresql://me:{secret}%zz@host/bank", QUESTIONS)
    assert secret not in str(caught.value)


def test_a_server_that_dies_midway_leaves_what_came(bank, tmp_path):
    people = bank.between(2000, 2999)
    queries = digit_queries(people.ids)
    path = tmp_path / "answers.jsonl"
    known = []
    with serve_columns(bank.all_columns, "client_id", tmp_path, salt_number(0), "18.1") as first:
        limits = RequestLimits(retries=Retries(0))
        batches = PostgresTarget(first.postgres, QUESTIONS, limits).answer(queries, np.arange(3500))
        known.append(next(batches))
    with pytest.raises(TargetError, match=r"lost .*run it again to resume"):
        known += batches
    begun = Answers.join(known)
    assert 0 < len(begun) < 3500
    few = queries.take(np.arange(200))
    with serve_columns(bank.all_columns, "client_id", tmp_path, salt_number(0), "18.1") as again:
        target = PostgresTarget(again.postgres, QUESTIONS)
        ask_into(Journal(path, few, SECRET, "the same"), target, limit=70)
        done = ask_into(Journal(path, few, SECRET, "the same"), target)
    assert len(done) == 200
    before = begun.query[begun.query < 200]
    assert np.array_equal(done.values[before], begun.values[: before.size], equal_nan=True)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("postgresql://me@127.0.0.1/x", True),
        ("postgresql://me@localhost:5433/x", True),
        ("postgresql://me@[::1]/x", True),
        ("postgresql:///x?host=/tmp", True),
        ("postgresql://me@10.0.0.7/x", False),
        ("postgresql://me@db.example/x", False),
        ("postgresql://me@127.0.0.1,db.example/x", False),
        ("postgresql://me@localhost/x?hostaddr=10.0.0.7", False),
        ("postgresql:///x?service=elsewhere", False),
    ],
)
def test_which_addresses_are_this_machine(address, local, monkeypatch):
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    assert PostgresTarget(address, QUESTIONS).is_local is local


def test_the_environment_can_name_another_machine(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example")
    assert not PostgresTarget("postgresql:///x", QUESTIONS).is_local
