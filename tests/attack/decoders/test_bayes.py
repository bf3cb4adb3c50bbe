import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Threshold
from countleak.audit.scores import calibration
from tests.attack.decoders.worlds import accuracy


def test_squares_and_posteriors_beat_absolute_residuals_under_gaussian_noise():
    setting = Setting(m=750)
    paper = accuracy(Rounding(), setting)
    assert accuracy(LeastSquares(), setting) > paper + 0.01
    assert accuracy(Bayes(), setting) > paper + 0.01


def test_fewer_answers_than_people():
    assert accuracy(Bayes(), Setting(1000, 700, 2.0), trials=1) >= 0.99


def test_probabilities_mean_what_they_say():
    p, secret = [], []
    for number in range(10):
        world = Setting(m=350).world(number)
        p.append(Bayes().decode(world.transcript).probability)
        secret.append(world.secret)
    # The error of 1,000 honest claims in 10 bins is about .02 by itself.
    assert calibration(np.concatenate(p), np.concatenate(secret)).error < 0.05


@pytest.mark.slow
def test_a_skewed_prior_is_used():
    setting = Setting(m=100, sigma=8.0, prior=0.1)
    assert accuracy(Bayes(), setting, 2) > accuracy(LeastSquares(), setting, 2) + 0.05
    assert accuracy(Bayes(prior=0.1), setting, 2) > 0.85


def test_suppressed_answers_are_worth_more_than_zeros():
    setting = Setting(101, 150, 2.0, 12 / 101, "suppressed")
    censored = Bayes(Noise(threshold=Threshold(), floor=0.0))
    assert accuracy(censored, setting, 2) > 0.985
    assert accuracy(Rounding(), setting, 2) < 0.93
