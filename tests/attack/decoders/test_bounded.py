from itertools import product

import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.noise import Noise, Range, Shape
from countleak.attack.queries import Queries
from countleak.attack.queries.files import read_queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.transcript import Answers, Transcript, read_transcript
from countleak.errors import InputError


def uniform(bound):
    return Noise(shape=Shape.UNIFORM, bound=bound)


def exact(threshold=None):
    return Noise(shape=Shape.EXACT, threshold=threshold)


def test_a_hard_bound_recovers_and_proves():
    world = Setting(80, 40, 2.0, 0.4, "cells").world(0)
    guess = Bounded(uniform(2)).decode(world.transcript)
    assert (guess.values == world.secret).all()
    assert guess.proven.sum() > 70
    assert guess.basis.assuming == ""


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_and_proofs_are_those_of_all_bits_that_fit(seed):
    rng = np.random.default_rng([4, seed])
    every = np.array(list(product([0, 1], repeat=9)))
    queries = random_subsets(np.arange(9), 14, rng)
    secret = rng.integers(0, 2, 9)
    answers = Answers.to_all(queries.dot(secret.astype(float)) + rng.integers(-1, 2, 14))
    guess = Bounded(uniform(1), prior=0.5).decode(Transcript.of(queries, answers))
    fits = every[(np.abs(answers.values - every @ queries.matrix.T) <= 1).all(axis=1)]
    assert guess.proven.tolist() == (fits == fits[0]).all(axis=0).tolist()
    assert guess.probability == pytest.approx(fits.mean(axis=0), abs=0.12)
    assert (guess.probability[guess.proven] == guess.values[guess.proven]).all()
    # No guess may contradict a proof.
    assert (guess.values[guess.proven] == secret[guess.proven]).all()


def test_suppressed_counts_are_intervals():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], np.int8)
    queries = Queries(np.arange(3), matrix, Subsets())
    answers = Answers.to_all(np.array([np.nan, 2.0, 2.0]), np.array([False, True, True]))
    transcript = Transcript.of(queries, answers)
    guess = Bounded(exact(Range(0, 1))).decode(transcript)
    assert guess.values.tolist() == [0, 1, 1]
    assert guess.proven.all()
    # Released counts alone say the same here, but leave the first and third open without the last.
    rows = transcript.take(np.array([0, 1]))
    assert Bounded(exact(Range(0, 1))).decode(rows).proven.tolist() == [True, True, True]
    assert Bounded(exact()).decode(rows).proven.tolist() == [False, True, True]


def test_nobody_is_claimed_where_no_bits_fit():
    matrix = np.array([[1, 1, 0], [1, 1, 0]], np.int8)
    queries = Queries(np.arange(3), matrix, Subsets())
    guess = Bounded(exact()).decode(Transcript.of(queries, Answers.to_all(np.array([0.0, 2.0]))))
    assert not guess.claimed.any() and guess.expected_right is None
    assert "no bits fit" in guess.basis.proofs


def test_what_follows_from_an_inferred_bound_names_it():
    world = Setting(40, 20, 2.0, 0.4, "cells").world(0)
    guess = Bounded(uniform(2), stated=False).decode(world.transcript)
    assert guess.basis.assuming == "no answer is further than 2 from its count"


def test_without_time_nobody_is_proven():
    world = Setting(40, 20, 2.0, 0.4, "cells").world(0)
    guess = Bounded(uniform(2), time_limit=0.0).decode(world.transcript)
    assert not guess.proven.any() and guess.claimed.all()


def test_noise_without_a_bound_is_refused():
    with pytest.raises(InputError, match="gaussian noise has no bound"):
        Bounded(Noise())


def test_rounding_to_tens_is_decoded_though_its_noise_is_read_in_groups():
    """The commonest protection of all: the sizes of its errors differ by the size of the sets."""
    rng = np.random.default_rng(3)
    queries, secret = random_subsets(np.arange(60), 400, rng), rng.integers(0, 2, 60)
    answers = Answers.to_all(10 * np.rint(queries.dot(secret.astype(np.float64)) / 10))
    guess = AutoDecoder(time_limit=5.0).decode(Transcript.of(queries, answers))
    assert "no answer is further than 5 from its count" in guess.basis.picked_because
    assert (guess.values == secret).mean() > 0.9


@pytest.mark.slow
def test_recorded_answers_that_were_rounded_and_suppressed_are_decoded(shared):
    folder = shared / "data" / "faults" / "rounded-and-suppressed"
    queries = read_queries(folder / "queries.jsonl")
    guess = AutoDecoder().decode(read_transcript(folder / "answers.jsonl", queries))
    assert "no answer is further than 2 from its count" in guess.basis.picked_because
    assert guess.claimed.all()
