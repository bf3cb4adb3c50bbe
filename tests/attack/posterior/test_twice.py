from itertools import product

import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.diagnosis import diagnose
from countleak.attack.posterior.twice import LOG_PRIOR, SHARES, draw_twice
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript


def test_bits_are_counted_twice_as_often_as_enumeration_says():
    rng = np.random.default_rng(3)
    A, x = rng.integers(0, 2, (8, 4)).astype(float), np.array([1, 1, 0, 1])
    b = A @ (x + np.array([1, 0, 0, 0])) + rng.normal(0, 1.5, 8)
    G, ones = A.T @ A / 1.5**2, np.flatnonzero(x)
    weight = {}
    for flags in product([0, 1], repeat=ones.size):
        counted = x.astype(float)
        counted[ones] += flags
        likelihood = np.exp(-0.5 * ((b - A @ counted) ** 2).sum() / 1.5**2)
        many = sum(flags)
        prior = (np.exp(LOG_PRIOR) * SHARES**many * (1 - SHARES) ** (ones.size - many)).sum()
        weight[flags] = likelihood * prior
    total = sum(weight.values())
    twice, draws, counts = np.zeros(4, np.bool_), 30_000, dict.fromkeys(weight, 0)
    for _ in range(draws):
        c = A.T @ (b - A @ (x * (1.0 + twice))) / 1.5**2
        draw_twice(twice, x, c, G[None], rng)
        assert c == pytest.approx(A.T @ (b - A @ (x * (1.0 + twice))) / 1.5**2) or not twice.any()
        counts[tuple(twice[ones].astype(int).tolist())] += 1
    for flags, share in weight.items():
        # Draws follow each other, so that the tolerance is several times that of independent ones.
        assert counts[flags] / draws == pytest.approx(share / total, abs=0.02)


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
