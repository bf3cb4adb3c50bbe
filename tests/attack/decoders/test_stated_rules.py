"""What is stated of a system is used as it is, and nothing proven from it is wrong."""

import numpy as np
import pytest

from benchmarks.honesty.published import tables_suppressed, tables_suppressed_told
from countleak.attack.decoders.auto import AutoDecoder


@pytest.mark.parametrize("number", range(4))
def test_tables_with_suppressed_cells_prove_many_where_the_rule_is_stated(number):
    """300 people, exact counts; cells of 1 and 2 are suppressed, zeros shown."""
    world = tables_suppressed_told.world(number)
    guess = AutoDecoder(rules=tables_suppressed_told.rules).decode(world.transcript)
    assert guess.proven.sum() >= 100
    assert np.array_equal(guess.values[guess.proven], world.secret[guess.proven])
    assert guess.basis.stated == ("no noise is added", "counts from 1 to 2 are suppressed")
    assert not guess.basis.inferred and not guess.basis.assuming


@pytest.mark.parametrize("number", range(4))
def test_without_the_rule_it_is_said_what_was_assumed_and_no_worse_than_guessing(number):
    world = tables_suppressed.world(number)
    guess = AutoDecoder().decode(world.transcript)
    assert not guess.proven.any() and not guess.basis.stated
    assert any("are suppressed" in rule for rule in guess.basis.inferred)
    accuracy = (guess.values == world.secret).mean()
    assert accuracy >= max(world.secret.mean(), 1 - world.secret.mean())
    if guess.forced.any():
        assert guess.basis.assuming
