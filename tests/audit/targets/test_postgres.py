"""The wire gives the same bits as the engine in process; a plain PostgreSQL true counts."""

import numpy as np
import pytest
from countleak.audit.targets.counts import DIFFIX, PLAIN, Counts
from countleak.audit.targets.several import Manners

import countleak as cl
from countleak.audit.targets.postgres import PostgresTarget
from countleak.diffix.server.background import serve_columns
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load, url

SECRET = cl.Bit("status = 'C'")
COUNTS = Counts("loans", "client_id", SECRET)


def same(found, expected):
    return np.array_equal(found.values, expected.values, equal_nan=True)


@pytest.mark.parametrize("connections", [1, 3])
def test_the_wire_gives_the_bits_of_the_engine(address, bank, connections):
    queries = cl.digit_queries(bank.between(2000, 2999).ids).take(np.arange(0, 3500, 9))
    over_wire = cl.ask(queries, PostgresTarget(address, COUNTS, Manners(connections)))
    assert same(over_wire, cl.ask(queries, cl.Diffix(bank, SECRET, salt=salt_number(0))))


@pytest.mark.slow
def test_the_whole_attack_over_the_wire(address, bank):
    people = bank.between(2000, 2999)
    run = cl.reconstruct(cl.digit_queries(people.ids), PostgresTarget(address, COUNTS))
    inside = cl.ask(run.queries, cl.Diffix(bank, SECRET, salt=salt_number(0)))
    assert same(run.answers, inside)
    assert cl.score(run.guess, people.truth(SECRET)).accuracy > 0.95


def test_a_suppressed_count_is_marked(address, bank):
    few = cl.random_subsets(bank.ids[:3], 4, np.random.default_rng(1), "client_id")
    found = cl.ask(few, PostgresTarget(address, COUNTS))
    assert same(found, cl.ask(few, cl.Diffix(bank, SECRET, salt=salt_number(0))))
    assert not found.released.any()


@pytest.fixture
def plain(postgres, bank):
    load(postgres.connection, "loans", {bank.id_column: bank.ids, **bank.columns})
    return url(postgres)


def test_a_plain_database_counts_truly_and_its_0_is_a_count(plain, postgres, bank):
    people = bank.between(2000, 2999)
    queries = cl.digit_queries(people.ids, primes=2, exponents=(0.7, 1.9), arithmetic=postgres)
    exact = queries.dot(people.truth(SECRET).astype(float))
    counts = Counts("loans", "client_id", SECRET, PLAIN)
    found = cl.ask(queries, PostgresTarget(plain, counts, Manners(2)))
    assert np.array_equal(found.values, exact)
    nobody = Counts("loans", "client_id", cl.Bit("status = 'none'"), PLAIN)
    assert (cl.ask(queries, PostgresTarget(plain, nobody)).values == 0).all()
    hidden = Counts("loans", "client_id", nobody.condition, DIFFIX)
    assert not cl.ask(queries, PostgresTarget(plain, hidden)).released.any()


def test_sessions_only_read_and_not_for_ever(plain):
    line = PostgresTarget(plain, COUNTS, Manners(seconds=1)).line()
    with pytest.raises(cl.TargetError, match="read-only transaction"):
        line.ask("CREATE TABLE other (x int)")
    with pytest.raises(cl.TargetError, match="statement timeout"):
        line.ask("SELECT pg_sleep(20)")
    with pytest.raises(cl.TargetError, match="is no count"):
        line.ask("SELECT 'many'")
    line.close()


def test_faults_are_one_line(plain, address, bank):
    queries = cl.digit_queries(bank.between(2000, 2999).ids, primes=1)
    with pytest.raises(cl.TargetError, match='relation "absent" does not exist'):
        cl.ask(queries, PostgresTarget(plain, Counts("absent", "client_id", SECRET)))
    with pytest.raises(cl.Refused, match="ask about `loans`"):
        cl.ask(queries, PostgresTarget(address, Counts("absent", "client_id", SECRET)))
    secret = "pass-with-words"
    closed = PostgresTarget(f"postgresql://me:{secret}@127.0.0.1:1/bank", COUNTS)
    with pytest.raises(cl.TargetError, match="onnection refused") as caught:
        cl.ask(queries, closed)
    assert "\n" not in str(caught.value)
    assert secret not in f"{caught.value}{closed}{closed!r}"
    with pytest.raises(cl.InputError, match="cannot be read") as caught:
        PostgresTarget(f"postgresql://me:{secret}%zz@host/bank", COUNTS)
    assert secret not in str(caught.value)


def test_a_server_that_dies_midway_leaves_what_came(bank, tmp_path):
    people = bank.between(2000, 2999)
    queries = cl.digit_queries(people.ids)
    journal = tmp_path / "answers.jsonl"
    known = []
    columns = {bank.id_column: bank.ids, **bank.columns}
    with serve_columns(columns, bank.id_column, tmp_path, salt_number(0), "18.1") as first:
        batches = PostgresTarget(first.postgres, COUNTS).answer(queries, np.arange(3500))
        known.append(next(batches))
    with pytest.raises(cl.TargetError, match=r"lost .*run the same command again"):
        known += batches
    begun = cl.Answers.join(known)
    assert 0 < len(begun) < 3500
    few = queries.take(np.arange(200))
    with serve_columns(columns, bank.id_column, tmp_path, salt_number(0), "18.1") as again:
        target = PostgresTarget(again.postgres, COUNTS)
        cl.ask_into(journal, few, target, "the same", limit=70)
        done = cl.ask_into(journal, few, target, "the same")
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
    assert PostgresTarget(address, COUNTS).is_local is local


def test_the_environment_can_name_another_machine(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example")
    assert not PostgresTarget("postgresql:///x", COUNTS).is_local
