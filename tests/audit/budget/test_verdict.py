"""The plain words hold the figures of the advice, and never claim more than it."""

import pytest

from countleak.audit.budget.advice import Limits, advise
from countleak.audit.budget.evolution import DECODERS, Attack, subsets_of
from countleak.audit.budget.verdict import assumption, remedy, verdict
from countleak.audit.targets.simulated import Gaussian, RoundedToBase, Uniform

LP, _, BAYES, BOUNDED = DECODERS


def told(attack, decoder, limit=0.1):
    return advise(attack, decoder, Limits(limit))


def test_nearly_everyone_is_not_everyone():
    attack = Attack(1000, 8000, Gaussian(4.0))
    advice = told(attack, BAYES)
    assert 0.9995 < advice.prediction.accuracy < 1
    assert "get over 999 of 1,000 people's secrets right (99.9%)" in verdict(advice)


def test_what_keeps_the_limit_says_how_far_it_holds():
    advice = told(Attack(100, 300, Gaussian(60.0)), BAYES)
    assert "a prediction, no proof" in verdict(advice)
    assert f"up to {advice.queries_allowed} answers with this noise" in remedy(advice)
    assert f"down to SD {advice.sigma_needed:.3g}" in remedy(advice)


def test_the_remedy_keeps_the_limit_when_it_is_followed():
    for mechanism, decoder in ((Gaussian(4.0), BAYES), (Uniform(6), BOUNDED)):
        attack = Attack(100, 300, mechanism)
        followed = Attack(100, 300, told(attack, decoder).remedy)
        assert told(followed, BAYES).prediction.advantage == pytest.approx(0.1, abs=1e-3)


def test_one_answer_too_many_has_no_cap():
    advice = told(Attack(10, 20, Gaussian(1.1)), BAYES)
    assert advice.queries_allowed == 0
    assert "No cap on the answers does: the first one breaks the limit." in remedy(advice)


def test_a_base_that_would_do_is_named():
    advice = told(Attack(10_000, 40, Gaussian(1.0)), BAYES, limit=0.05)
    assert advice.base_needed is not None
    assert f"multiples of {advice.base_needed}" in remedy(advice)


def test_a_weaker_attack_is_no_all_clear():
    assert "by `lp`, not the strongest attack" in verdict(told(Attack(100, 300, Gaussian(4)), LP))


def test_sparse_questions_are_told_as_such():
    sparse = told(Attack(100, 300, Gaussian(4.0), family=subsets_of(0.2)), BAYES)
    assert "counts a random 20% of the people" in assumption(sparse)
    assert "where a count is about 10)" in remedy(sparse)


def test_rounded_counts_are_told_the_noise_that_would_do():
    advice = told(Attack(100, 60, RoundedToBase(5)), BOUNDED)
    assert f"Normal noise of SD {advice.normal_sigma_needed:.3g} or more" in remedy(advice)
    assert advice.epsilon_needed > 0
