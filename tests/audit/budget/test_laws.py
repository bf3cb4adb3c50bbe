import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm

from countleak.audit.budget.laws import law_of
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    RoundedToBase,
    SimulatedDiffix,
    TwoSubsets,
    Uniform,
)
from countleak.errors import InputError

MECHANISMS = [
    Gaussian(3.0),
    Laplace(3.0),
    SimulatedDiffix(3.0, suppressing=False, clamped=False),
    Uniform(4),
    RoundedToBase(5),
    RoundedToBase(6),
    RoundedToBase(5, random=True),
]


def noise_of(mechanism, size=400_000):
    counts = np.random.default_rng(1).integers(1000, 3000, size).astype(float)
    noise = mechanism.release(counts, np.random.SeedSequence(2)).values - counts
    return noise - noise.mean()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_law_has_the_moments_and_quantiles_of_what_its_mechanism_adds(mechanism):
    law, V = law_of(mechanism), 2.0
    noise = noise_of(mechanism)
    r = noise + np.random.default_rng(3).normal(0.0, np.sqrt(V), noise.size)
    assert law.weights.sum() == pytest.approx(1)
    assert law.variance == pytest.approx(noise.var(), rel=0.01)
    b = law.quantile(0.3, V)
    assert law.within(b, V) == pytest.approx(0.3, abs=1e-6)
    assert (np.abs(r) <= b).mean() == pytest.approx(0.3, abs=0.005)
    assert law.clipped(b, V) == pytest.approx((np.clip(r, -b, b) ** 2).mean(), rel=0.01)


def test_the_layers_of_a_laplace_law_are_the_laplace_law():
    law, sigma = law_of(Laplace(3.0)), 3.0
    for b in (0.5, 2.0, 7.0):

        def mass(w, b=b):
            near = norm.cdf((b - w) / 0.2) - norm.cdf((-b - w) / 0.2)
            return laplace.pdf(w, scale=sigma / np.sqrt(2)) * near

        expected = quad(mass, -40, 40, points=[-b, 0, b], limit=200)[0]
        assert law.within(b, 0.04) == pytest.approx(expected, abs=2e-4)
    # With nothing added it would be 2 / sigma^2; no law is looked at with less than a little.
    assert law.information(0.0) == pytest.approx(2 / sigma**2, rel=0.06)


@pytest.mark.parametrize("mechanism", [Laplace(3.0), Uniform(2)], ids=str)
def test_information_is_that_of_the_density(mechanism):
    law, V = law_of(mechanism), 0.5
    end = 30 if law.variance > 5 else 10
    sd = np.sqrt(law.variances + V)

    def density(r):
        return float(law.weights @ norm.pdf(r, law.means, sd))

    def integrand(r, h=1e-4):
        return ((density(r + h) - density(r - h)) / (2 * h)) ** 2 / density(r)

    expected = quad(integrand, -end, end, limit=500, points=[0.0])[0]
    assert law.information(V) == pytest.approx(expected, rel=2e-3)


def test_normal_noise_informs_by_its_variance():
    assert law_of(Gaussian(3.0)).information(2.0) == pytest.approx(1 / 11)


def test_rounding_errors_have_the_variances_of_the_textbooks():
    assert law_of(RoundedToBase(7)).variance == pytest.approx((7**2 - 1) / 12)
    assert law_of(RoundedToBase(7, random=True)).variance == pytest.approx((7**2 - 1) / 6)


def test_what_has_no_law_is_refused():
    with pytest.raises(InputError, match="TwoSubsets has no closed form"):
        law_of(TwoSubsets(Gaussian(1.0)))


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [(Gaussian(4.0), 1.95996 * 4), (Laplace(4.0), 4 / 2**0.5 * np.log(20)), (Uniform(50), 48)],
    ids=str,
)
def test_nineteen_of_twenty_answers_stay_within_the_usual_error(mechanism, expected):
    assert law_of(mechanism).usual == pytest.approx(expected, rel=0.01)
