import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.auto import MOST_SAMPLED, AutoDecoder
from countleak.attack.noise import Shape
from countleak.attack.posterior import fit
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.rules import Rules
from countleak.attack.transcript import Answers, Transcript


@pytest.mark.parametrize(
    ("setting", "picked", "least"),
    [
        (Setting(), "gaussian noise of SD", 0.965),
        (Setting(kind="wrong"), "grossly wrong", 0.95),
        pytest.param(
            Setting(kind="two groups"), "noise differs by server", 0.92, marks=pytest.mark.slow
        ),
        (Setting(101, 300, 2.0, 12 / 101, "suppressed"), "suppressed", 0.985),
        (
            Setting(80, 60, 4.0, 0.4, "cells"),
            "no answer is further than 4 from its",
            0.98,
        ),
        (Setting(100, 60, 1.0), "too few answers", 0.7),
    ],
    ids=lambda case: getattr(case, "kind", str(case)),
)
def test_auto_picks_by_what_it_sees_and_says_why(setting, picked, least):
    world = setting.world(1)
    guess = AutoDecoder(time_limit=0.0).decode(world.transcript)
    assert picked in guess.basis.picked_because
    assert (guess.values == world.secret).mean() >= least


def test_auto_fits_once(monkeypatch):
    """The starts of the diagnosis serve the decoder as well.

    They take one set of eigenvectors, the diagnosis of errors per person another, the check of the
    fit a third, and that of the earlier answers against the later ones a fourth.
    """
    calls = {"eigh": 0, "box_least_squares": 0}

    def counted(name, function):
        def call(*given, **named):
            # Those of some of the people are of what ones add.
            calls[name] += name != "eigh" or given[0].shape[-1] == 60
            return function(*given, **named)

        return call

    monkeypatch.setattr(np.linalg, "eigh", counted("eigh", np.linalg.eigh))
    monkeypatch.setattr(
        fit, "box_least_squares", counted("box_least_squares", fit.box_least_squares)
    )
    guess = AutoDecoder().decode(Setting(60, 400, 3.0).world(2).transcript)
    assert "gaussian" in guess.basis.picked_because
    assert calls == {"eigh": 4, "box_least_squares": 1}


def test_known_people_are_used_and_counted():
    world = Setting(60, 240, 4.0).world(0)
    guess = AutoDecoder(known={3: int(world.secret[3])}).decode(world.transcript)
    assert guess.basis.known == 1
    assert guess.values[3] == world.secret[3]
    assert guess.probability[3] == world.secret[3]


@pytest.mark.parametrize(("n", "m"), [(60, 400), (60, 30), (100, 50)])
def test_exact_answers_prove_everyone(n, m):
    rng = np.random.default_rng([n, m])
    queries = random_subsets(np.arange(n), m, rng)
    secret = rng.integers(0, 2, n)
    transcript = Transcript.of(queries, Answers.to_all(queries.dot(secret.astype(float))))
    guess = AutoDecoder().decode(transcript)
    assert guess.basis.picked_because == "every answer is the exact count, by the answers"
    assert guess.implied.all() and not guess.proven.any() and guess.expected_right == 1.0
    assert (guess.values == secret).all()
    told = AutoDecoder(rules=Rules(shape=Shape.EXACT)).decode(transcript)
    assert told.basis.picked_because == "every answer is the exact count, as stated"
    assert told.proven.all() and not told.implied.any()
    assert (guess.basis.assuming, told.basis.assuming) == ("every answer is the exact count", "")


def test_rounded_noise_is_not_read_as_rounding():
    """Noise of SD 3, then rounding to 5: some bits keep to the bound that rounding would have."""
    rng = np.random.default_rng(1)
    queries = random_subsets(np.arange(100), 130, rng)
    counts = queries.dot(rng.integers(0, 2, 100).astype(float))
    values = 5 * np.rint((counts + rng.normal(0, 3, 130)) / 5)
    guess = AutoDecoder().decode(Transcript.of(queries, Answers.to_all(values)))
    assert not guess.proven.any()
    assert "rounded to multiples of 5" in guess.basis.picked_because


def test_random_rounding_is_decoded_by_its_law():
    rng = np.random.default_rng(2)
    queries = random_subsets(np.arange(100), 400, rng)
    secret = rng.integers(0, 2, 100)
    counts = queries.dot(secret.astype(float))
    values = 3 * np.floor(counts / 3 + rng.random(400))
    guess = AutoDecoder(time_limit=0.0).decode(Transcript.of(queries, Answers.to_all(values)))
    assert "no answer is further than 2 from its count" in guess.basis.picked_because
    assert (guess.values == secret).all()


def test_a_bound_without_a_law_proves_and_the_law_is_inferred():
    """Noise that only adds keeps within a bound, but is not uniform within it."""
    rng = np.random.default_rng(5)
    queries = random_subsets(np.arange(40), 400, rng)
    secret = rng.integers(0, 2, 40)
    counts = queries.dot(secret.astype(np.float64))
    transcript = Transcript.of(queries, Answers.to_all(counts + rng.integers(0, 3, 400)))
    guess = AutoDecoder(rules=Rules(bound=2)).decode(transcript)
    assert (guess.values == secret).all()
    assert (guess.values == secret)[guess.proven].all()
    assert not guess.implied.any()
    assert guess.expected_right > 0.99


def test_rules_that_the_answers_contradict_claim_nobody():
    queries = random_subsets(np.arange(20), 100, np.random.default_rng(6))
    values = np.random.default_rng(7).integers(0, 20, 100).astype(np.float64)
    guess = AutoDecoder(rules=Rules(bound=1)).decode(Transcript.of(queries, Answers.to_all(values)))
    assert not guess.claimed.any()


def test_answers_that_say_nothing_are_found_out():
    """Every answer is that to the question before: no confidence may come of that."""
    rng = np.random.default_rng(8)
    queries = random_subsets(np.arange(100), 400, rng)
    secret = rng.integers(0, 2, 100)
    counts = queries.dot(secret.astype(np.float64))
    delayed = np.roll(counts, 1) + np.rint(rng.normal(0, 1, 400))
    guess = AutoDecoder().decode(Transcript.of(queries, Answers.to_all(delayed)))
    assert guess.probability is None
    assert guess.expected_right is None
    assert "answers" in guess.basis.misfit


@pytest.mark.parametrize(("wrong", "picked"), [(0.0, "least squares"), (0.03, "the paper's")])
def test_more_answers_than_are_sampled_are_decoded_by_a_program(wrong, picked):
    rng = np.random.default_rng(5)
    secret = rng.integers(0, 2, 60)
    queries = random_subsets(np.arange(60), MOST_SAMPLED + 100, rng)
    values = queries.dot(secret) + np.rint(rng.normal(0, 15, len(queries)))
    values += 400.0 * (rng.random(len(queries)) < wrong)
    released = rng.random(len(queries)) < 0.995
    guess = AutoDecoder().decode(Transcript.of(queries, Answers.to_all(values, released)))
    assert picked in guess.basis.picked_because
    assert (guess.values == secret).mean() > 0.95
    assert not guess.basis.misfit
