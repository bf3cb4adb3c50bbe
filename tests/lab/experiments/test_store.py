from contextlib import closing

import duckdb
import pytest

from countleak.errors import InputError
from countleak.lab.experiments.store import Store

RECORD = {
    "key": "a",
    "trial": {"sigma": 4.0},
    "accuracy": 0.9,
    "baseline": 0.5,
    "people": 10,
    "rests_on": {},
}


def test_a_store_remembers_and_forgives_a_torn_line(tmp_path):
    path = tmp_path / "trials.jsonl"
    with closing(Store(path)) as store:
        store.append([RECORD])
    with path.open("a") as file:
        file.write('{"key":"b","tri')
    with closing(Store(path)) as again:
        assert list(again.records) == ["a"]
        again.append([{**RECORD, "key": "b"}])
    with closing(Store(path)) as third:
        assert list(third.records) == ["a", "b"]


def test_a_store_has_one_writer_at_a_time(tmp_path):
    path = tmp_path / "trials.jsonl"
    with closing(Store(path)), pytest.raises(InputError, match="another run is writing there"):
        Store(path)
    Store(path).close()


def test_a_store_without_trials_leaves_nothing_behind(tmp_path):
    Store(tmp_path / "new" / "runs" / "trials.jsonl").close()
    assert not list(tmp_path.iterdir())
    (tmp_path / "trials.jsonl").write_text("notes\n")
    with pytest.raises(InputError, match="not JSON"):
        Store(tmp_path / "trials.jsonl")
    assert (tmp_path / "trials.jsonl").read_text() == "notes\n"


def test_what_is_no_trial_is_reported_by_line(tmp_path):
    path = tmp_path / "trials.jsonl"
    with closing(Store(path)) as store:
        store.append([{"key": "a", "trial": 5}])
    with pytest.raises(InputError, match="line 2: not a trial"):
        Store(path)


def test_duckdb_reads_it_as_it_is(tmp_path):
    path = tmp_path / "trials.jsonl"
    with closing(Store(path)) as store:
        store.append([RECORD, {**RECORD, "key": "b", "accuracy": 0.7}])
    statement = f"""SELECT trial.sigma, avg(accuracy) FROM '{path}' WHERE trial IS NOT NULL
                    GROUP BY ALL"""
    assert duckdb.sql(statement).fetchall() == [(4.0, pytest.approx(0.8))]
