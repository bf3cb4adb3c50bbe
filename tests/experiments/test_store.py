import duckdb
import pytest

from countleak import InputError
from countleak.experiments.store import Store

RECORD = {"key": "a", "trial": {"sigma": 4.0}, "accuracy": 0.9}


def test_a_store_remembers_and_forgives_a_torn_line(tmp_path):
    path = tmp_path / "trials.jsonl"
    Store(path).append([RECORD])
    with path.open("a") as file:
        file.write('{"key":"b","tri')
    again = Store(path)
    assert list(again.records) == ["a"]
    again.append([{**RECORD, "key": "b"}])
    assert list(Store(path).records) == ["a", "b"]


def test_what_is_no_trial_is_reported_by_line(tmp_path):
    path = tmp_path / "trials.jsonl"
    Store(path).append([{"key": 3}])
    with pytest.raises(InputError, match="line 2: not a trial"):
        Store(path)


def test_duckdb_reads_it_as_it_is(tmp_path):
    path = tmp_path / "trials.jsonl"
    Store(path).append([RECORD, {**RECORD, "key": "b", "accuracy": 0.7}])
    statement = f"""SELECT trial.sigma, avg(accuracy) FROM '{path}' WHERE trial IS NOT NULL
                    GROUP BY ALL"""
    assert duckdb.sql(statement).fetchall() == [(4.0, pytest.approx(0.8))]
