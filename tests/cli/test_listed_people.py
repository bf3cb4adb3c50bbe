"""People whom nobody names: the table of a database lists them itself."""

import random
import sqlite3

import duckdb
import pytest

CLINIC = ("sqlite:///clinic.db", "--table", "Patients")
ID = ("--id", "Select")
HIV = ("--secret", "diagnosis = 'hiv'")


@pytest.fixture(autouse=True)
def clinic(tmp_path):
    """A table with a reserved word for a column, NULLs and dates; two rows are nobody's."""
    rng = random.Random(1)
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute(
            'CREATE TABLE "Patients" ("Select" integer, diagnosis text, age int, born date)'
        )
        rows = [
            (
                at + 10,
                rng.choice(["flu", "hiv", "ok", None]),
                rng.choice([None, 20, 30, 47]),
                f"19{rng.randint(40, 99)}-0{rng.randint(1, 9)}-15",
            )
            for at in range(120)
        ]
        nobody = [(None, "hiv", 20, "1980-01-15")] * 2
        connection.executemany('INSERT INTO "Patients" VALUES (?, ?, ?, ?)', [*rows, *nobody])
    connection.close()


@pytest.mark.parametrize(
    ("verb", "words", "complaint"),
    [
        ("audit", ("sqlite:///clinic.db",), "name --table, --id and --secret; there is Patients ("),
        ("audit", CLINIC, "name --id and --secret; there is Patients (Select, diagnosis, age,"),
        ("audit", (*CLINIC, *ID), "name --secret; there is Patients"),
        ("probe", CLINIC, "name --id; there is Patients"),
        ("probe", (*CLINIC, *ID, "--dry-run"), "--dry-run sends nothing, so it reads no ids"),
        ("audit", (*CLINIC, *ID, *HIV, "--dry-run"), "--dry-run sends nothing, so it reads no ids"),
        ("audit", (*CLINIC, *ID, *HIV, "--known", "agee"), "there is no column 'agee'; there is"),
        ("audit", (*CLINIC, "--id", "pid", *HIV), "there is no column 'pid'; there is Patients ("),
        ("audit", (*CLINIC, *ID, "--secret", "diagnosis"), "name them like diagnosis IN"),
    ],
    ids=str,
)
def test_what_is_not_named_is_asked_for_with_what_there_is(run, tmp_path, verb, words, complaint):
    said = run(verb, *words)
    assert said.code == 2
    assert complaint in said.err.splitlines()[-1]
    assert not (tmp_path / "audit").exists()


def test_of_many_tables_the_one_that_is_named_is_shown(run, tmp_path):
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        for at in range(12):
            connection.execute(f"CREATE TABLE a{at:02d} (x int)")
    connection.close()
    assert "a08 (x), ..." in run("audit", CLINIC[0]).err
    said = run("audit", *CLINIC).err
    assert "there is Patients (Select, diagnosis, age, born)" in said
    assert "a00" not in said


def test_a_plain_database_is_audited_by_one_command(run, tmp_path):
    said = run("audit", "--no-report", *CLINIC, *ID, *HIV, "-m", 300, "--fail-above", 0.2)
    assert said.code == 1
    assert "Probed with" in said.out
    assert "120 people's values are implied, if every answer is the exact count" in said.out
    rows = sqlite3.connect(tmp_path / "clinic.db")
    told = run("audit", "--no-report", *CLINIC, *ID, *HIV, "-m", 300, "--json").json
    assert told["accuracy"] is None
    assert told["implied"] == 120
    rows.close()


def test_its_tables_are_asked_in_one_statement_each(run):
    known = ("--known", "age,born", "--family", "tables", "-m", 5)
    said = run("audit", "--no-report", *CLINIC, *ID, *HIV, *known)
    assert said.code == 0
    assert said.err.splitlines()[0] == "5 tables to sqlite:///clinic.db, like"
    assert "GROUP BY 1" in said.err


def test_a_probe_gets_by_columns_with_nulls(run):
    found = run("probe", *CLINIC, *ID, "--known", "age,born", "--json").json
    assert found["family"] == "modular"
    assert not found["noisy"]
    tables = next(each for each in found["tried"] if each["family"] == "tables")
    assert set(tables["functions"]) == {"", "floor"}
    assert tables["noise"] == 0


def test_of_a_million_people_some_are_read_at_once_and_all_are_too_many(run, tmp_path):
    with sqlite3.connect(tmp_path / "big.db") as connection:
        connection.execute("CREATE TABLE people (id integer PRIMARY KEY, ill integer)")
        rows = ((at, at * 2654435761 >> 8 & 1) for at in range(1_000_000))
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    connection.close()
    words = (
        "audit",
        "--no-report",
        "sqlite:///big.db",
        "--table",
        "people",
        "--id",
        "id",
        "--secret",
        "ill = 1",
    )
    many = run(*words)
    assert many.code == 2
    assert "lists more than 20,000 people; choose some by a range of ids" in many.err
    few = run(*words, "--between", 5000, 5059, "--family", "subsets", "-m", 150, "--json")
    assert few.json["implied"] == 60


def test_a_file_that_is_a_database_and_a_table_that_is_not_there(run):
    plain = run("audit", "clinic.db")
    assert plain.code == 2
    assert "clinic.db is a database; write sqlite:///clinic.db" in plain.err
    absent = run("audit", "sqlite:///clinic.db", "--table", "nobody", *ID, *HIV)
    assert absent.code == 2
    assert "there is no table 'nobody'; there is Patients (Select, diagnosis" in absent.err


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_people_of_composite_keys_and_dates_are_asked_by_tables(run, tmp_path, kind):
    if kind == "duckdb":
        connection = duckdb.connect(tmp_path / "odd.duckdb")
        word = "duckdb:///odd.duckdb"
    else:
        connection = sqlite3.connect(tmp_path / "odd.db")
        word = "sqlite:///odd.db"
    connection.execute('CREATE TABLE visits (clinic int, "No" text, "select" text, day date)')
    rows = [(at % 3, f"n{at}", "yn"[at % 7 < 3], f"2020-0{1 + at % 2}-11") for at in range(60)]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    secret = ("--secret", "\"select\" = 'y'", "--known", "day")
    said = run("probe", word, "--table", "visits", "--id", "clinic,No", "--known", "day", "--json")
    tables = next(each for each in said.json["tried"] if each["family"] == "tables")
    assert (tables["refused"], tables["noise"]) == (None, 0)
    words = (
        "audit",
        "--no-report",
        word,
        "--table",
        "visits",
        "--id",
        "clinic,No",
        *secret,
        "--json",
    )
    assert run(*words, "--family", "tables").json["family"] == "tables"
