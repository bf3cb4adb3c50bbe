from itertools import product

import numpy as np
import pytest

from countleak.attack.decoders.bounded import Bounded, forced_values
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.lab.bench.worlds import Setting


@pytest.mark.parametrize("setting", [Setting(80, 40, 2.0, 0.4, "cells")])
def test_a_hard_bound_recovers_and_proves(setting):
    world = setting.world(0)
    guess = Bounded(2.0).decode(world.transcript)
    assert (guess.values == world.secret).all()
    assert guess.proven.sum() > 70


def test_forced_means_that_no_other_bits_fit():
    rng = np.random.default_rng(4)
    every = np.array(list(product([0, 1], repeat=9)))
    for seed in range(6):
        queries = random_subsets(np.arange(9), 14, np.random.default_rng(seed))
        secret = rng.integers(0, 2, 9)
        answers = Answers.to_all(queries.dot(secret.astype(float)) + rng.integers(-1, 2, 14))
        transcript = Transcript.of(queries, answers)
        decoder = Bounded(1.0)
        guess = decoder.decode(transcript)
        fits = every[(np.abs(answers.values - every @ queries.matrix.T) <= 1).all(axis=1)]
        alone = (fits == fits[0]).all(axis=0)
        # What holds over the box holds over bits; the converse need not.
        assert not (guess.proven & ~alone).any()
        assert (guess.values[guess.proven] == secret[guess.proven]).all()
        assert not forced_values(decoder.problem(transcript), 1 - guess.values).any()


def test_suppressed_counts_are_intervals_for_the_bounded_decoder():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], np.int8)
    queries = Queries(np.arange(3), matrix, Subsets())
    answers = Answers.to_all(np.array([np.nan, 2.0, 2.0]), np.array([False, True, True]))
    guess = Bounded(0.4, suppressed_at_most=1.0).decode(Transcript.of(queries, answers))
    assert guess.values.tolist() == [0, 1, 1]
    assert guess.proven.all()
