import json
import sys
from itertools import count

import pytest

from countleak.audit.budget import advice as advice_module
from countleak.audit.budget import evolution
from countleak.audit.budget.advice import ROUNDING, Limits, advise
from countleak.audit.budget.evolution import DECODERS, DIGITS, Attack
from countleak.audit.budget.prediction import predict
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    SimulatedDiffix,
    Uniform,
)
from countleak.errors import InputError

BAYES, BOUNDED = DECODERS[2:]


def test_the_advice_holds_every_answer_as_its_own_function_gives_it():
    attack = Attack(100, 726, Gaussian(4.0))
    advice = advise(attack, BAYES, Limits(), target=0.95)
    record = json.loads(json.dumps(advice.record()))
    assert record["accuracy"] == predict(attack, BAYES).accuracy
    assert record["sigma"] == 4.0
    assert record["queries"] == record["decoders"][2]["queries_for_target"] == 726
    assert [row["decoder"] for row in record["decoders"]] == ["lp", "ls", "bayes"]
    assert record["genie_bound"] > record["large_n_limit"] > record["accuracy"]
    assert record["sigma_against_everyone"] > record["sigma_needed"] > 4
    assert record["queries_allowed"] < 726
    assert record["epsilon"] > 1
    assert record["sigma_for_epsilon"] > 4
    assert not record["within_limit"]


def test_what_stays_within_the_limit_is_said_to():
    advice = advise(Attack(100, 726, Gaussian(100.0)), BAYES, Limits())
    assert advice.kept
    assert advice.sigma_needed < 100
    assert advice.queries_allowed >= 726


def test_rounded_counts_have_no_sigma_to_choose_no_epsilon_and_a_warning():
    advice = advise(Attack(100, 60, RoundedToBase(5)), BOUNDED, Limits())
    assert advice.sigma == pytest.approx(2**0.5)
    assert advice.sigma_needed is advice.epsilon is advice.sigma_for_epsilon is None
    assert ROUNDING in advice.remarks


def test_a_decoder_without_a_prediction_is_missing_and_the_reason_is_told():
    advice = advise(Attack(150, 50, Gaussian(1.0)), BAYES, Limits())
    assert advice.rows[0].accuracy is None
    assert any(remark.startswith("lp: 50 answers") for remark in advice.remarks)


def test_what_the_prediction_leaves_out_is_told():
    remarks = advise(Attack(100, 300, SimulatedDiffix(4.0), family=DIGITS), BAYES, Limits()).remarks
    assert any("low counts are suppressed" in remark for remark in remarks)
    assert any("digit queries" in remark for remark in remarks)


def test_a_missing_library_is_a_remark_and_the_rest_stands(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    advice = advise(Attack(100, 300, Laplace(4.0)), BAYES, Limits())
    assert advice.epsilon is None
    assert any("'.[privacy]'" in remark for remark in advice.remarks)
    assert advice.sigma_needed > 4


def test_bad_limits_are_refused():
    attack = Attack(100, 300, Gaussian(4.0))
    with pytest.raises(InputError, match="an advantage lies between 0 and 1"):
        advise(attack, BAYES, Limits(advantage=0.0))
    with pytest.raises(InputError, match="delta is 2"):
        advise(attack, BAYES, Limits(delta=2.0))
    with pytest.raises(InputError, match="epsilon is 0"):
        advise(attack, BAYES, Limits(epsilon=0.0))


def test_every_prediction_names_the_decoder_that_attains_it_or_none():
    after = advise(Attack(100, 450, Uniform(6)), BOUNDED, Limits())
    assert [row.decoder for row in after.rows] == ["lp", "ls", "bounded"]
    near = advise(Attack(100, 300, Uniform(6)), BOUNDED, Limits())
    assert [row.decoder for row in near.rows] == ["lp", "ls", None]
    record = json.loads(json.dumps(near.record()))
    assert record["decoder"] is record["within"] is None
    assert record["meant"] == "bounded"
    assert record["decoders"][2]["reaches"] == record["reaches"]
    assert near.rows[1].accuracy - 0.02 <= record["reaches"] < record["accuracy"]
    assert "no shipped decoder attains this" in record["why"]


def test_figures_that_take_too_long_are_left_out_and_the_rest_stands(monkeypatch):
    steps = []
    attack = Attack(100, 300, Gaussian(4.0))
    full = advise(attack, BAYES, Limits(), progress=lambda *at: steps.append(at))
    assert steps[0] == (0, 13) and steps[-1] == (13, 13)
    assert full.rounding_helps is False
    # A clock of steps, which has run out when the prediction is made.
    clock = count()
    monkeypatch.setattr(evolution, "monotonic", lambda: next(clock))
    predict(attack, BAYES)
    steps_of_one = next(clock)
    clock = count()
    monkeypatch.setattr(advice_module, "monotonic", lambda: steps_of_one - 20.0)
    late = advise(attack, BAYES, Limits(), time_limit=20.0)
    assert late.prediction == full.prediction
    assert late.queries_allowed is late.base_needed is late.rounding_helps is None
    assert late.epsilon == full.epsilon
    assert any("not all figures were found within 20 s" in each for each in late.remarks)
