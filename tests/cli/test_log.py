"""`countleak log`: the leak meter of a log of counts."""

from dataclasses import replace

import pytest

from countleak.attack.ledger.row_space import RowSpace

PEOPLE = "id,age,sex\n" + "".join(f"{n},{30 + n},{'FM'[n % 2]}\n" for n in range(1, 9))
LOG = "SELECT count(*) FROM people;\nSELECT count(*) FROM people WHERE age <> 31;\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "log.sql").write_text(LOG)
    (tmp_path / "partly.sql").write_text(LOG + "SELECT * FROM people;\n")


def test_too_many_alarms_end_with_1_and_gaps_with_2(run, files):
    words = ("log", "log.sql", "--database", "people.csv")
    assert run(*words).code == 0
    failed = run(*words, "--fail-above", 0)
    assert (failed.code, failed.out.splitlines()[-1]) == (1, "FAILED: 1 alarms; 0 are allowed")
    assert run(*words, "--fail-above", 1).out.endswith("passed: 1 alarms; 1 are allowed\n")
    words = ("log", "partly.sql", *words[2:])
    gaps = run(*words, "--fail-above", 1)
    assert gaps.code == 2
    assert "1 of 3 statements are not in the account, so it has not passed" in gaps.err
    assert run(*words, "--fail-above", 1, "--allow-unread").code == 0
    assert run(*words, "--fail-above", 0).code == 1


def test_alarms_without_a_printed_proof_count_as_well(run, files, monkeypatch):
    """A group may be pinned by more counts than are printed."""
    whole = RowSpace.pinned

    def unprinted(self, people, most):
        return [replace(pin, terms=()) for pin in whole(self, people, most)]

    monkeypatch.setattr(RowSpace, "pinned", unprinted)
    failed = run("log", "log.sql", "--database", "people.csv", "--fail-above", 0)
    assert failed.code == 1
    assert "1 of them follow from more counts than are printed." in failed.out


def test_json_has_the_equation_and_the_curve(run, files):
    record = run("log", "partly.sql", "--database", "people.csv", "--json").json
    (alarm,) = record["alarms"]
    assert alarm["terms"] == [
        {"query": 1, "condition": "everybody", "count": 8, "times": "1"},
        {"query": 2, "condition": "age <> 31", "count": 7, "times": "-1"},
    ]
    assert record["accounts"][0]["curve"] == [[2, 1]]
    assert record["unread"] == {"it shows rows, not counts": [3]}
    assert record["failed"] is False


def test_the_meter_is_drawn(run, files, tmp_path):
    assert run("log", "log.sql", "--database", "people.csv", "--figure", "meter.svg").code == 0
    assert "people pinned" in (tmp_path / "meter.svg").read_text()
    assert run("log", "log.sql", "--database", "people.csv", "--figure", "people.csv").code == 2
