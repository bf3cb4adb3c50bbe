import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.noise import Below, Range, Threshold
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.readings import (
    base_of,
    highest_answer,
    log_by_chance,
    lowest_answer,
    readings,
    suppressed_range,
    zeros_hidden,
)
from countleak.attack.rules import Rules
from countleak.attack.transcript import Answers, Transcript

N, M = 60, 300


def world(seed, rate=0.5):
    rng = np.random.default_rng(seed)
    queries = random_subsets(np.arange(N), M, rng)
    secret = (rng.random(N) < rate).astype(np.int8)
    return queries, secret, queries.dot(secret.astype(np.float64)), rng


def hidden(queries, values, released):
    return Transcript.of(queries, Answers.to_all(values, released))


def test_limits_are_where_answers_pile_up():
    values = np.array([12.0] * 20 + [11.0] * 3 + [5.0, 6.0, 7.0])
    assert highest_answer(values) == 12
    assert lowest_answer(values) is None
    assert lowest_answer(-values) == -12
    assert highest_answer(np.arange(30.0)) is None
    assert highest_answer(np.full(9, 4.0)) is None
    # Zeros are counts that nothing is below.
    assert lowest_answer(np.array([0.0, 1.0, 2.0])) == 0


def test_rounding_is_no_pile():
    values = 2 * np.random.default_rng(0).integers(5, 20, 400).astype(np.float64)
    assert base_of(values) == 2
    assert highest_answer(values) is None
    assert lowest_answer(values) is None


def test_what_is_hidden_is_read_in_every_way_it_can_be():
    queries, _, counts, _ = world(0, 0.2)
    few = hidden(queries, counts, counts >= 5)
    kinds = [type(noise.threshold) for noise, _ in readings(few, Rules())]
    assert {Threshold, Range, Below, type(None)} <= set(kinds)
    assert suppressed_range(few) == Range(0, 4)
    stated = [noise.threshold for noise, _ in readings(few, Rules(suppressed=Range(0, 4)))]
    assert set(stated) == {Range(0, 4)}


def test_a_size_limit_explains_what_is_hidden():
    queries, _, counts, _ = world(1)
    sizes = queries.matrix.sum(axis=1)
    by_size = hidden(queries, counts, sizes >= np.median(sizes))
    by_chance = hidden(queries, counts, np.random.default_rng(2).random(M) < 0.5)
    assert log_by_chance(by_size) > log_by_chance(by_chance)
    assert log_by_chance(by_chance) == pytest.approx(M * np.log(0.5), rel=0.05)
    assert log_by_chance(hidden(queries, counts, np.ones(M, np.bool_))) == 0


def test_zeros_apart_from_all_others_are_taken_for_suppressed():
    queries, _, counts, _ = world(3, 0.3)
    low = np.where(counts < 8, 0.0, counts)
    read = zeros_hidden(hidden(queries, low, np.ones(M, np.bool_)), Rules())
    assert (read.released == (counts >= 8)).all()
    # Where ones and twos are answered as well, a zero is a zero; so it is where zeros are stated.
    plain = hidden(queries, np.maximum(counts - 6, 0), np.ones(M, np.bool_))
    assert zeros_hidden(plain, Rules()) is plain
    stated = hidden(queries, low, np.ones(M, np.bool_))
    assert zeros_hidden(stated, Rules(suppressed=Range(0, 7))) is stated


@pytest.mark.parametrize("why", ["size", "chance", "answer", "ceiling"])
def test_auto_is_right_whatever_hides_answers(why):
    """Read as low counts, what is hidden for another reason misled it beyond guessing."""
    queries, secret, counts, rng = world(4)
    answers = counts + np.rint(rng.normal(0, 1, M))
    sizes = queries.matrix.sum(axis=1)
    released = {
        "size": sizes >= np.quantile(sizes, 0.25),
        "chance": rng.random(M) < 0.75,
        "answer": answers >= np.quantile(answers, 0.25),
        "ceiling": np.ones(M, np.bool_),
    }[why]
    if why == "ceiling":
        answers = np.minimum(answers, np.quantile(answers, 0.7))
    guess = AutoDecoder().decode(hidden(queries, answers, released))
    right = (guess.values == secret).mean()
    assert right > 0.95
    if guess.expected_right is None:
        # A ceiling is in no model: where it shows, probabilities are withdrawn and it is said why.
        assert why == "ceiling"
        assert "do not grow with their counts" in guess.basis.misfit
    else:
        assert abs(guess.expected_right - right) < 0.05
