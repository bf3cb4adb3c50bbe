import numpy as np
import pytest

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.design import Information, Variance
from countleak.attack.guess import Guess
from countleak.attack.noise import Noise
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Journal
from countleak.audit.people import generated_census
from countleak.audit.run import Adaptive, ask, ask_into, audit_adaptively, confidence, reconstruct
from countleak.audit.scores import score
from countleak.audit.targets.simulated import Simulated, SimulatedDiffix
from countleak.errors import InputError

PEOPLE = generated_census(40, seed=1)
CONDITION = Bit("sex = 1")
QUERIES = random_subsets(PEOPLE.ids, 500, np.random.default_rng(0))


class Failing:
    """A target that answers in small batches and dies after a few of them."""

    def __init__(self, target, batches):
        self.target, self.batches = target, batches

    def answer(self, queries, positions):
        for part in np.array_split(positions, 25)[: self.batches]:
            yield from self.target.answer(queries, part)
        raise ConnectionError


class Watching:
    """A target that remembers what it was asked."""

    def __init__(self, target):
        self.target, self.asked = target, []

    def answer(self, queries, positions):
        self.asked += positions.tolist()
        yield from self.target.answer(queries, positions)


def test_reconstruct_asks_and_decodes():
    run = reconstruct(QUERIES, Simulated(PEOPLE, CONDITION, SimulatedDiffix(1.0)))
    assert isinstance(run.answers, Answers)
    assert score(run.guess, PEOPLE.truth(CONDITION)).accuracy == 1.0


def test_what_was_answered_before_a_failure_is_kept_and_not_asked_again(tmp_path):
    target = Simulated(PEOPLE, CONDITION, SimulatedDiffix(4.0))
    path = tmp_path / "answers.jsonl"
    heard = []
    with pytest.raises(ConnectionError):
        ask_into(path, QUERIES, Failing(target, 7), "simulated", heard.append)
    assert heard == [0] + [20] * 7
    watching = Watching(target)
    resumed = ask_into(path, QUERIES, watching, "simulated")
    assert watching.asked == list(range(140, 500))
    assert np.array_equal(resumed.values, ask(QUERIES, target).values, equal_nan=True)


FINE = Bayes(Noise(offset=None), effort=Effort(2, 2, 20, 40))


@pytest.mark.parametrize("goal", [Information(), Variance(), None], ids=str)
def test_an_adaptive_audit_stops_once_it_is_sure_and_asks_nothing_twice(goal):
    target = Watching(Simulated(PEOPLE, CONDITION, SimulatedDiffix(1.5)))
    how = Adaptive(0.97, first=40, batch=30, goal=goal, decoder=FINE)
    steps = list(audit_adaptively(QUERIES, target, how))
    assert [step.reached for step in steps] == [False] * (len(steps) - 1) + [True]
    assert [len(step.answers) for step in steps] == [40 + 30 * k for k in range(len(steps))]
    assert len(target.asked) == len(set(target.asked)) == len(steps[-1].answers) < len(QUERIES)
    assert steps[-1].confidence == confidence(steps[-1].guess) >= 0.97
    assert score(steps[-1].guess, PEOPLE.truth(CONDITION)).accuracy > 0.9


def test_an_adaptive_audit_asks_no_more_than_the_limit_or_the_pool():
    target = Simulated(PEOPLE, CONDITION, SimulatedDiffix(8.0))
    how = Adaptive(1.0, first=50, batch=40, most=100, decoder=FINE)
    steps = list(audit_adaptively(QUERIES, target, how))
    assert [len(step.answers) for step in steps] == [50, 90, 100]
    assert not steps[-1].reached
    few = QUERIES.take(np.arange(60))
    assert len(list(audit_adaptively(few, target, how))[-1].answers) == 60


def test_an_adaptive_audit_goes_on_from_its_journal(tmp_path):
    path, system = tmp_path / "answers.jsonl", Simulated(PEOPLE, CONDITION, SimulatedDiffix(3.0))
    how = Adaptive(1.0, first=60, batch=40, most=140, decoder=FINE)
    with pytest.raises(ConnectionError):
        list(audit_adaptively(QUERIES, Failing(system, 9), how, Journal(path, QUERIES, "s")))
    known = read_answers(path, QUERIES, partial=True)
    assert 0 < len(known) < 60
    heard, target = [], Watching(system)
    journal = Journal(path, QUERIES, "s")
    steps = list(audit_adaptively(QUERIES, target, how, journal, heard.append))
    assert heard[0] == len(known)
    assert [len(step.answers) for step in steps] == [60, 100, 140]
    assert not set(target.asked) & set(known.query.tolist())
    whole = read_answers(path, QUERIES, partial=True)
    assert np.array_equal(whole.query, steps[-1].answers.query)
    # As if it had never been interrupted.
    straight = list(audit_adaptively(QUERIES, system, how))
    assert np.array_equal(straight[-1].answers.query, whole.query)
    # A finished audit asks nothing more.
    assert list(audit_adaptively(QUERIES, Failing(system, 0), how, Journal(path, QUERIES, "s")))


def test_what_is_proven_counts_as_sure_and_all_else_as_open():
    ids = np.arange(4)
    values = np.array([1, 0, 1, 1], dtype=np.int8)
    claimed, margin = np.ones(4, np.bool_), np.full(4, 0.9)
    proven = Guess(ids, values, claimed, margin, forced=np.array([True, True, False, False]))
    assert confidence(proven) == 0.75
    assert confidence(Guess(ids, values, claimed, margin)) == 0.5


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"until": 0.5}, "choose a confidence above 0.5"),
        ({"until": 1.5}, "at most 1"),
        ({"batch": 0}, "batch is 0; ask at least one query"),
        ({"first": 0}, "first is 0"),
        ({"most": 0}, "most is 0"),
    ],
    ids=str,
)
def test_bad_ways_of_asking_are_refused(words, complaint):
    with pytest.raises(InputError, match=complaint):
        Adaptive(**words)
