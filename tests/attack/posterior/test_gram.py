"""Gaussian noise in common: sums against dense covariances, posteriors against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from countleak.attack.covariance import InTurn, Shared, correlation
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.noise import UNKNOWN, Noise
from countleak.attack.posterior.evidence import gather
from countleak.attack.posterior.gram import Gram
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.transcript import Answers, Transcript

SHARED = (Shared(InTurn(4.0), 0.7),)


def world(m=24, n=6, seed=0):
    rng = np.random.default_rng(seed)
    queries = Queries(np.arange(n), rng.integers(-1, 2, (m, n), dtype=np.int8), Subsets())
    noise = 2 * np.linalg.cholesky(correlation(SHARED, queries)) @ rng.normal(size=m)
    exact = queries.dot(rng.integers(0, 2, n) + rng.normal(0, 0.3, n))
    values = np.round(16 * (exact + noise)) / 16
    return Transcript.of(queries, Answers.to_all(values))


@pytest.mark.parametrize("shared", [(), SHARED])
@pytest.mark.parametrize("groups", [None, np.arange(24) % 2])
def test_sums_are_those_of_the_dense_covariance(shared, groups):
    transcript, tau = world(), 0.4
    noise = Noise(UNKNOWN, groups=groups, shared=shared, per_person=UNKNOWN)
    gram = Gram.of(gather(transcript, noise), 1)
    sigma = np.array([2.0]) if groups is None else np.array([2.0, 3.0])
    label = np.zeros(24, int) if groups is None else groups
    A, b, one = transcript.A.astype(float), transcript.b, np.ones(24)
    R = correlation(shared, transcript.queries) * (label[:, None] == label)
    C = np.outer(sigma[label], sigma[label]) * R + tau**2 * A @ A.T
    inverse = np.linalg.inv(C)
    sums = gram.weighed(1 / sigma**2, tau)
    np.testing.assert_allclose(sums.G[0], A.T @ inverse @ A)
    np.testing.assert_allclose(sums.with_b, A.T @ inverse @ b)
    np.testing.assert_allclose(sums.with_one, A.T @ inverse @ one)
    assert (sums.b, sums.ones) == pytest.approx((one @ inverse @ b, one @ inverse @ one))


@pytest.mark.parametrize(("shared", "tau"), [((), 0.5), (SHARED, 0.0), (SHARED, 0.5)])
def test_probabilities_are_those_of_enumeration(shared, tau):
    transcript = world(seed=3)
    queries, A = transcript.queries, transcript.A.astype(float)
    C = 4 * correlation(shared, queries) + tau**2 * A @ A.T
    bits = np.array(list(product([0, 1], repeat=6)), dtype=float)
    log = np.array([multivariate_normal.logpdf(transcript.b - A @ x, cov=C) for x in bits])
    weight = np.exp(log - log.max())
    exact = weight @ bits / weight.sum()
    noise = Noise(2.0, shared=shared, per_person=tau)
    guess = Bayes(noise, 0.5, effort=Effort(2, 2, 60, 800)).decode(transcript)
    np.testing.assert_allclose(guess.probability, exact, atol=0.03)
    assert np.abs(exact - 0.5).min() < 0.45


def test_no_error_per_person_is_found_where_there_is_none():
    rng = np.random.default_rng(4)
    secret = rng.integers(0, 2, 80)
    queries = Queries(np.arange(80), rng.integers(0, 2, (600, 80), dtype=np.int8), Subsets())
    values = np.rint(queries.matrix @ secret + rng.normal(0, 3, 600))
    transcript = Transcript.of(queries, Answers.to_all(values))
    plain, open_ = (
        Bayes(Noise(per_person=errors)).posterior(transcript) for errors in (0.0, UNKNOWN)
    )
    # No more than beforehand: half of it for errors, half for second counts.
    assert open_.per_person_chance < 0.2
    assert np.abs(open_.probability - plain.probability).mean() < 0.005
