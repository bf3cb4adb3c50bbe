import numpy as np
import pytest
from scipy.integrate import quad

from countleak.attack.law import LEAD
from countleak.attack.mixture import Mixture, Part, fit_mixture
from countleak.attack.noise import Noise, Shape, Values, log_at_least, log_at_most, log_released
from countleak.errors import InputError

TWO_HUMPS = Mixture((Part(0.5, -0.98, 0.2), Part(0.5, 0.98, 0.2)))


def histogram(values):
    return np.unique(values, return_counts=True)


def test_two_humps_are_found():
    rng = np.random.default_rng(0)
    noise = np.rint(rng.choice([-6.0, 6.0], 1000) + rng.normal(0, 1, 1000))
    fitted = fit_mixture(*histogram(noise))
    assert fitted.gain > 100
    centres = [noise.mean() + part.centre * noise.std() for part in fitted.mixture.parts]
    assert centres == pytest.approx([-6, 6], abs=0.3)


def test_normal_noise_is_not_taken_apart():
    for seed in range(20):
        noise = np.rint(np.random.default_rng(seed).normal(0, 4, 1000))
        assert fit_mixture(*histogram(noise)).gain < LEAD


def test_parts_have_mean_0_and_variance_1():
    rng = np.random.default_rng(1)
    for noise in (rng.exponential(5, 800), rng.standard_t(3, 800), rng.choice([0.0, 9.0], 800)):
        parts = fit_mixture(*histogram(np.rint(noise))).mixture.parts
        mean = sum(part.weight * part.centre for part in parts)
        variance = sum(part.weight * (part.centre**2 + part.scale**2) for part in parts) - mean**2
        assert mean == pytest.approx(0, abs=1e-6)
        # No part is narrower than it may be, which adds a little.
        assert variance == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("whole", [True, False])
def test_the_likelihood_of_a_mixture_adds_up(whole):
    noise = Noise(shape=Shape.MIXTURE, mixture=TWO_HUMPS)
    values = Values(np.array([5.0]), np.array([1.0]), 0.0)
    if whole:
        total = np.exp(log_released(np.arange(-60.0, 61.0), values, noise, True)).sum()
    else:
        total = quad(
            lambda r: float(np.exp(log_released(np.array([r]), values, noise, False))[0, 0]),
            -60,
            60,
            points=[-4, 6],
        )[0]
    assert total == pytest.approx(1, abs=1e-6)


def test_tails_of_a_mixture_are_its_sums():
    noise = Noise(shape=Shape.MIXTURE, mixture=TWO_HUMPS)
    values = Values(np.array([5.0]), np.array([1.0]), 0.0)
    chance = np.exp(log_released(np.arange(-60.0, 61.0), values, noise, True))[0]
    below = np.exp(log_at_most(np.array([2.5]), values, noise))[0, 0]
    above = np.exp(log_at_least(np.array([2.5]), values, noise))[0, 0]
    assert below == pytest.approx(chance[: 60 + 3].sum(), abs=1e-9)
    assert above == pytest.approx(chance[60 + 3 :].sum(), abs=1e-9)


def test_weights_must_add_up():
    with pytest.raises(InputError, match="add up to 1"):
        Mixture((Part(0.5, 0.0, 1.0),))
