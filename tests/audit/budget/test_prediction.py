from dataclasses import replace

import pytest

from countleak.audit.budget.evolution import (
    DECODERS,
    SIGNS,
    Attack,
    OutOfTime,
    fixed_point,
    subsets_of,
)
from countleak.audit.budget.prediction import MEASURED, predict
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, Uniform

LP, LS, BAYES, BOUNDED = DECODERS


def test_advantage_runs_from_guessing_to_knowing():
    found = predict(Attack(100, 300, Gaussian(4.0), prior=0.2), BAYES)
    assert found.attack.baseline == 0.8
    assert found.advantage == pytest.approx((found.accuracy - 0.8) / 0.2)


def jump(attack):
    """The fewest answers with which the prediction is all right."""
    m = attack.people
    while fixed_point(replace(attack, queries=m), BOUNDED).accuracy < 0.9999:
        m += 1
    return m


@pytest.mark.parametrize(
    "attack",
    [
        Attack(60, 1, Uniform(3)),
        Attack(100, 1, Uniform(6)),
        Attack(100, 1, RoundedToBase(5)),
        Attack(200, 1, RoundedToBase(5, random=True)),
        Attack(100, 1, Uniform(6), family=SIGNS),
        Attack(100, 1, Uniform(3), family=subsets_of(0.2)),
    ],
    ids=str,
)
def test_near_a_jump_no_decoder_is_named_and_away_from_it_bounded_is(attack):
    at = jump(attack)
    for share in (0.5, 0.7, 1.6, 3.0):
        found = predict(replace(attack, queries=round(share * at)), BOUNDED)
        assert found.decoder == found.meant == "bounded", share
        assert found.attained.within == MEASURED["bounded"].within
        assert not found.attained.why
    for share in (0.8, 0.95, 1.0, 1.2, 1.45):
        found = predict(replace(attack, queries=round(share * at)), BOUNDED)
        assert found.decoder is found.attained.within is None, share
        assert found.attained.why.startswith("no shipped decoder attains this: `bounded`")
        assert found.attained.best in ("ls", "bounded")
        assert found.attack.baseline <= found.attained.reaches < found.accuracy


def test_least_squares_and_the_program_have_no_jump():
    for decoder in (LP, LS):
        found = predict(Attack(100, 300, Uniform(6)), decoder)
        assert found.decoder == decoder.name
        assert found.attained.within == MEASURED[decoder.name].within


def test_normal_noise_jumps_only_where_it_is_small_among_many():
    for attack in (
        Attack(100, 300, Gaussian(4.0)),
        Attack(100, 80, Gaussian(1.0)),
        Attack(100, 80, Laplace(1.0)),
        Attack(400, 320, Gaussian(2.0)),
        Attack(1000, 400, Gaussian(2.0)),
        Attack(1000, 900, Gaussian(2.0)),
        Attack(100, 5, Gaussian(4.0)),
    ):
        assert predict(attack, BAYES).decoder == "bayes", attack
    stuck = predict(Attack(1000, 600, Gaussian(2.0)), BAYES)
    assert stuck.decoder is None
    assert stuck.attained.best == "ls"
    less = fixed_point(stuck.attack, LS).accuracy - MEASURED["ls"].with_few
    assert stuck.attained.reaches == pytest.approx(less)
    # Measured there, in three worlds: .866 by least squares.
    assert stuck.attained.reaches < 0.866


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (Attack(20, 100, Gaussian(4.0)), "with 50 to 1000 people only"),
        (Attack(5000, 10000, Gaussian(4.0)), "with 50 to 1000 people only"),
        (Attack(100, 10000, Gaussian(50.0)), "with 0.5 to 20 people of noise"),
        (Attack(100, 300, Gaussian(4.0), prior=0.05), "with 0.2 to 0.8 as the prior only"),
        (Attack(100, 300, Gaussian(4.0), family=subsets_of(0.9)), "0.2 to 0.8 as the density"),
    ],
    ids=str,
)
def test_what_was_not_tried_has_no_name(attack, why):
    for decoder in (LP, LS, BAYES):
        found = predict(attack, decoder)
        assert found.decoder is found.attained.reaches is None
        assert why in found.attained.why


def test_naming_a_decoder_stops_in_time():
    with pytest.raises(OutOfTime):
        predict(Attack(100, 300, Uniform(6)), BOUNDED, until=0.0)
