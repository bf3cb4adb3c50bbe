"""Systems as they are named on the command line: databases, files, functions, programs."""

import sqlite3
import sys
from pathlib import Path

import duckdb
import pytest

from countleak.cli.target_options import TargetWord
from tests.audit.targets.test_command import PROGRAM

SECRET = ("--secret", "status = 'C'")
ENGINE = """
import csv
from pathlib import Path

LINES = Path("people.csv").read_text().splitlines()
ROWS = {int(row["client_id"]): row for row in csv.DictReader(LINES)}

def count(condition, members):
    return sum(ROWS[member]["status"] == "C" for member in members)

def always_17(condition):
    return 17

def talks(condition, members):
    print("counting")
    return count(condition, members)

def quits(condition):
    raise SystemExit(0)

value = 5
print("loaded")
"""


@pytest.fixture
def audited(run, tmp_path, bank, monkeypatch):
    """Runs an audit in a folder with the same people as files of all kinds."""
    people = bank.between(2000, 2300)
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "LOUD.CSV").write_text((tmp_path / "people.csv").read_text().replace(",", ";"))
    (tmp_path / "engine.py").write_text(ENGINE)
    (tmp_path / "broken.py").write_text("import absent_module")
    with duckdb.connect(tmp_path / "bank.duckdb") as connection:
        connection.execute(f"CREATE TABLE loans AS FROM '{tmp_path}/people.csv'")
        connection.execute(f"COPY loans TO '{tmp_path}/people.parquet'")
        rows = connection.execute("SELECT * FROM loans").fetchall()
    with sqlite3.connect(tmp_path / "clinic.db") as clinic:
        clinic.execute("CREATE TABLE loans (client_id INT, status TEXT, amount INT, duration INT)")
        clinic.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", rows)
    clinic.close()
    # What is imported here is forgotten after the test.
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield lambda target, *words: run(
        "audit",
        "--no-report",
        target,
        "--people",
        "people.csv",
        *SECRET,
        "--family",
        "subsets",
        "-m",
        60,
        *words,
    )
    for name in ("engine", "broken", "script"):
        sys.modules.pop(name, None)


LOANS = ("--table", "loans")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("sqlite:///clinic.db", LOANS),
        ("sqlite:///clinic.db", (*LOANS, "--connections", 2)),
        ("duckdb:///bank.duckdb", LOANS),
        ("duckdb:///people.csv", ()),
        ("duckdb:///people.parquet", ()),
        ("duckdb:///LOUD.CSV", ()),
        ("engine:count", ()),
        (
            "sqlite:///clinic.db",
            (*LOANS, "--count-sql", "SELECT 1.0 * COUNT(*) FROM {table} WHERE {condition}"),
        ),
    ],
)
def test_every_kind_of_system_is_audited(audited, target, words):
    done = audited(target, *words, "--json")
    assert done.code == 0, done.err
    assert done.json["accuracy"] == 1.0
    assert done.json["system"].startswith(target)


def test_a_program_is_audited_and_named_in_the_journal(audited, run, tmp_path):
    program = f"cmd:{sys.executable} {PROGRAM} good"
    shown = audited(program, "--dry-run")
    assert "Nothing was sent" in shown.err
    assert "evens" not in shown.err
    probed = run("probe", "cmd:/no/such/program", "--people", "people.csv", "--dry-run")
    assert probed.code == 0
    done = audited(program, "--json")
    assert "(evens" in done.json["system"]
    assert "(evens" in (tmp_path / "audit" / "answers.jsonl").read_text().splitlines()[0]


def test_what_a_function_prints_is_not_in_the_result_and_it_cannot_end_the_audit(audited, tmp_path):
    said = audited("engine:talks", "--json", "--no-report")
    assert said.json["accuracy"] == 1.0
    assert "counting" in said.err
    quits = audited("engine:quits", "--fail-above", 0.9, "--folder", "quits")
    assert quits.code == 2
    assert "engine:quits failed with SystemExit: 0; the answers so far are kept" in quits.err
    (tmp_path / "script.py").write_text("raise SystemExit(0)")
    script = audited("script:main", "--fail-above", 0.9)
    assert script.code == 2
    assert "script.py cannot be imported (SystemExit: 0)" in script.err


def test_one_answer_to_all_questions_is_no_all_clear(audited):
    done = audited("engine:always_17", "--fail-above", 0.9, "--no-report")
    assert done.code == 2
    assert "every answer is the same, so this audit shows nothing" in done.err


ERRORS = {
    ("sqlite:///clinic.db",): "there is loans (client_id, status, amount, duration)",
    ("duckdb:///bank.duckdb",): "there is loans (client_id, status, amount, duration)",
    ("sqlite:///absent.db", *LOANS): "absent.db: no such file",
    ("duckdb:///absent.csv",): "absent.csv: no such file",
    ("duckdb://",): "name the file to ask, like duckdb:///loans.duckdb",
    ("engine:absent",): "engine.py has no function of that name; it has count",
    ("engine:value",): "engine.py has no function of that name",
    ("absent:count",): "there is no module 'absent' in this folder",
    ("broken:count",): "broken.py needs the module 'absent_module'",
    ("duckdb:///clinic.db", *LOANS): "is a SQLite database; write sqlite:///clinic.db",
    ("mysql+pymysql://me:hush@127.0.0.1:1/x?nosuch=hush", *LOANS): "unexpected keyword",
    ("cmd:",): "name the program that answers",
    ("cmd:/no/such/program",): "cannot be started",
    ("mysql+pymysql://me:hush@db.example/x", *LOANS): "say who allows it with --authorised-by",
    ("sqlite:///clinic.db", *LOANS, "--count-sql", "SELECT 1"): "write {condition} there",
    ("engine:count", "--count-sql", "SELECT {condition}"): "does not apply",
    ("engine:count", "--data-source", "x"): "does not apply",
    ("people.csv", "--retry", "3"): "does not apply",
    ("sqlite:///clinic.db", "--table", "visits"): "no such table",
}


@pytest.mark.parametrize("words", ERRORS, ids=" ".join)
def test_what_cannot_be_asked_is_said_in_one_line(audited, words):
    done = audited(*words)
    assert done.code == 2
    line = done.err.splitlines()[-1]
    assert line.startswith("countleak: ")
    assert ERRORS[words] in line
    assert "hush" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("postgresql://me@h/x", "postgresql"),
        ("postgresql+psycopg://me@h/x", "database"),
        ("mysql://h/x", "database"),
        ("https://h", "http"),
        ("duckdb:///x.csv", "duckdb"),
        ("cmd:x", "command"),
        ("my.engine:count", "callable"),
        ("bank:7", "file"),
        ("bank:x", "file"),
        ("people.csv", "file"),
        ("diffix", "diffix"),
    ],
)
def test_what_kind_of_system_a_word_names(text, kind):
    assert TargetWord(text).kind == kind


def test_parquet_people_are_simulated(audited, run):
    done = run("audit", "--no-report", "people.parquet", *SECRET, "-m", 200, "--json")
    assert done.code == 0, done.err
    assert done.json["system"].endswith("of people, seed 0")
    assert Path("people.parquet").exists()
