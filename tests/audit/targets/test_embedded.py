"""DuckDB files, and CSV and Parquet files as tables: counted exactly, read only, closed."""

import duckdb
import numpy as np
import pytest

from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.audit.people import read_people
from countleak.audit.run import ask
from countleak.audit.targets.embedded import DuckTarget
from countleak.audit.targets.pool import RequestLimits
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError, NoCount, TargetError

SECRET = Bit("status = 'C' AND amount IS NOT NULL")


@pytest.fixture
def files(tmp_path):
    rows = [f"{k:03}x;{'ABC'[k % 3]};{k if k % 4 else ''}" for k in range(40)]
    (tmp_path / "loans.csv").write_text("\n".join(["Key;status;amount", *rows]) + "\n")
    with duckdb.connect(tmp_path / "bank.duckdb") as bank:
        bank.execute("CREATE SCHEMA office")
        bank.execute(f"CREATE TABLE office.loans AS FROM '{tmp_path}/loans.csv'")
        bank.execute(f"COPY office.loans TO '{tmp_path}/loans.parquet'")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "table"),
    [("loans.csv", "loans"), ("loans.parquet", "loans"), ("bank.duckdb", "office.loans")],
)
@pytest.mark.parametrize("connections", [1, 3])
def test_a_file_is_counted_exactly(files, name, table, connections):
    people = read_people(files / "loans.csv")
    queries = random_subsets(people.ids, 30, np.random.default_rng(0))
    questions = SqlQuestions(table, ("Key",), SECRET, PLAIN)
    target = DuckTarget(files / name, questions, RequestLimits(connections))
    exact = queries.dot(people.truth(SECRET))
    assert np.array_equal(ask(queries, target).values, exact)
    assert target.tables() == {table: ("Key", "status", "amount")}
    assert target.is_local


@pytest.mark.parametrize("name", ["loans.csv", "bank.duckdb"])
def test_nothing_else_can_be_reached_or_changed(files, name):
    target = DuckTarget(files / name, SqlQuestions("loans", ("Key",), SECRET, PLAIN))
    connection = target.connect()
    for statement in (
        f"SELECT count(*) FROM '{files}/loans.parquet'",
        f"COPY (SELECT 1) TO '{files}/out.csv'",
        f"ATTACH '{files}/other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ):
        with pytest.raises(TargetError):
            connection.ask(statement)
    if name == "bank.duckdb":
        with pytest.raises(TargetError, match="read-only"):
            connection.ask("DELETE FROM office.loans")
    for statement in ("SELECT 'many'", "SELECT 1, 2", "SELECT unnest([1, 2])"):
        with pytest.raises(NoCount):
            connection.ask(statement)
    connection.close()


def test_faults_are_one_line(files):
    questions = SqlQuestions("loans", ("Key",), SECRET, PLAIN)
    with pytest.raises(InputError, match=r"absent\.duckdb: no such file"):
        DuckTarget(files / "absent.duckdb", questions)
    (files / "bad.duckdb").write_text("no database" * 999)
    (files / "bad.parquet").write_text("no table")
    queries = random_subsets(np.array(["a", "b"]), 3, np.random.default_rng(0))
    for name in ("bad.duckdb", "bad.parquet"):
        with pytest.raises(InputError, match=r"bad\.") as caught:
            ask(queries, DuckTarget(files / name, questions))
        assert "\n" not in str(caught.value)
    absent = SqlQuestions("absent", ("Key",), SECRET, PLAIN)
    with pytest.raises(TargetError, match="absent does not exist"):
        ask(queries, DuckTarget(files / "loans.csv", absent))
