from dataclasses import replace

import pytest

from countleak.attack.noise import Noise, Shape
from countleak.audit.budget.advice import Limits, advise
from countleak.audit.budget.evolution import SUBSETS, Attack, decoders_for
from countleak.audit.report.remedy import ACCEPTED, Setting, remedy_for
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, Uniform

SETTING = Setting(people=100, answers=800, family="subsets", prior=0.5, sd=4.0)


@pytest.mark.parametrize(
    ("noise", "mechanism"),
    [
        (Noise(4.0), Gaussian(4.0)),
        (Noise(4.0, shape=Shape.LAPLACE), Laplace(4.0)),
        (Noise(shape=Shape.UNIFORM, bound=7), Uniform(7)),
        (Noise(shape=Shape.EXACT, base=5), RoundedToBase(5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_what_budget_says(noise, mechanism):
    found = remedy_for(SETTING, noise, 0.2)
    attack = Attack(100, 800, mechanism, 0.5, SUBSETS)
    advice = advise(attack, decoders_for(mechanism)[-1], Limits(0.2))
    assert found.allowed == 0.2
    assert found.answers == advice.queries_allowed
    assert found.noise_sd == (advice.sigma_needed or advice.normal_sigma_needed)
    assert found.in_place == (advice.sigma_needed is None)
    assert not found.noise_suffices
    assert found.base == advice.base_needed
    assert found.epsilon == advice.epsilon
    assert found.typical_count == 25


def test_noise_that_is_enough_is_said_to_be():
    found = remedy_for(replace(SETTING, sd=40.0), Noise(40.0), 0.2)
    assert found.noise_suffices
    assert found.noise_sd < found.noise_sd_now == 40.0
    assert found.answers > SETTING.answers


def test_what_has_no_closed_form_says_why():
    tables = Setting(100, 800, "tables", 0.5, 4.0)
    assert "not for tables" in remedy_for(tables, Noise(4.0), None).why
    assert "known law" in remedy_for(SETTING, None, None).why
    assert remedy_for(SETTING, None, None).allowed == ACCEPTED
    few = Setting(100, 10, "subsets", 0.5, 0.0)
    found = remedy_for(few, Noise(shape=Shape.EXACT), None)
    assert found.why
    assert found.answers is None
