import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.lab.bench.worlds import Setting
from tests.attack.decoders.worlds import transcript_of


@pytest.mark.parametrize(
    ("setting", "picked", "least"),
    [
        (Setting(), "gaussian noise of SD", 0.965),
        (Setting(kind="wrong"), "grossly wrong", 0.95),
        (Setting(kind="two groups"), "noise differs by server", 0.92),
        (Setting(101, 300, 2.0, 12 / 101, "suppressed"), "suppressed", 0.985),
        (Setting(80, 60, 4.0, 0.4, "cells"), "uniform noise: no answer is further than 4", 0.98),
        (Setting(100, 60, 1.0), "too few answers", 0.7),
    ],
    ids=lambda case: getattr(case, "kind", str(case)),
)
def test_auto_picks_by_what_it_sees_and_says_why(setting, picked, least):
    world = setting.world(1)
    guess = AutoDecoder(prove=False).decode(transcript_of(world))
    assert picked in guess.basis.picked_because
    assert (guess.values == world.secret).mean() >= least
