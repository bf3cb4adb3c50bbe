import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from countleak.audit.budget.channel import boxed, posterior_accuracy, posterior_error


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("tau", [0.1, 0.6, 3.0])
def test_a_box_decoder_sees_what_clipping_a_million_draws_gives(tau, prior):
    rng = np.random.default_rng(7)
    X = (rng.random(1_000_000) < prior).astype(float)
    r = X + tau * rng.normal(size=X.size)
    # The shift that makes the estimates add up to the total, found on the draws themselves.
    low, high = -40.0, 40.0
    for _ in range(50):
        shift = (low + high) / 2
        low, high = (shift, high) if np.clip(r - shift, 0, 1).mean() > X.mean() else (low, shift)
    c = np.clip(r - shift, 0, 1)
    found = boxed(tau, prior, pinned=True)
    assert found.error == pytest.approx(((c - X) ** 2).mean(), abs=2e-3)
    assert found.inside == pytest.approx(((c > 0) & (c < 1)).mean(), abs=2e-3)
    assert found.accuracy == pytest.approx(((c >= 0.5) == X).mean(), abs=4e-3)


def test_without_the_total_nothing_is_shifted():
    found = boxed(1.0, 0.1, pinned=False)
    assert found.accuracy == pytest.approx(norm.cdf(0.5))


@pytest.mark.parametrize(("tau", "prior"), [(0.08, 0.5), (0.3, 0.1), (1.0, 0.5), (4.0, 0.9)])
def test_the_posterior_is_that_of_bayes_rule(tau, prior):
    def joint(r, bit):
        return (prior if bit else 1 - prior) * norm.pdf(r, bit, tau)

    def integral(f):
        return quad(f, -10 * tau, 1 + 10 * tau, points=[0, 0.5, 1], limit=300)[0]

    error = integral(lambda r: joint(r, 0) * joint(r, 1) / (joint(r, 0) + joint(r, 1)))
    assert posterior_error(tau, prior) == pytest.approx(error, rel=1e-5)
    right = integral(lambda r: max(joint(r, 0), joint(r, 1)))
    assert posterior_accuracy(tau, prior) == pytest.approx(right, abs=1e-6)
