import numpy as np
import pytest

from countleak.attack.programs import Solution, Status
from countleak.errors import InputError
from countleak.lab.experiments import attacks
from countleak.lab.experiments.attacks import run_batch, solve_trials
from countleak.lab.experiments.trials import (
    Setting,
    Trial,
    batches,
    grid,
    record_key,
)

SMALL = {"n": 20, "queries": 100, "sigma": 1.0}


def test_a_grid_is_every_combination_once():
    found = grid(n=(10, 20), sigma=(1.0, 2.0), number=range(3))
    assert len(found) == len(set(found)) == 12
    assert {trial.queries for trial in found} == {2550}
    with pytest.raises(InputError, match="there is no field 'colour'"):
        grid(colour="red")


@pytest.mark.parametrize(
    "wrong",
    [
        {"family": "dice"},
        {"decoder": "magic"},
        {"n": 1},
        {"n": 6000},
        {"queries": 10**20},
        {"sigma": 0.0},
        {"sigma": np.inf},
        {"sigma": 1e308},
        {"multiplier": -1.0},
        {"multiplier": np.inf},
        {"world": "presence", "n": 50},
        {"mechanism": "round", "sigma": 2.5},
        {"family": "signs", "sign_noise": "double", "decoder": "dini-centre"},
    ],
    ids=str,
)
def test_trials_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        Trial(**wrong)


def test_batches_share_queries_and_keep_shared_answers_together():
    trials = grid(queries=(100, 150), decoder=("dmt", "dini-centre"), number=range(50), n=10)
    found = batches(trials, largest=20)
    assert sorted(t.key for b in found for t in b) == sorted(t.key for t in trials)
    assert all(len({t.query_fields for t in batch}) == 1 and len(batch) <= 20 for batch in found)
    for batch in found:
        numbers = [t.number for t in batch]
        assert all(numbers.count(number) == 2 for number in numbers)


def outcome(record):
    rests_on = {k: v for k, v in record["rests_on"].items() if k != "seconds"}
    return {**{k: v for k, v in record.items() if k != "rests_on"}, "rests_on": rests_on}


@pytest.mark.parametrize("queries", [100, 77])
@pytest.mark.parametrize("family", ["digits", "subsets", "signs"])
def test_a_trial_comes_out_the_same_alone_or_in_any_company(family, queries):
    trials = grid(n=20, sigma=1.0, queries=queries, family=family, multiplier=4.0,
                  decoder=("dmt", "dini-vertex"), number=range(4))  # fmt: skip
    together = {
        record["key"]: outcome(record)
        for b in batches(trials)
        for record in run_batch(b, Setting())
    }
    for trial in reversed(trials):
        (alone,) = run_batch([trial], Setting())
        assert outcome(alone) == together[record_key(trial, Setting())]


def test_another_seed_draws_other_noise_and_other_people():
    trial = Trial(n=40, queries=60, sigma=8.0)
    first, second = (run_batch([trial], Setting(seed))[0] for seed in (0, 1))
    assert first["rests_on"]["certificate"] != second["rests_on"]["certificate"]


@pytest.mark.parametrize(
    "fields",
    [
        {"mechanism": "gaussian"},
        {"mechanism": "laplace"},
        {"mechanism": "uniform", "sigma": 2.0},
        {"mechanism": "round", "sigma": 3.0},
        {"family": "signs", "sign_noise": "two-subsets", "suppression": False},
        {"family": "signs", "sign_noise": "double"},
        {"decoder": "dmt-integer"},
        {"suppression": False},
        {"queries": 77},
    ],
    ids=str,
)
def test_every_kind_of_trial_runs_and_is_certified(fields):
    (record,) = run_batch([Trial(**{**SMALL, **fields})], Setting())
    assert record["accuracy"] > 0.5
    assert record["rests_on"]["certificate"]["kind"] == "Bracket"


def test_infeasible_is_no_accuracy_and_every_smaller_bound_is_infeasible_too():
    trials = grid(n=30, queries=400, decoder="dini-vertex", multiplier=(0.5, 1.5, 2.5, 5.0))
    records = run_batch(trials, Setting())
    feasible = [record["accuracy"] is not None for record in records]
    assert feasible == sorted(feasible)
    assert not feasible[0]
    assert feasible[-1]
    assert records[0]["rests_on"]["certificate"]["proven"]


def test_the_authors_people_with_data(shared):
    data = str(shared / "data" / "cohen-nissim")
    trials = [Trial(**SMALL), Trial(world="presence", n=101, queries=3500)]
    for trial in trials:
        (record,) = run_batch([trial], Setting(data=data))
        assert record["data"] == "authors"
        assert record["accuracy"] > 0.9


def test_a_doubled_noise_hides_more_than_a_direct_one():
    means = {
        noise: np.mean(
            [
                run_batch([t], Setting())[0]["accuracy"]
                for t in grid(family="signs", n=60, queries=200, sign_noise=noise, number=range(5))
            ]
        )
        for noise in ("direct", "two-subsets", "double")
    }
    assert means["direct"] > means["two-subsets"] > means["double"]


def test_a_trial_that_cannot_be_solved_says_so_and_stops_nobody(monkeypatch):
    def give_up(batch, problems):
        stopped = Solution(None, None, Status.TROUBLE, 0, 0.0, "nobody")
        return [stopped, *solve_trials(batch[1:], problems[1:])]

    monkeypatch.setattr(attacks, "solve_trials", give_up)
    first, second = run_batch(grid(**SMALL, number=range(2)), Setting())
    assert first["accuracy"] is None
    assert "numerical trouble" in first["failed"]
    assert second["accuracy"] > 0.5
    assert "failed" not in second


def test_the_key_tells_whose_people(shared):
    data = str(shared / "data" / "cohen-nissim")
    keys = {record_key(Trial(), setting) for setting in (Setting(), Setting(1), Setting(data=data))}
    assert len(keys) == 3
