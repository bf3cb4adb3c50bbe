import numpy as np
import pytest

import countleak as cl
from countleak.attack.decoders.auto import decoder_for
from countleak.audit.control import Control, control
from countleak.errors import InputError

SECRET = "status = 'C'"


def audited(sigma, people=None, secret=SECRET):
    people = people or cl.generated_bank(seed=7).between(2000, 2999)
    return cl.audit(people, secret=secret, target=cl.Gaussian(sigma), queries=250)


@pytest.mark.parametrize(("sigma", "low", "high"), [(1.0, 0.8, 1.0), (500.0, 0.0, 0.35)])
def test_what_is_left_beyond_luck(sigma, low, high):
    result = audited(sigma)
    found = control(result, decoder_for(result.secret))
    assert found.right == result.score.right
    # Shuffled secrets agree with the true ones as often as two strangers do.
    assert abs(found.by_luck / found.people - 0.55) < 0.25
    assert low <= found.risk <= high
    assert found.interval[0] <= found.risk <= found.interval[1]


@pytest.mark.slow
def test_values_have_a_twin_as_well():
    result = audited(1.0, secret="status IN ('A', 'C', ...)")
    assert control(result, decoder_for(result.secret)).risk > 0.7


def test_intervals_are_those_of_anonymeter():
    # 90 and 60 of 100 by Wilson: centres .885 and .596, halves .058 and .094.
    found = Control(100, 90, 60)
    assert found.risk == pytest.approx((0.8852 - 0.5963) / (1 - 0.5963), abs=2e-3)
    assert found.interval == pytest.approx((0.555, 0.876), abs=5e-3)
    assert "60 of 100 right by luck" in str(found)


def test_there_is_no_control_without_the_truth():
    bank = cl.generated_bank(seed=7).between(2000, 2999)
    bare = cl.People(bank.ids, {}, bank.id_column, bank.table)
    target = cl.Simulated(bank, bank.named(SECRET), cl.Gaussian(1.0))
    result = cl.audit(bare, secret=SECRET, target=target, queries=100)
    with pytest.raises(InputError, match="not known"):
        control(result, decoder_for(result.secret))
    assert np.isfinite(result.confidence)
