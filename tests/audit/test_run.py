from dataclasses import replace

import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder, decoder_for
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.categorical import Categorical
from countleak.attack.decoders.sums import Sums
from countleak.attack.design import Information, Variance
from countleak.attack.guess import Basis, Guess
from countleak.attack.guess_file import read_guess, write_guess
from countleak.attack.noise import UNKNOWN, Noise
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries.digits import Digits
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Bit, Category, Number
from countleak.attack.transcript import Journal, Transcript, read_transcript
from countleak.audit.people import People, generated_bank, generated_census
from countleak.audit.run import (
    Asking,
    ask,
    ask_in_steps,
    ask_into,
    audit,
    default_queries,
    reconstruct,
)
from countleak.audit.scores import score
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.simulated import Gaussian, Simulated, SimulatedDiffix, Uniform
from countleak.errors import InputError

PEOPLE = generated_census(40, seed=1)
SECRET = Bit("sex = 1")
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
    found = reconstruct(QUERIES, Simulated(PEOPLE, SECRET, SimulatedDiffix(1.0)))
    assert isinstance(found.transcript, Transcript)
    assert score(found.guess, PEOPLE.truth(SECRET)).accuracy == 1.0
    named = reconstruct(QUERIES, Simulated(PEOPLE, SECRET, SimulatedDiffix(1.0)), secret="sex = 1")
    assert np.array_equal(named.guess.probability, found.guess.probability)
    least = reconstruct(
        QUERIES, Simulated(PEOPLE, SECRET, SimulatedDiffix(1.0)), decoder=Bayes(name="mine")
    )
    assert least.guess.basis.decoder == "mine"


def test_what_was_answered_before_a_failure_is_kept_and_not_asked_again(tmp_path):
    target = Simulated(PEOPLE, SECRET, SimulatedDiffix(4.0))
    path = tmp_path / "answers.jsonl"
    heard = []
    with pytest.raises(ConnectionError):
        ask_into(
            Journal(path, QUERIES, SECRET, "simulated"),
            Failing(target, 7),
            lambda *counts: heard.append(counts),
        )
    assert heard == [(20 * k, 500) for k in range(8)]
    watching = Watching(target)
    resumed = ask_into(Journal(path, QUERIES, SECRET, "simulated"), watching)
    assert watching.asked == list(range(140, 500))
    assert np.array_equal(resumed.values, ask(QUERIES, target).values, equal_nan=True)


@pytest.fixture
def fine(monkeypatch):
    """A quick decoder that may be off by an offset, whatever the secret."""
    decoder = Bayes(Noise(offset=UNKNOWN), effort=Effort(2, 2, 20, 40))
    monkeypatch.setattr("countleak.attack.decoders.auto.decoder_for", lambda *given: decoder)


@pytest.mark.usefixtures("fine")
@pytest.mark.parametrize("goal", [Information(), Variance(), None], ids=str)
def test_asking_in_steps_stops_once_it_is_sure_and_asks_nothing_twice(goal):
    target = Watching(Simulated(PEOPLE, SECRET, SimulatedDiffix(1.5)))
    asking = Asking(until=0.97, first=40, batch=30, goal=goal)
    steps = list(ask_in_steps(QUERIES, target, SECRET, asking))
    assert [step.reached for step in steps] == [False] * (len(steps) - 1) + [True]
    assert [len(step.transcript) for step in steps] == [40 + 30 * k for k in range(len(steps))]
    assert len(target.asked) == len(set(target.asked)) == len(steps[-1].transcript) < len(QUERIES)
    assert steps[-1].confidence == steps[-1].guess.expected_right >= 0.97
    assert score(steps[-1].guess, PEOPLE.truth(SECRET)).accuracy > 0.9


@pytest.mark.usefixtures("fine")
def test_asking_in_steps_asks_no_more_than_the_limit_or_the_pool():
    target = Simulated(PEOPLE, SECRET, SimulatedDiffix(8.0))
    asking = Asking(until=1.0, first=50, batch=40, most=100)
    steps = list(ask_in_steps(QUERIES, target, SECRET, asking))
    assert [len(step.transcript) for step in steps] == [50, 90, 100]
    assert not steps[-1].reached
    few = QUERIES.take(np.arange(60))
    assert len(list(ask_in_steps(few, target, SECRET, asking))[-1].transcript) == 60


@pytest.mark.usefixtures("fine")
def test_without_a_goal_to_reach_everything_is_asked_at_once():
    target = Watching(Simulated(PEOPLE, SECRET, SimulatedDiffix(8.0)))
    (step,) = ask_in_steps(QUERIES, target, SECRET)
    assert sorted(target.asked) == list(range(500))
    assert not step.reached
    (step,) = ask_in_steps(QUERIES, target, SECRET, Asking(most=120))
    assert len(step.transcript) == 120


@pytest.mark.usefixtures("fine")
def test_asking_in_steps_resumes_from_its_journal(tmp_path):
    path, system = tmp_path / "answers.jsonl", Simulated(PEOPLE, SECRET, SimulatedDiffix(3.0))
    asking = Asking(until=1.0, first=60, batch=40, most=140)

    def journal():
        return Journal(path, QUERIES, SECRET, "s")

    with pytest.raises(ConnectionError):
        list(ask_in_steps(QUERIES, Failing(system, 9), SECRET, asking, journal()))
    known = journal().answers
    assert 0 < len(known) < 60
    heard, target = [], Watching(system)
    steps = list(
        ask_in_steps(
            QUERIES, target, SECRET, asking, journal(), lambda *counts: heard.append(counts)
        )
    )
    assert heard[0] == (len(known), 140)
    assert heard[-1] == (140, 140)
    assert [len(step.transcript) for step in steps] == [60, 100, 140]
    assert not set(target.asked) & set(known.query.tolist())
    whole = read_transcript(path, QUERIES, partial=True)
    assert np.array_equal(whole.queries.matrix, steps[-1].transcript.queries.matrix)
    assert np.array_equal(whole.values, steps[-1].transcript.values, equal_nan=True)
    # As if it had never been interrupted.
    straight = list(ask_in_steps(QUERIES, system, SECRET, asking))
    assert straight[-1].transcript.queries.digest == whole.queries.digest
    # A finished audit asks nothing more.
    assert list(ask_in_steps(QUERIES, Failing(system, 0), SECRET, asking, journal()))


def test_without_probabilities_nothing_is_expected_unless_all_is_proven():
    values = np.array([1, 0, 1, 1], dtype=np.int8)
    everyone, basis = np.ones(4, np.bool_), Basis(decoder="by hand")
    guess = Guess(np.arange(4), values, everyone, basis, margin=np.full(4, 0.9))
    some = replace(guess, forced=np.array([True, True, False, False]))
    assert some.expected_right is None
    assert guess.expected_right is None
    assert replace(guess, forced=everyone).expected_right == 1.0
    chances = replace(guess, probability=np.array([0.9, 0.2, 0.7, 1.0]))
    assert chances.expected_right == pytest.approx((0.9 + 0.8 + 0.7 + 1.0) / 4)
    assert not guess.proven.any()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"until": 0.5}, "choose a confidence above 0.5"),
        ({"until": 1.5}, "at most 1"),
        ({"until": float("nan")}, "choose a confidence above 0.5"),
        ({"batch": 0}, "batch is 0; ask at least one query"),
        ({"first": 0}, "first is 0"),
        ({"most": 0}, "most is 0"),
    ],
    ids=str,
)
def test_bad_ways_of_asking_are_refused(words, complaint):
    with pytest.raises(InputError, match=complaint):
        Asking(**words)


def test_questions_about_values_are_not_chosen_by_a_goal():
    bank = generated_bank(3)
    people = replace(
        bank, ids=bank.ids[:30], columns={name: v[:30] for name, v in bank.columns.items()}
    )
    secret = people.named("status")
    queries = random_subsets(people.ids, 60, np.random.default_rng(0))
    asking = Asking(until=1.0, first=40, batch=20, goal=Information())
    steps = ask_in_steps(queries, Simulated(people, secret, Gaussian(3.0)), secret, asking)
    with pytest.raises(InputError, match="chosen by a goal for bits only"):
        list(steps)


@pytest.mark.parametrize(
    ("secret", "kind"),
    [(SECRET, AutoDecoder), (Category("s", ("A", "B")), Categorical), (Number("n"), Sums)],
)
def test_every_kind_of_secret_has_its_decoder(secret, kind):
    assert type(decoder_for(secret)) is kind


def journey(tmp_path, people, secret, mechanism, m):
    """Asked into a journal, decoded, written, read back and scored, by files alone."""
    queries = random_subsets(people.ids, m, np.random.default_rng(0))
    target = Simulated(people, secret, mechanism, 2)
    answers = tmp_path / "answers.jsonl"
    asked = ask_into(Journal(answers, queries, secret, "simulated"), target)
    transcript = read_transcript(answers, queries)
    assert transcript.names == asked.names == secret.names
    assert np.array_equal(transcript.values, ask(queries, target, secret).values, equal_nan=True)
    write_guess(tmp_path / "guess.jsonl", decoder_for(secret).decode(transcript), secret)
    guess, named = read_guess(tmp_path / "guess.jsonl")
    assert named == secret
    return guess, score(guess, people.truth(named))


def first_of_the_bank(count):
    bank = generated_bank(3)
    columns = {name: values[:count] for name, values in bank.columns.items()}
    return replace(bank, ids=bank.ids[:count], columns=columns)


def test_values_go_all_the_way(tmp_path):
    people = first_of_the_bank(40)
    guess, found = journey(tmp_path, people, people.named("status"), Gaussian(2.0), 200)
    assert guess.names == tuple(np.unique(people.columns["status"]))
    assert found.accuracy > 0.9 > found.baseline
    assert guess.confidence.shape == (40,)
    assert guess.expected_right == pytest.approx(found.accuracy, abs=0.1)


def test_a_value_that_is_not_named_is_another(tmp_path):
    people = first_of_the_bank(40)
    secret = people.named("status IN ('A', 'C', ...)")
    guess, found = journey(tmp_path, people, secret, Gaussian(2.0), 200)
    assert guess.names == ("A", "C", "other")
    assert found.accuracy > 0.9
    others = ~np.isin(people.columns["status"], ["A", "C"])
    assert others.any()
    assert ((guess.values == "other") == others).mean() > 0.9
    assert {row["truth"] for row in found.confusion.by_value()} == {"A", "C", "other"}


def test_numbers_go_all_the_way(tmp_path):
    people = first_of_the_bank(40)
    guess, found = journey(tmp_path, people, Number("amount"), Gaussian(5_000.0), 200)
    assert found.accuracy > 0.8 > found.baseline
    assert found.errors.r_squared > 0.95
    assert guess.confidence is None
    assert guess.intervals.level == 0.95


def test_a_category_of_numbers_or_truths_goes_all_the_way(tmp_path):
    people = replace(PEOPLE, columns={"sex": PEOPLE.columns["sex"] == 1})
    guess, found = journey(tmp_path, people, people.named("sex"), Gaussian(1.0), 200)
    assert guess.names == ("False", "True")
    assert found.accuracy == 1.0


@pytest.mark.parametrize(
    ("ids", "count", "family", "size"),
    [
        (np.arange(1, 31), None, Digits(), 3500),
        (np.arange(1, 31), 100, Digits(), 100),
        (np.arange(1, 31), 5000, Subsets(), 5000),
        (np.arange(30), None, Subsets(), 1000),
        (id_array([f"p{i:02}" for i in range(30)]), 50, Subsets(), 50),
    ],
)
def test_questions_are_digits_where_the_ids_allow_it(ids, count, family, size):
    queries = default_queries(People(ids, {}), count)
    assert queries.family == family
    assert len(queries) == size


def test_a_target_that_counts_something_else_is_refused():
    """Its answers would look as if nothing leaked."""
    people = generated_bank(7).between(2000, 2999)
    for counted in (Bit("status = 'A'"), None, Category("status", ("A", "B", "C", "D"))):
        with pytest.raises(InputError, match="not status = 'C'"):
            audit(people, secret="status = 'C'", target=Simulated(people, counted, Gaussian(1.0)))
    with pytest.raises(InputError, match="counts status = 'A', not status = 'C'"):
        audit(people, secret="status = 'C'", target=Diffix(people, "status = 'A'"))


@pytest.mark.parametrize(
    ("secret", "mechanism"),
    [("status = 'C'", Gaussian(2.0)), ("status = 'C'", Uniform(1)), ("status", Gaussian(2.0))],
    ids=["bayes", "bounded", "categorical"],
)
def test_what_a_decoder_has_done_so_far_is_heard(secret, mechanism):
    people = generated_bank(3).between(2000, 2400)
    secret, heard = people.named(secret), []
    queries = random_subsets(people.ids, 200, np.random.default_rng(0))
    transcript = ask(queries, Simulated(people, secret, mechanism), secret)
    decoder = decoder_for(secret, progress=lambda *counts: heard.append(counts))
    decoder.decode(transcript)
    assert len(heard) > 1
    assert all(0 <= done <= total for done, total in heard)
