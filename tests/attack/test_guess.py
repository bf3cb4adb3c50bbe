import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.errors import InputError


def test_claims_at_a_precision():
    world = Setting(m=350).world(0)
    guess = Bayes().decode(world.transcript)
    sure = guess.claims_at(0.95)
    assert 0 < sure.claimed.sum() < guess.claimed.sum()
    assert np.abs(guess.probability[sure.claimed] - 0.5).min() >= 0.45
    with pytest.raises(InputError, match="choose one from"):
        guess.claims_at(0.3)
    with pytest.raises(InputError, match="gives no probabilities"):
        Rounding().decode(world.transcript).claims_at(0.9)


@pytest.mark.parametrize("decoder", [Bayes(), Robust(), LeastSquares(), AutoDecoder(), Polished()])
def test_awkward_answers_do_not_break_a_decoder(decoder):
    rng = np.random.default_rng(0)
    queries = random_subsets(np.arange(6), 30, rng)
    for values in (np.zeros(30), np.full(30, 3.0), np.full(30, 1e9), rng.normal(0, 1e-9, 30)):
        guess = decoder.decode(Transcript.of(queries, Answers.to_all(values)))
        # A decoder whose model does not fit gives neither margin nor probability.
        assert guess.basis.misfit or np.isfinite(guess.margin).all()
        assert set(guess.values.tolist()) <= {0, 1}
