"""The decoders beyond the paper, on simulated worlds with known secrets."""

from itertools import product

import numpy as np
import pytest

from countleak import Answers, InputError, Queries, Rounding, random_subsets
from countleak.bench.worlds import Setting
from countleak.decoders.automatic import Automatic
from countleak.decoders.bayes import Bayes
from countleak.decoders.bounded import Bounded, forced_values
from countleak.decoders.known import Informed
from countleak.decoders.least_squares import LeastSquares
from countleak.decoders.polish import Polished, descend
from countleak.decoders.robust import Robust
from countleak.noise import Noise, Threshold
from countleak.scores import calibration


def accuracy(decoder, setting, trials=4):
    found = []
    for number in range(trials):
        world = setting.world(number)
        guess = decoder.decode(world.queries, world.answers)
        found.append((guess.values == world.secret).mean())
    return float(np.mean(found))


def test_squares_and_posteriors_beat_absolute_residuals_under_gaussian_noise():
    setting = Setting(m=750)
    paper = accuracy(Rounding(), setting)
    assert accuracy(LeastSquares(), setting) > paper + 0.01
    assert accuracy(Bayes(), setting) > paper + 0.01


def test_standard_errors_cover():
    setting, far = Setting(60, 600, 3.0), []
    for number in range(4):
        world = setting.world(number)
        guess = LeastSquares().decode(world.queries, world.answers)
        assert guess.basis["sigma"] == pytest.approx(3.0, rel=0.15)
        far.append(guess.basis["mean_standard_error"])
    # 1/se^2 is about m/(4 sigma^2) - n/(4 sigma^2), and 4 from the bit's own variance.
    assert np.mean(far) == pytest.approx((540 / 36 + 4) ** -0.5, rel=0.15)


def test_fewer_answers_than_people():
    assert accuracy(Bayes(), Setting(1000, 700, 2.0), trials=1) >= 0.99


def test_probabilities_mean_what_they_say():
    p, secret = [], []
    for number in range(10):
        world = Setting(m=350).world(number)
        p.append(Bayes().decode(world.queries, world.answers).probability)
        secret.append(world.secret)
    # The error of 1,000 honest claims in 10 bins is about .02 by itself.
    assert calibration(np.concatenate(p), np.concatenate(secret)).error < 0.05


def test_a_skewed_prior_is_used():
    setting = Setting(m=100, sigma=8.0, prior=0.1)
    assert accuracy(Bayes(), setting) > accuracy(LeastSquares(), setting) + 0.05
    assert accuracy(Bayes(prior=0.1), setting) > 0.85


@pytest.mark.parametrize(
    ("kind", "decoder"),
    [("wrong", Robust()), ("two groups", Robust(by="server")), ("offset", Robust())],
)
def test_robust_where_the_plain_one_is_misled(kind, decoder):
    setting = Setting(kind=kind)
    assert accuracy(decoder, setting) >= accuracy(Bayes(), setting) - 0.005
    assert accuracy(decoder, setting) > 0.93


def test_suppressed_answers_are_worth_more_than_zeros():
    setting = Setting(101, 150, 2.0, 12 / 101, "suppressed")
    censored = Bayes(Noise(threshold=Threshold(), floor=0.0))
    assert accuracy(censored, setting) > 0.985
    assert accuracy(Rounding(), setting) < 0.93


@pytest.mark.parametrize("setting", [Setting(80, 40, 2.0, 0.4, "cells")])
def test_a_hard_bound_recovers_and_proves(setting):
    world = setting.world(0)
    guess = Bounded(2.0).decode(world.queries, world.answers)
    assert (guess.values == world.secret).all()
    assert guess.forced is not None and guess.forced.sum() > 70


def test_forced_means_that_no_other_bits_fit():
    rng = np.random.default_rng(4)
    every = np.array(list(product([0, 1], repeat=9)))
    for seed in range(6):
        queries = random_subsets(np.arange(9), 14, np.random.default_rng(seed))
        secret = rng.integers(0, 2, 9)
        answers = Answers.to_all(queries.dot(secret.astype(float)) + rng.integers(-1, 2, 14))
        decoder = Bounded(1.0)
        guess = decoder.decode(queries, answers)
        fits = every[(np.abs(answers.values - every @ queries.matrix.T) <= 1).all(axis=1)]
        alone = (fits == fits[0]).all(axis=0)
        # What holds over the box holds over bits; the converse need not.
        assert not (guess.forced & ~alone).any()
        assert (guess.values[guess.forced] == secret[guess.forced]).all()
        assert not forced_values(decoder.problem(queries, answers), 1 - guess.values).any()


def test_suppressed_counts_are_intervals_for_the_bounded_decoder():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], np.int8)
    queries = Queries(np.arange(3), matrix, "subsets")
    answers = Answers.to_all(np.array([np.nan, 2.0, 2.0]), np.array([False, True, True]))
    guess = Bounded(0.4, suppressed_at_most=1.0).decode(queries, answers)
    assert guess.values.tolist() == [0, 1, 1]
    assert guess.forced.all()


@pytest.mark.parametrize(
    "decoder", [Rounding(), LeastSquares(), Bayes(), Automatic()], ids=lambda d: type(d).__name__
)
def test_what_is_known_beforehand_is_kept_and_helps(decoder):
    setting = Setting(60, 240, 4.0)
    alone, informed = [], []
    for number in range(4):
        world = setting.world(number)
        known = {person: int(world.secret[person]) for person in range(0, 60, 2)}
        guess = Informed(decoder, known).decode(world.queries, world.answers)
        assert (guess.values[::2] == world.secret[::2]).all()
        informed.append((guess.values == world.secret)[1::2].mean())
        plain = decoder.decode(world.queries, world.answers)
        alone.append((plain.values == world.secret)[1::2].mean())
    assert np.mean(informed) >= np.mean(alone) - 0.01


def test_what_is_known_must_be_asked_about():
    world = Setting(20, 60, 2.0).world(0)
    for known, complaint in (
        ({99: 1}, "no query is about that id"),
        ({1: 7}, "it must be 0 or 1"),
        (dict.fromkeys(range(20), 1), "nothing to find out"),
    ):
        with pytest.raises(InputError, match=complaint):
            Informed(LeastSquares(), known).decode(world.queries, world.answers)


def test_descent_ends_where_no_two_bits_are_better():
    rng = np.random.default_rng(2)
    A = rng.integers(0, 2, (40, 12)).astype(float)
    b = A @ rng.integers(0, 2, 12) + rng.normal(0, 3, 40)
    x = descend(A, b, np.zeros(12))
    least = ((b - A @ x) ** 2).sum()
    for i, j in product(range(12), repeat=2):
        other = x.copy()
        other[i] = 1 - other[i]
        if i != j:
            other[j] = 1 - other[j]
        assert ((b - A @ other) ** 2).sum() >= least - 1e-9


def test_polishing_finds_whole_secrets_more_often_and_proves_it():
    setting, plain, polished = Setting(50, 350, 2.0), 0, 0
    for number in range(12):
        world = setting.world(number)
        plain += (LeastSquares().decode(world.queries, world.answers).values == world.secret).all()
        guess = Polished().decode(world.queries, world.answers)
        polished += (guess.values == world.secret).all()
        assert guess.basis["optimal"] == "proven"
        assert guess.basis["squares_at_least"] == guess.basis["squares"]
    assert polished > plain
    unproven = Polished(prove_up_to=0).decode(world.queries, world.answers).basis
    assert unproven["optimal"] == "not proven"
    assert unproven["squares_at_least"] <= unproven["squares"]


@pytest.mark.parametrize(
    ("setting", "picked", "least"),
    [
        (Setting(), "gaussian noise of SD", 0.965),
        (Setting(kind="wrong"), "grossly wrong", 0.95),
        (Setting(kind="two groups"), "noise differs by server", 0.92),
        (Setting(101, 300, 2.0, 12 / 101, "suppressed"), "suppressed", 0.985),
        (Setting(80, 60, 4.0, 0.4, "cells"), "uniform noise: no answer is further than 4", 0.98),
        (Setting(100, 60, 1.0), "too few answers", 0.7),
    ],
    ids=lambda case: getattr(case, "kind", str(case)),
)
def test_auto_picks_by_what_it_sees_and_says_why(setting, picked, least):
    world = setting.world(1)
    guess = Automatic(prove=False).decode(world.queries, world.answers)
    assert picked in guess.basis["picked_because"]
    assert (guess.values == world.secret).mean() >= least


def test_claims_at_a_precision():
    world = Setting(m=350).world(0)
    guess = Bayes().decode(world.queries, world.answers)
    sure = guess.claims_at(0.95)
    assert 0 < sure.claimed.sum() < guess.claimed.sum()
    assert np.abs(guess.probability[sure.claimed] - 0.5).min() >= 0.45
    with pytest.raises(InputError, match="choose one from"):
        guess.claims_at(0.3)
    with pytest.raises(InputError, match="gives no probabilities"):
        Rounding().decode(world.queries, world.answers).claims_at(0.9)


@pytest.mark.parametrize("decoder", [Bayes(), Robust(), LeastSquares(), Automatic(), Polished()])
def test_awkward_answers_do_not_break_a_decoder(decoder):
    rng = np.random.default_rng(0)
    queries = random_subsets(np.arange(6), 30, rng)
    for values in (np.zeros(30), np.full(30, 3.0), np.full(30, 1e9), rng.normal(0, 1e-9, 30)):
        guess = decoder.decode(queries, Answers.to_all(values))
        assert np.isfinite(guess.margin).all()
        assert set(guess.values.tolist()) <= {0, 1}
