import numpy as np
import pytest

from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.rows import Dense
from countleak.attack.solvers.amp import MessagePassing
from countleak.attack.solvers.channels import Laplace, Mixed, Normal, Rounded
from countleak.audit.budget.evolution import Attack, Posterior, fixed_point
from countleak.audit.targets.simulated import Gaussian
from countleak.audit.targets.simulated import Laplace as LaplaceNoise


def world(n, m, mechanism, prior=0.5, seed=0):
    rng = np.random.default_rng([seed, n, m])
    rows = HashedRows(seed, np.arange(m), np.arange(n))
    bits = (rng.random(n) < prior).astype(np.float64)
    return rows, bits, mechanism.release(rows.dot(bits), np.random.SeedSequence(seed)).values


# Plenty of answers, few of them, a rare secret, and noise with tails.
@pytest.mark.parametrize(
    ("n", "m", "mechanism", "prior", "channel"),
    [
        (4000, 6000, Gaussian(9.0), 0.5, Normal()),
        (4000, 2600, Gaussian(4.0), 0.5, Normal()),
        (4000, 8000, Gaussian(12.0), 0.1, Normal()),
        (4000, 8000, LaplaceNoise(12.0), 0.5, Laplace()),
    ],
)
def test_it_does_as_well_as_state_evolution_says_and_knows_it(n, m, mechanism, prior, channel):
    rows, bits, answers = world(n, m, mechanism, prior)
    found = MessagePassing(channel).solve(rows, answers)
    p = found.probability
    right = ((p > 0.5) == bits).mean()
    predicted = fixed_point(Attack(n, m, mechanism, prior), Posterior()).accuracy
    assert found.settled
    # Four standard errors of a share among n people.
    assert abs(right - predicted) < 4 * np.sqrt(predicted * (1 - predicted) / n) + 0.005
    assert abs(right - np.maximum(p, 1 - p).mean()) < 4 * np.sqrt((p * (1 - p)).sum()) / n
    assert found.channel.sigma == pytest.approx(mechanism.sigma, rel=0.06)
    assert found.rate == pytest.approx(bits.mean(), abs=0.02)


def test_wild_answers_are_seen_through():
    rows, bits, answers = world(2000, 5000, Gaussian(8.0))
    rng = np.random.default_rng(1)
    wild = np.where(rng.random(5000) < 0.03, rng.normal(0, 200, 5000), 0.0)
    plain = MessagePassing(Normal()).solve(rows, answers + wild).probability
    found = MessagePassing(Mixed()).solve(rows, answers + wild)
    assert found.settled
    assert ((found.probability > 0.5) == bits).mean() > 0.96
    assert ((plain > 0.5) == bits).mean() < 0.85


def test_rounding_is_no_normal_noise():
    rows, bits, exact = world(2000, 3000, Gaussian(0.01))
    answers = 24 * np.round(exact / 24)
    normal = MessagePassing(Normal()).solve(rows, answers).probability
    found = MessagePassing(Rounded(24)).solve(rows, answers)
    assert found.settled
    assert ((found.probability > 0.5) == bits).mean() > ((normal > 0.5) == bits).mean() + 0.02


def test_an_offset_does_no_harm():
    rows, _bits, answers = world(3000, 6000, Gaussian(8.0))
    plain = MessagePassing().solve(rows, answers)
    off = MessagePassing().solve(rows, answers + 500)
    np.testing.assert_allclose(off.probability, plain.probability, atol=1e-6)
    assert off.offset - plain.offset == pytest.approx(500, abs=0.01)


def test_rows_that_are_not_as_good_as_random_are_noticed():
    rng = np.random.default_rng(0)
    # Ranges of the ids: neighbours are nearly always counted together.
    ends = np.sort(rng.integers(0, 1000, (3000, 2)), axis=1)
    place = np.arange(1000)
    matrix = ((ends[:, :1] <= place) & (place < ends[:, 1:])).astype(np.int8)
    bits = rng.integers(0, 2, 1000).astype(np.float64)
    found = MessagePassing().solve(Dense(matrix), matrix @ bits + rng.normal(0, 4, 3000))
    assert not found.settled
    assert found.doubt
