import json
import sys

import pytest

from countleak.audit.budget.advice import ROUNDING, Limits, advise
from countleak.audit.budget.evolution import DECODERS, DIGITS, Attack, predict
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, SimulatedDiffix
from countleak.errors import InputError

BAYES = DECODERS[2]


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
    advice = advise(Attack(100, 60, RoundedToBase(5)), BAYES, Limits())
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
    assert any("countleak[privacy]" in remark for remark in advice.remarks)
    assert advice.sigma_needed > 4


def test_bad_limits_are_refused():
    attack = Attack(100, 300, Gaussian(4.0))
    with pytest.raises(InputError, match="an advantage lies between 0 and 1"):
        advise(attack, BAYES, Limits(advantage=0.0))
    with pytest.raises(InputError, match="delta is 2"):
        advise(attack, BAYES, Limits(delta=2.0))
    with pytest.raises(InputError, match="epsilon is 0"):
        advise(attack, BAYES, Limits(epsilon=0.0))
