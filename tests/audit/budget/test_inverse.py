from dataclasses import replace

import pytest

from countleak.audit.budget.evolution import (
    DECODERS,
    SIGNS,
    Attack,
    OutOfTime,
    genie_bound,
)
from countleak.audit.budget.inverse import (
    accuracy_at,
    base_needed,
    queries_allowed,
    queries_needed,
    sigma_against_everyone,
    sigma_for,
    sigma_needed,
)
from countleak.audit.budget.prediction import predict
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, SimulatedDiffix
from countleak.errors import InputError, NoPrediction

LP, LS, BAYES, BOUNDED = DECODERS
THREE = (LP, LS, BAYES)
ATTACKS = [
    Attack(100, 700, Gaussian(4.0)),
    Attack(100, 700, Laplace(4.0), prior=0.3),
    Attack(80, 700, SimulatedDiffix(3.0)),
    Attack(500, 700, Gaussian(4.0), family=SIGNS),
]


@pytest.mark.parametrize("decoder", THREE, ids=lambda d: d.name)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_fewest_queries_reach_the_target_and_one_less_does_not(attack, decoder):
    needed = queries_needed(attack, decoder, 0.95)
    assert predict(replace(attack, queries=needed), decoder).accuracy >= 0.95
    assert predict(replace(attack, queries=needed - 1), decoder).accuracy < 0.95


@pytest.mark.parametrize("decoder", THREE, ids=lambda d: d.name)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_noise_needed_keeps_the_limit_and_hardly_less_breaks_it(attack, decoder):
    sigma = sigma_needed(attack, decoder, 0.2)

    def advantage(scale):
        mechanism = replace(attack.mechanism, sigma=sigma * scale)
        return predict(replace(attack, mechanism=mechanism), decoder).advantage

    assert advantage(1.0) <= 0.2 + 1e-9
    assert advantage(0.999) > 0.2


def test_queries_allowed_stop_short_of_the_limit():
    attack = Attack(100, 1, Gaussian(4.0))
    allowed = queries_allowed(attack, BAYES, 0.3)
    assert predict(replace(attack, queries=allowed), BAYES).advantage < 0.3
    assert predict(replace(attack, queries=allowed + 1), BAYES).advantage >= 0.3


def test_sigma_for_a_target_inverts_the_accuracy():
    attack = Attack(100, 726, Gaussian(1.0))
    sigma = sigma_for(attack, BAYES, 0.95)
    assert predict(replace(attack, mechanism=Gaussian(sigma)), BAYES).accuracy == pytest.approx(
        0.95, abs=1e-4
    )


def test_noise_against_everyone_is_where_the_genie_meets_the_limit():
    attack = Attack(100, 726, Gaussian(1.0), prior=0.4)
    sigma = sigma_against_everyone(attack, 0.1)
    bound = genie_bound(replace(attack, mechanism=Gaussian(sigma)))
    assert bound == pytest.approx(accuracy_at(0.1, 0.6), abs=1e-4)
    assert sigma > sigma_needed(attack, BAYES, 0.1)
    assert sigma_against_everyone(replace(attack, mechanism=Laplace(1.0)), 0.1) is None


def test_the_base_needed_is_the_least_that_keeps_the_limit():
    attack = Attack(1000, 1000, Gaussian(4.0))
    base = base_needed(attack, LS, 0.8)
    assert predict(replace(attack, mechanism=RoundedToBase(base)), LS).advantage <= 0.8
    assert predict(replace(attack, mechanism=RoundedToBase(base - 1)), LS).advantage > 0.8
    assert base_needed(attack, LS, 0.01) is None


def test_a_base_that_stops_least_squares_does_not_stop_one_who_uses_the_bound():
    attack = Attack(1000, 2000, Gaussian(4.0))
    base = base_needed(attack, LP, 0.8)
    assert base is not None
    assert predict(replace(attack, mechanism=RoundedToBase(base)), BOUNDED).advantage > 0.99
    assert base_needed(attack, BAYES, 0.8) is None


def test_impossible_wishes_are_refused():
    attack = Attack(100, 300, Gaussian(4.0), prior=0.2)
    with pytest.raises(InputError, match=r"guessing alone gets 0.8"):
        queries_needed(attack, BAYES, 0.7)
    with pytest.raises(InputError, match="an advantage lies between 0 and 1"):
        sigma_needed(attack, BAYES, 1.0)
    with pytest.raises(InputError, match="no standard deviation to choose"):
        sigma_for(Attack(100, 300, RoundedToBase(5)), BAYES, 0.9)
    # Nearly exact answers: what happens with few of them has no closed form.
    with pytest.raises(NoPrediction, match="queries or fewer"):
        queries_needed(Attack(1000, 1, Gaussian(0.5)), LP, 0.6)


def test_searches_give_up_in_time():
    attack = Attack(100, 300, Gaussian(4.0))
    for search in (queries_needed, sigma_for, base_needed):
        with pytest.raises(OutOfTime, match="take too long to predict"):
            search(attack, BAYES, 0.6, until=0.0)
