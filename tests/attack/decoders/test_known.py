import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.known import Informed
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.rounding import Rounding
from countleak.errors import InputError
from countleak.lab.bench.worlds import Setting
from tests.attack.decoders.worlds import transcript_of


@pytest.mark.parametrize(
    "decoder", [Rounding(), LeastSquares(), Bayes(), AutoDecoder()], ids=lambda d: type(d).__name__
)
def test_what_is_known_beforehand_is_kept_and_helps(decoder):
    setting = Setting(60, 240, 4.0)
    alone, informed = [], []
    for number in range(4):
        world = setting.world(number)
        known = {person: int(world.secret[person]) for person in range(0, 60, 2)}
        guess = Informed(decoder, known).decode(transcript_of(world))
        assert (guess.values[::2] == world.secret[::2]).all()
        informed.append((guess.values == world.secret)[1::2].mean())
        plain = decoder.decode(transcript_of(world))
        alone.append((plain.values == world.secret)[1::2].mean())
    assert np.mean(informed) >= np.mean(alone) - 0.01


def test_what_is_known_must_be_asked_about():
    world = Setting(20, 60, 2.0).world(0)
    for known, complaint in (
        ({99: 1}, "no query is about that id"),
        ({1: 7}, "it must be 0 or 1"),
        (dict.fromkeys(range(20), 1), "nothing to find out"),
    ):
        with pytest.raises(InputError, match=complaint):
            Informed(LeastSquares(), known).decode(transcript_of(world))
