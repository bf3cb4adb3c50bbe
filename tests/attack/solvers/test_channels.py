from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from scipy.stats import laplace, norm, uniform

from countleak.attack.solvers.channels import Laplace, Mixed, Normal, Rounded

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
E = np.array([-31.0, -9.5, -1.0, 0.0, 0.3, 4.0, 14.9, 40.0])
MIXED = Mixed((0.9, 0.1), (), (9.0, 400.0))
# Each channel, the density of its noise, and where that has an edge.
CASES = [
    (Normal(9.0), norm(0, 3).pdf, 12.0),
    (Laplace(18.0), laplace(0, 3).pdf, 0.0),
    (Rounded(10, 1e-9), uniform(-5, 10).pdf, 5.0),
    (MIXED, lambda w: 0.9 * norm(0, 3).pdf(w) + 0.1 * norm(0, 20).pdf(w), 12.0),
]


@pytest.mark.parametrize(
    ("channel", "density", "edge"), CASES, ids=["normal", "Laplace", "rounded", "mixed"]
)
@pytest.mark.parametrize("V", [4.0, 100.0])
def test_the_score_is_that_of_the_blurred_density(channel, density, edge, V):
    def blurred(e):
        # Gauss's rule on each side of every edge, as far out as counts.
        sd, total = sqrt(V), 0.0
        for a, b in pairwise(
            sorted({-edge, edge, e - 9 * sd, e - 3 * sd, e, e + 3 * sd, e + 9 * sd})
        ):
            w = (a + b) / 2 + (b - a) / 2 * NODES
            total += (b - a) / 2 * WEIGHTS @ (density(w) * norm(e, sd).pdf(w))
        return total

    near = E[np.abs(E) < 16]
    score, slope = channel.score(near, V)
    logs = np.log([[blurred(e + d) for d in (-0.02, 0, 0.02)] for e in near])
    np.testing.assert_allclose(score, (logs[:, 0] - logs[:, 2]) / 0.04, atol=2e-4)
    curved = -(logs[:, 0] - 2 * logs[:, 1] + logs[:, 2]) / 0.02**2
    assert slope == pytest.approx(curved.mean(), abs=2e-4)
    assert channel.log_likelihood(near, V) == pytest.approx(logs[:, 1].mean(), abs=1e-6)


@pytest.mark.parametrize("channel", [Normal(9.0), Laplace(18.0), Rounded(10, 1e-3), MIXED])
def test_far_out_nothing_breaks(channel):
    for V in (1e-6, 1.0, 1e6):
        score, slope = channel.score(np.array([-1e5, -1e3, 0.0, 1e3, 1e5]), V)
        assert np.isfinite(score).all() and np.isfinite(slope)
        assert (np.sign(score) == [-1, -1, 0, 1, 1]).all()


def test_the_noise_is_read_off_the_residuals():
    rng = np.random.default_rng(0)
    blur = rng.normal(0, 5, 40_000)
    for channel, noise in (
        (Normal(), rng.normal(0, 8, 40_000)),
        (Laplace(), rng.laplace(0, 8 / sqrt(2), 40_000)),
        (Rounded(28), rng.uniform(-14, 14, 40_000)),
        (Mixed(), rng.normal(0, np.where(rng.random(40_000) < 0.05, 32.0, 4.0))),
    ):
        e = noise + blur
        fitted = channel
        for _ in range(30):
            fitted = fitted.fitted(e, 25.0)
        assert fitted.sigma == pytest.approx(8.0, rel=0.03)
        # The right law is the likeliest.
        others = [Normal().fitted(e, 25.0), Laplace().fitted(e, 25.0)]
        best = max(other.log_likelihood(e, 25.0) for other in others)
        assert fitted.log_likelihood(e, 25.0) > best - 1e-5
