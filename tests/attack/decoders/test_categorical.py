"""All values of a secret together: against enumeration, against single bits, against the truth."""

from itertools import product

import numpy as np
import pytest

from countleak import (
    Answers,
    Gaussian,
    InputError,
    Queries,
    ShapeError,
    Simulated,
    SimulatedDiffix,
    ask,
    generated_bank,
    random_subsets,
)
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.categorical import Categorical, Categories, assumed_noise
from countleak.attack.noise import Noise, Threshold, Values, log_released
from countleak.attack.posterior.sampling import Effort
from countleak.audit.people import STATUS_SHARES, Condition

BANK = generated_bank(3)
NAMES = tuple(STATUS_SHARES)


def asked_about(n, m, mechanism, names=NAMES, seed=0):
    """Questions of its own about each value, and their answers."""
    asked = {}
    for v, name in enumerate(names):
        queries = random_subsets(BANK.ids[:n], m, np.random.default_rng([seed, v]))
        system = Simulated(BANK, Condition("status", "=", name), mechanism, (seed, v))
        asked[name] = queries, ask(queries, system)
    return asked


@pytest.mark.parametrize("shape_of_noise", ["gaussian", "clamped"])
def test_probabilities_equal_those_of_all_possibilities(shape_of_noise):
    n, names, sigma = 6, ("a", "b", "c"), 1.5
    rng = np.random.default_rng(2)
    truth = np.array([0, 1, 2, 0, 1, 0])
    asked = {}
    for v, name in enumerate(names):
        queries = random_subsets(np.arange(n), 4, rng)
        values = np.round(queries.dot((truth == v) * 1.0) + rng.normal(0, sigma, 4))
        asked[name] = queries, Answers.to_all(values)
    # A floor that no answer reaches leaves the law as it is and sends the sampler another way.
    noise = Noise(sigma, wrong=1e-9 if shape_of_noise == "clamped" else 0.0)
    rates = {"a": 0.5, "b": 0.3, "c": 0.2}
    found = Categorical(noise, rates=rates, effort=Effort(4, 3, 200, 3000), seed=1).decode(asked)
    weights, chosen = [], list(product(range(3), repeat=n))
    for values in chosen:
        at = np.array(values)
        log = np.log([rates[names[v]] for v in values]).sum()
        for v, (queries, answers) in enumerate(asked.values()):
            left = answers.values - queries.dot((at == v) * 1.0)
            whole = shape_of_noise == "clamped"
            log += log_released(left, Values(np.array([sigma]), 0.0, 0.0), noise.shape, whole).sum()
        weights.append(log)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    exact = np.array(
        [[weight[np.array(chosen)[:, j] == v].sum() for v in range(3)] for j in range(n)]
    )
    assert np.abs(found.probability - exact).max() < 0.03


def surprise(probability, truth):
    """The mean of -log probability of the truth: smaller is better, and never by luck alone."""
    place = np.array([NAMES.index(value) for value in truth])
    chance = probability / probability.sum(axis=1, keepdims=True)
    return -np.log(np.maximum(chance[np.arange(truth.size), place], 1e-4)).mean()


def test_together_is_better_than_one_by_one():
    truth, gains = BANK.columns["status"][:60], []
    for seed in range(4):
        asked = asked_about(60, 150, Gaussian(3.0), seed=seed)
        together = Categorical().decode(asked)
        apart = np.array([Bayes().decode(*part).probability for part in asked.values()]).T
        gains.append(surprise(apart, truth) - surprise(together.probability, truth))
        assert (together.values == truth).mean() > 0.85
    assert np.mean(gains) > 0.02


def test_a_person_has_exactly_one_value():
    found = Categorical().decode(asked_about(30, 60, Gaussian(2.0)))
    assert found.probability.sum(axis=1) == pytest.approx(1.0)
    assert found.names == NAMES
    assert found.claimed.all()
    bits = [found.guess(name) for name in NAMES]
    assert np.allclose(sum(guess.probability for guess in bits), 1.0)
    assert found.basis["sigma"][0] == pytest.approx(2.0, rel=0.2)
    assert sum(found.basis["rates"].values()) == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_guess():
    asked = asked_about(25, 60, Gaussian(2.0))
    one, two = (Categorical(seed=4).decode(asked) for _ in range(2))
    assert np.array_equal(one.probability, two.probability)


def test_one_value_and_the_rest_is_a_bit():
    asked = asked_about(40, 120, Gaussian(3.0), names=("C",))
    bits = Bayes(seed=1).decode(*asked["C"]).probability
    found = Categorical(other="another", seed=1).decode(asked)
    assert found.names == ("C", "another")
    assert np.abs(found.probability[:, 0] - bits).mean() < 0.02


def test_suppressed_answers_speak_of_the_rare_values():
    asked = asked_about(60, 400, SimulatedDiffix(3.0))
    held_back = sum(int((~answers.released).sum()) for _, answers in asked.values())
    truth = BANK.columns["status"][:60]
    with_them = Categorical().decode(asked)
    released = {
        name: (q, Answers(a.query[a.released], a.values[a.released], a.released[a.released]))
        for name, (q, a) in asked.items()
    }
    without = Categorical().decode(released)
    assert held_back > 300
    assert surprise(with_them.probability, truth) < surprise(without.probability, truth)
    assert (with_them.values == truth).mean() > 0.9


def test_the_noise_assumed_has_the_floor_and_threshold_that_were_seen():
    seen = assumed_noise(list(asked_about(60, 200, SimulatedDiffix(3.0)).values()))
    assert seen.threshold == Threshold()
    plain = assumed_noise(list(asked_about(60, 50, Gaussian(3.0)).values()))
    assert plain.threshold is None
    assert plain.floor is None


def test_known_people_stay_and_help():
    asked, truth = asked_about(30, 25, Gaussian(2.0)), BANK.columns["status"][:30]
    known = {int(BANK.ids[j]): str(truth[j]) for j in range(0, 30, 2)}
    found = Categorical(known=known).decode(asked)
    assert (found.values[::2] == truth[::2]).all()
    assert (found.sureness[::2] == 1).all()
    alone = Categorical().decode(asked)
    assert surprise(found.probability[1::2], truth[1::2]) < surprise(
        alone.probability[1::2], truth[1::2]
    )


def test_claims_at_a_precision_are_the_sure_ones():
    found = Categorical().decode(asked_about(40, 80, Gaussian(3.0)))
    sure = found.claims_at(0.9)
    assert np.array_equal(sure.claimed, found.sureness >= 0.9)
    assert 0 < sure.claimed.sum() < 40


def one_query(ids):
    queries = Queries(np.array(ids), np.ones((1, len(ids)), np.int8), "one")
    return queries, Answers.to_all(np.array([1.0]))


@pytest.mark.parametrize(
    ("decoder", "asked", "complaint"),
    [
        (Categorical(), {"A": one_query([1, 2])}, "two or more, or name the other"),
        (Categorical(other="A"), {"A": one_query([1, 2])}, "cannot stand for the rest"),
        (Categorical(), {"A": one_query([1, 2]), "B": one_query([1, 3])}, "different people"),
        (Categorical(known={9: "A"}, other="B"), {"A": one_query([1, 2])}, "no query is about"),
        (Categorical(known={1: "Z"}, other="B"), {"A": one_query([1, 2])}, "must be one of A, B"),
        (Categorical(rates={"A": 1.0}, other="B"), {"A": one_query([1, 2])}, "give A, B one"),
    ],
)
def test_bad_input_says_what_to_do(decoder, asked, complaint):
    with pytest.raises(InputError, match=complaint):
        decoder.decode(asked)


def test_shapes_and_names_are_checked():
    ids, everyone = np.arange(2), np.ones(2, np.bool_)
    with pytest.raises(ShapeError, match="2 ids and 2 values"):
        Categories(ids, ("A", "B"), np.ones((3, 2)), everyone)
    with pytest.raises(InputError, match="no twins"):
        Categories(ids, ("A", "A"), np.ones((2, 2)), everyone)
    guess = Categories(ids, ("A", "B"), np.full((2, 2), 0.5), everyone)
    with pytest.raises(InputError, match="no value 'C'"):
        guess.guess("C")
    with pytest.raises(InputError, match="the precision is 1"):
        guess.claims_at(1.0)


def test_an_offset_of_all_answers_is_found():
    asked = {
        name: (queries, Answers.to_all(answers.values + 2.0))
        for name, (queries, answers) in asked_about(40, 300, Gaussian(2.0)).items()
    }
    found = Categorical(Noise(offset=None)).decode(asked)
    assert found.basis["offset"] == pytest.approx(2.0, abs=0.5)
    assert (found.values == BANK.columns["status"][:40]).mean() > 0.9
