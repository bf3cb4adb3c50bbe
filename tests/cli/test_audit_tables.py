"""Fronts that only group: the family is found by the probe, and nothing of their rules is told."""

import pytest
from sqlglot import exp

from tests.audit.targets.unseen import Front, unseen
from tests.diffix.databases.test_postgres import load, url


@pytest.fixture(scope="module")
def loans(postgres, bank):
    load(postgres.connection, "loans", bank.all_columns)
    yield url(postgres)
    postgres.connection.execute("DROP TABLE loans")


FRONTS = {
    "floor of two columns, and no row for what is hidden": Front(),
    "floor of three, and a row for what is merged": Front(
        frozenset({exp.Floor}), ways=3, hidden="merged", salt="another"
    ),
}


FLOORS, MERGED = FRONTS


def audit_of(run, at, *words):
    system = f"postgresql://me@127.0.0.1:{at.port}/bank"
    people = ("--people", "bank:7", "--known", "amount,duration", "--secret", "status = 'C'")
    return run("audit", "--no-report", system, "--table", "loans", *people, "--json", *words)


@pytest.mark.parametrize(
    "front",
    [FRONTS[FLOORS], pytest.param(FRONTS[MERGED], marks=pytest.mark.slow)],
    ids=[FLOORS, MERGED],
)
def test_tables_of_an_unseen_front_give_nine_of_ten_secrets_away(run, loans, front):
    log = []
    with unseen(front, loans, log) as at:
        found = audit_of(run, at, "--fail-above", 0.5)
    assert found.code == 1, found.err
    assert found.json["family"] == "tables"
    assert found.json["probe"]["functions"][0] == "floor"
    assert found.json["probe"]["ways"] == front.ways
    assert found.json["probe"]["merged"] == (front.hidden == "merged")
    assert found.json["accuracy"] >= 0.9
    # What it says of the cost is what it asked.
    assert found.json["queries"] == len(log)


def test_a_front_that_hides_everything_is_no_all_clear(run, loans):
    with unseen(Front(hides_about=1000.0), loans) as at:
        found = audit_of(run, at, "-m", 40, "--fail-above", 0.0)
    assert found.code == 2
    assert "it shows no groups of 827 of 827 people" in found.err
