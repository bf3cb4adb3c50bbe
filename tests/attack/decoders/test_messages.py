import numpy as np
import pytest

from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.messages import Messages
from countleak.attack.guess import Passing
from countleak.attack.noise import Shape
from countleak.attack.queries.hashed import random_hashed
from countleak.attack.queries.ranges import range_queries
from countleak.attack.rules import Rules
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.budget.beside import predicted_in_words, predicted_right
from countleak.audit.scores import calibration
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase
from countleak.errors import InputError


def world(mechanism, n=2000, m=5000, seed=0, queries=None):
    rng = np.random.default_rng([seed, 3])
    queries = queries or random_hashed(np.arange(n), m, rng)
    bits = rng.integers(0, 2, n)
    released = mechanism.release(queries.dot(bits), np.random.SeedSequence(seed))
    return Transcript.of(queries, released), bits


@pytest.mark.parametrize(
    ("mechanism", "law", "shape"),
    [
        (Gaussian(12.0), "normal", Shape.GAUSSIAN),
        (Laplace(12.0), "Laplace", Shape.LAPLACE),
        (RoundedToBase(40), "rounded", Shape.EXACT),
    ],
)
def test_it_finds_the_law_and_its_probabilities_hold(mechanism, law, shape):
    transcript, bits = world(mechanism)
    guess = AutoDecoder().decode(transcript)
    basis = guess.basis
    assert isinstance(basis, Passing)
    assert (basis.law, basis.noise.shape, basis.misfit) == (law, shape, "")
    assert basis.sigma == pytest.approx(12.0, rel=0.06)
    right = (guess.values == bits).mean()
    assert right > 0.9
    assert abs(right - guess.expected_right) < 0.015
    assert calibration(guess.probability, bits).error < 0.02
    stated = {"normal": Rules(sigma=12.0), "Laplace": Rules(Shape.LAPLACE)}
    if law in stated:
        again = Messages(rules=stated[law]).decode(transcript)
        assert (again.values == guess.values).mean() > 0.995
        assert predicted_right(guess, len(transcript)) == pytest.approx(right, abs=0.02)
        assert "State evolution predicts 9" in predicted_in_words(guess, len(transcript))


def test_grossly_wrong_answers_are_a_mixture():
    transcript, bits = world(Gaussian(8.0))
    rng = np.random.default_rng(0)
    wild = np.where(rng.random(5000) < 0.03, rng.normal(0, 300, 5000), 0.0)
    answers = Answers.to_all(transcript.values + wild)
    guess = AutoDecoder().decode(Transcript.of(transcript.queries, answers))
    assert guess.basis.law == "mixed"
    assert (guess.values == bits).mean() > 0.97
    assert abs((guess.values == bits).mean() - guess.expected_right) < 0.02


def test_where_it_does_not_settle_no_probabilities_are_given():
    rng = np.random.default_rng(0)
    ids = np.arange(800)
    queries = range_queries(ids, {"age": ids}, 5000, rng)
    transcript, bits = world(Gaussian(3.0), n=800, queries=queries)
    guess = Messages().decode(transcript)
    assert guess.basis.misfit
    assert guess.probability is None
    assert (guess.values == bits).mean() > 0.6
    assert predicted_right(guess, 5000) is None
    # Few enough people have least squares with a standard error each instead.
    assert AutoDecoder().decode(transcript).basis.decoder == "least squares"


def test_known_people_are_taken_out():
    transcript, bits = world(Gaussian(12.0), m=3000)
    known = {int(i): int(bits[i]) for i in range(500)}
    guess = AutoDecoder(known=known).decode(transcript)
    assert (guess.values[:500] == bits[:500]).all()
    alone = AutoDecoder().decode(transcript)
    rest = slice(500, None)
    assert (guess.values[rest] == bits[rest]).mean() > (alone.values[rest] == bits[rest]).mean()


def test_least_squares_for_many_is_that_for_few(monkeypatch):
    transcript, _ = world(Gaussian(8.0), n=400, m=900)
    few = LeastSquares().decode(transcript)
    monkeypatch.setattr("countleak.attack.decoders.least_squares.MOST_PEOPLE", 100)
    many = LeastSquares().decode(transcript)
    # The level of the answers is left open, which costs a few bits.
    assert (many.values == few.values).mean() > 0.96
    assert many.basis.sigma == pytest.approx(few.basis.sigma, rel=0.03)
    assert many.basis.mean_standard_error == pytest.approx(few.basis.mean_standard_error, rel=0.2)


def test_a_prior_is_a_rate():
    with pytest.raises(InputError, match="lies between 0 and 1"):
        Messages(1.0)
