import numpy as np
import pytest

from countleak import (
    Answers,
    Condition,
    Simulated,
    SimulatedDiffix,
    ask,
    ask_into,
    generated_census,
    random_subsets,
    reconstruct,
    score,
)

PEOPLE = generated_census(40, seed=1)
CONDITION = Condition.parse("sex = 1")
QUERIES = random_subsets(PEOPLE.ids, 500, np.random.default_rng(0))


class Failing:
    """A target that answers in small batches and dies after a few of them."""

    def __init__(self, target, batches):
        self.target, self.batches = target, batches

    def answer(self, queries, positions):
        for part in np.array_split(positions, 25)[: self.batches]:
            yield from self.target.answer(queries, part)
        raise ConnectionError


def test_reconstruct_asks_and_decodes():
    run = reconstruct(QUERIES, Simulated(PEOPLE, CONDITION, SimulatedDiffix(1.0)))
    assert isinstance(run.answers, Answers)
    assert score(run.guess, PEOPLE.secret(CONDITION)).accuracy == 1.0


def test_what_was_answered_before_a_failure_is_kept_and_not_asked_again(tmp_path):
    target = Simulated(PEOPLE, CONDITION, SimulatedDiffix(4.0))
    path = tmp_path / "answers.jsonl"
    heard = []
    with pytest.raises(ConnectionError):
        ask_into(path, QUERIES, Failing(target, 7), "simulated", heard.append)
    assert heard == [0] + [20] * 7
    asked = []

    class Watching:
        def answer(self, queries, positions):
            asked.extend(positions.tolist())
            yield from target.answer(queries, positions)

    resumed = ask_into(path, QUERIES, Watching(), "simulated")
    assert asked == list(range(140, 500))
    assert np.array_equal(resumed.values, ask(QUERIES, target).values, equal_nan=True)
