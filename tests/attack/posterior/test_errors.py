from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.diagnosis import diagnose
from countleak.attack.posterior.errors import SPREADS, Score, draw_share, draw_spreads
from countleak.attack.posterior.kernels import Squares
from countleak.attack.posterior.secret_draws import Bits, OneOf
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript

SIGMA = 1.2


def drawn_shares(A, b, kind, rates, share, variance, draws, rng):
    """How often the kernel draws each state, as bits + twice, and the bits' mean probabilities."""
    k, n = kind.blocks, A.shape[1] // kind.blocks
    G = np.array([A[:, v * n : (v + 1) * n].T @ A[:, v * n : (v + 1) * n] for v in range(k)])
    x = kind.bits_of(np.zeros(n, np.int64))
    size, twice, total = x.astype(float), np.zeros(k * n, np.bool_), np.zeros(k * n)
    squares = Squares(
        x, size, twice, np.ones(k * n, np.bool_), A.T @ (b - A @ size) / SIGMA**2,
        G / SIGMA**2, share, variance,
    )  # fmt: skip
    met = {}
    for _ in range(draws):
        kind.gram_sweep(squares, rates, rng, n, total)
        state = tuple((x + twice).tolist())
        met[state] = met.get(state, 0) + 1 / draws
    assert squares.c == pytest.approx(A.T @ (b - A @ size) / SIGMA**2, abs=1e-6)
    assert (size[x == 0] == 0).all()
    return met, total / draws


def true_shares(A, b, states, prior, variance):
    weights = {}
    for state in states:
        ones = A[:, np.array(state) > 0]
        covariance = SIGMA**2 * np.eye(b.size) + variance * ones @ ones.T
        weights[state] = prior(state) * multivariate_normal(A @ np.array(state), covariance).pdf(b)
    total = sum(weights.values())
    return {state: weight / total for state, weight in weights.items()}


@pytest.mark.parametrize(("share", "variance"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3), (0.2, 0.3)])
def test_bits_and_what_they_add_are_drawn_as_enumeration_says(share, variance):
    rng = np.random.default_rng(3)
    A = rng.integers(0, 2, (8, 4)).astype(float)
    b = A @ np.array([2.0, 1.0, 0.0, 1.0]) + rng.normal(0, SIGMA, 8)
    rate = 0.4
    chance = {0: 1 - rate, 1: rate * (1 - share), 2: rate * share}
    states = product([0, 1, 2] if share else [0, 1], repeat=4)
    true = true_shares(A, b, states, lambda s: np.prod([chance[each] for each in s]), variance)
    met, p = drawn_shares(A, b, Bits(), np.array([rate]), share, variance, 20_000, rng)
    for state, expected in true.items():
        assert met.get(state, 0.0) == pytest.approx(expected, abs=0.015)
    assert p == pytest.approx(sum(w * (np.array(s) > 0) for s, w in true.items()), abs=0.01)


@pytest.mark.parametrize(("share", "variance"), [(0.0, 0.0), (0.2, 0.3)])
def test_values_and_what_they_add_are_drawn_as_enumeration_says(share, variance):
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, 2, (2, 6, 3)).astype(float)
    A = np.block([[first, np.zeros((6, 3))], [np.zeros((6, 3)), second]])
    b = A @ np.array([1.0, 0.0, 2.0, 0.0, 1.0, 0.0]) + rng.normal(0, SIGMA, 12)
    rates = np.array([0.3, 0.7])
    choices = [(v, t) for v in (0, 1) for t in ((1, 2) if share else (1,))]
    states, weight = [], {}
    for chosen in product(choices, repeat=3):
        state = np.zeros(6, np.int64)
        for j, (v, times) in enumerate(chosen):
            state[v * 3 + j] = times
        states.append(tuple(state.tolist()))
        weight[states[-1]] = np.prod(
            [rates[v] * (share if times == 2 else 1 - share) for v, times in chosen]
        )
    true = true_shares(A, b, states, weight.__getitem__, variance)
    met, p = drawn_shares(A, b, OneOf(2), rates, share, variance, 20_000, rng)
    for state, expected in true.items():
        assert met.get(state, 0.0) == pytest.approx(expected, abs=0.015)
    assert p == pytest.approx(sum(w * (np.array(s) > 0) for s, w in true.items()), abs=0.01)


def test_the_evidence_of_a_spread_is_that_of_the_answers():
    rng = np.random.default_rng(5)
    A = rng.integers(0, 2, (9, 4)).astype(float)
    left = rng.normal(0, 2, 9)
    width, axes = np.linalg.eigh(A.T @ A / SIGMA**2)
    evidence = Score(width, axes.T @ (A.T @ left) / SIGMA**2).evidence()
    none = multivariate_normal(np.zeros(9), SIGMA**2 * np.eye(9)).logpdf(left)
    for spread, log in zip(SPREADS, evidence, strict=True):
        covariance = SIGMA**2 * np.eye(9) + spread**2 * A @ A.T
        assert log == pytest.approx(
            multivariate_normal(np.zeros(9), covariance).logpdf(left) - none
        )


def test_whose_errors_there_are_is_told_by_whose_pull():
    rng = np.random.default_rng(6)
    width = np.full(200, 10.0)
    still, pulled = (Score(width, rng.normal(0, np.sqrt(v), 200)) for v in (10.0, 60.0))
    assert draw_spreads(still, still, rng) == (0.0, 0.0)
    everyone, ones = draw_spreads(pulled, still, rng)
    assert everyone > 0.4
    assert ones == 0.0
    everyone, ones = draw_spreads(still, pulled, rng)
    assert everyone == 0.0
    assert ones > 0.4


def test_the_share_counted_twice_follows_who_is():
    rng = np.random.default_rng(7)
    assert np.mean([draw_share(0, 50, rng) for _ in range(500)]) < 0.01
    assert np.mean([draw_share(10, 40, rng) for _ in range(500)]) == pytest.approx(0.2, abs=0.05)


def test_people_counted_twice_are_found_and_everyone_is_still_read():
    rng = np.random.default_rng(8)
    queries, secret = random_subsets(np.arange(60), 1200, rng), rng.integers(0, 2, 60)
    counted = secret.astype(float)
    counted[np.flatnonzero(secret)[:5]] = 2.0
    answers = np.rint(queries.dot(counted) + rng.normal(0, 2, 1200))
    transcript = Transcript.of(queries, Answers.to_all(answers))
    diagnosis = diagnose(transcript)
    assert diagnosis.twice == pytest.approx(5, abs=1)
    assert "about 5 of the people counted twice" in diagnosis.reasons
    guess = AutoDecoder().decode(transcript)
    assert (guess.values == secret).all()
    assert guess.expected_right > 0.98


@pytest.mark.slow
def test_errors_of_those_who_count_are_found_and_claims_are_as_right_as_they_say():
    claims = right = 0
    for seed in range(2):
        rng = np.random.default_rng([9, seed])
        queries, secret = random_subsets(np.arange(80), 1500, rng), rng.integers(0, 2, 80)
        counted = secret * (1 + rng.normal(0, 0.4, 80))
        answers = np.rint(queries.dot(counted) + rng.normal(0, 3, 1500))
        transcript = Transcript.of(queries, Answers.to_all(answers))
        diagnosis = diagnose(transcript)
        assert diagnosis.per_one == pytest.approx(0.4, abs=0.2)
        assert "per person who counts" in diagnosis.errors_per_person
        guess = AutoDecoder().decode(transcript)
        claims += int((guess.confidence >= 0.95).sum())
        right += int((guess.values == secret)[guess.confidence >= 0.95].sum())
    assert claims > 50
    assert right >= 0.93 * claims
