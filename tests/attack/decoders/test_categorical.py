"""All values of a secret together: against enumeration, against single bits, against the truth."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from countleak.attack.check import Check
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.categorical import Categorical, assumed_noise
from countleak.attack.guess import Basis, Guess, names_from
from countleak.attack.noise import UNKNOWN, Noise, Shape, Threshold, Values, log_released
from countleak.attack.posterior.replicas import OFFSET
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.rules import Rules
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.people import STATUS_SHARES, generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.simulated import Gaussian, Simulated, SimulatedDiffix
from countleak.errors import InputError, ShapeError

BANK = generated_bank(3)
BRIEF = Effort(2, 4, 60, 60)
NAMES = tuple(STATUS_SHARES)


def together(parts, names=None):
    """Transcripts about each value as one."""
    queries = [part.queries for part in parts.values()]
    return Transcript(
        Queries(queries[0].ids, np.vstack([q.matrix for q in queries]), Subsets()),
        np.concatenate([part.values for part in parts.values()]),
        np.concatenate([part.released for part in parts.values()]),
        names or tuple(parts),
        np.repeat(np.arange(len(parts)), [len(part) for part in parts.values()]),
    )


def asked_about(n, m, mechanism, names=NAMES, seed=0):
    """Questions of its own about each value, and their answers."""
    parts = {}
    for v, name in enumerate(names):
        queries = random_subsets(BANK.ids[:n], m, np.random.default_rng([seed, v]))
        system = Simulated(BANK, Bit.of("status", "=", name), mechanism, (seed, v))
        parts[name] = ask(queries, system)
    return parts


@pytest.mark.parametrize("shape_of_noise", ["gaussian", "clamped"])
def test_probabilities_equal_those_of_all_possibilities(shape_of_noise):
    n, names, sigma = 6, ("a", "b", "c"), 1.5
    rng = np.random.default_rng(2)
    truth = np.array([0, 1, 2, 0, 1, 0])
    parts = {}
    for v, name in enumerate(names):
        queries = random_subsets(np.arange(n), 4, rng)
        values = np.round(queries.dot((truth == v) * 1.0) + rng.normal(0, sigma, 4))
        parts[name] = Transcript.of(queries, Answers.to_all(values))
    # A floor that no answer reaches leaves the law as it is and sends the sampler another way.
    noise = Noise(sigma, wrong=1e-9 if shape_of_noise == "clamped" else 0.0)
    rates = {"a": 0.5, "b": 0.3, "c": 0.2}
    decoder = Categorical(noise, rates=rates, effort=Effort(4, 3, 200, 3000), seed=1)
    guess = decoder.decode(together(parts))
    weights, chosen = [], list(product(range(3), repeat=n))
    for values in chosen:
        at = np.array(values)
        log = np.log([rates[names[v]] for v in values]).sum()
        for v, part in enumerate(parts.values()):
            left = part.values - part.queries.dot((at == v) * 1.0)
            whole = shape_of_noise == "clamped"
            log += log_released(left, Values(np.array([sigma]), 0.0, 0.0), noise, whole).sum()
        weights.append(log)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    exact = np.array(
        [[weight[np.array(chosen)[:, j] == v].sum() for v in range(3)] for j in range(n)]
    )
    assert np.abs(guess.probability - exact).max() < 0.03


@pytest.mark.parametrize("way", ["sums of squares", "table"])
def test_an_offset_per_value_leaves_the_probabilities_of_all_possibilities(way):
    """Offsets are integrated out: that is Gaussian noise which the answers about a value share.

    Through sums of squares an offset is as likely to be absent as to be there.
    """
    n, names, sigma, rng = 6, ("a", "b", "c"), 1.5, np.random.default_rng(5)
    truth, parts = np.array([0, 1, 2, 0, 1, 0]), {}
    for v, name in enumerate(names):
        queries = random_subsets(np.arange(n), 4, rng)
        values = np.round(queries.dot((truth == v) * 1.0) + v / 2 + rng.normal(0, sigma, 4))
        parts[name] = Transcript.of(queries, Answers.to_all(values))
    noise = Noise(sigma, UNKNOWN, wrong=1e-9 if way == "table" else 0.0)
    rates = {"a": 0.5, "b": 0.3, "c": 0.2}
    decoder = Categorical(noise, rates=rates, effort=Effort(3, 3, 150, 2500), seed=1)
    guess = decoder.decode(together(parts))
    alone, common = sigma**2 * np.eye(4), (OFFSET * sigma) ** 2 * np.ones((4, 4))
    weights, chosen = [], np.array(list(product(range(3), repeat=n)))
    for values in chosen:
        log = np.log([rates[names[v]] for v in values]).sum()
        for v, part in enumerate(parts.values()):
            left = part.values - part.queries.dot((values == v) * 1.0)
            there = multivariate_normal.logpdf(left, cov=alone + common)
            none = multivariate_normal.logpdf(left, cov=alone)
            log += there if way == "table" else np.logaddexp(there, none)
        weights.append(log)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    exact = np.array([[weight[chosen[:, j] == v].sum() for v in range(3)] for j in range(n)])
    assert np.abs(guess.probability - exact).max() < 0.03


def surprise(probability, truth):
    """The mean of -log probability of the truth: smaller is better, and never by luck alone."""
    place = np.array([NAMES.index(value) for value in truth])
    chance = probability / probability.sum(axis=1, keepdims=True)
    return -np.log(np.maximum(chance[np.arange(truth.size), place], 1e-4)).mean()


@pytest.mark.slow
def test_together_is_better_than_one_by_one():
    truth, gains = BANK.columns["status"][:60], []
    for seed in range(3):
        parts = asked_about(60, 150, Gaussian(3.0), seed=seed)
        guess = Categorical(Noise()).decode(together(parts))
        apart = np.array([Bayes().decode(part).probability for part in parts.values()]).T
        gains.append(surprise(apart, truth) - surprise(guess.probability, truth))
        assert (guess.values == truth).mean() > 0.85
    assert np.mean(gains) > 0.02


def test_a_person_has_exactly_one_value():
    guess = Categorical().decode(together(asked_about(30, 60, Gaussian(2.0))))
    assert guess.probability.sum(axis=1) == pytest.approx(1.0)
    assert guess.names == NAMES
    assert guess.claimed.all()
    bits = [guess.about(name) for name in NAMES]
    assert np.allclose(sum(part.probability for part in bits), 1.0)
    assert guess.basis.sigma[0] == pytest.approx(2.0, rel=0.2)
    assert sum(guess.basis.rates.values()) == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_guess():
    transcript = together(asked_about(15, 30, Gaussian(2.0)))
    one, two = (Categorical(seed=4, effort=BRIEF).decode(transcript) for _ in range(2))
    assert np.array_equal(one.probability, two.probability)


def test_one_value_and_the_rest_is_a_bit():
    parts = asked_about(40, 120, Gaussian(3.0), names=("C",))
    bits = Bayes(seed=1).decode(parts["C"]).probability
    guess = Categorical(seed=1).decode(together(parts, names=("C", "another")))
    assert guess.names == ("C", "another")
    assert np.abs(guess.probability[:, 0] - bits).mean() < 0.03


@pytest.mark.slow
def test_suppressed_answers_speak_of_the_rare_values():
    transcript = together(asked_about(60, 400, SimulatedDiffix(3.0)))
    suppressed = int((~transcript.released).sum())
    truth = BANK.columns["status"][:60]
    with_them = Categorical(effort=BRIEF).decode(transcript)
    without = Categorical(effort=BRIEF).decode(transcript.where(transcript.released))
    assert suppressed > 300
    assert surprise(with_them.probability, truth) < surprise(without.probability, truth)
    assert (with_them.values == truth).mean() > 0.9


def test_the_noise_assumed_has_the_floor_and_threshold_that_were_seen():
    seen = assumed_noise(together(asked_about(60, 200, SimulatedDiffix(3.0))))
    assert seen.threshold == Threshold()
    plain = assumed_noise(together(asked_about(60, 50, Gaussian(3.0))))
    assert plain.threshold is None
    assert plain.floor is None


def test_known_people_stay_and_help():
    truth, gains = BANK.columns["status"][:30], []
    known = {int(BANK.ids[j]): str(truth[j]) for j in range(0, 30, 2)}
    for seed in range(3):
        transcript = together(asked_about(30, 25, Gaussian(2.0), seed=seed))
        guess = Categorical(known=known, effort=BRIEF).decode(transcript)
        assert (guess.values[::2] == truth[::2]).all()
        assert (guess.confidence[::2] == 1).all()
        alone = Categorical(effort=BRIEF).decode(transcript)
        gains.append(
            surprise(alone.probability[1::2], truth[1::2])
            - surprise(guess.probability[1::2], truth[1::2])
        )
    assert np.mean(gains) > 0.05


@pytest.mark.slow
def test_claims_at_a_precision_are_the_sure_ones():
    guess = Categorical().decode(together(asked_about(40, 80, Gaussian(3.0))))
    sure = guess.claims_at(0.9)
    assert np.array_equal(sure.claimed, guess.confidence >= 0.9)
    assert 0 < sure.claimed.sum() < 40


def one_query(*names):
    queries = Queries(np.array([1, 2]), np.ones((1, 2), np.int8), Subsets())
    return Transcript.of(queries, Answers.to_all(np.array([1.0])), names)


@pytest.mark.parametrize(
    ("decoder", "transcript", "complaint"),
    [
        (Categorical(), one_query(), "0 values; the secret must be one of two or more"),
        (Categorical(), one_query("A"), "1 values; the secret must be one of two or more"),
        (Categorical(known={9: "A"}), one_query("A", "B"), "no query is about"),
        (Categorical(known={1: "Z"}), one_query("A", "B"), "must be one of A, B"),
        (Categorical(rates={"A": 1.0}), one_query("A", "B"), "give A, B one"),
    ],
)
def test_bad_input_says_what_to_do(decoder, transcript, complaint):
    with pytest.raises(InputError, match=complaint):
        decoder.decode(transcript)


def test_shapes_and_names_are_checked():
    ids, everyone, basis = np.arange(2), np.ones(2, np.bool_), Basis(decoder="by hand")
    values = np.array(["A", "B"])
    with pytest.raises(ShapeError, match=r"\(2, 2\) probabilities expected, not \(3, 2\)"):
        Guess(ids, values, everyone, basis, names=("A", "B"), probability=np.ones((3, 2)))
    guess = names_from(ids, ("A", "B"), np.full((2, 2), 0.5), basis)
    with pytest.raises(InputError, match="no value 'C'"):
        guess.about("C")
    with pytest.raises(InputError, match="the precision is 1"):
        guess.claims_at(1.0)


def test_an_offset_of_all_answers_is_found():
    transcript = together(asked_about(40, 300, Gaussian(2.0)))
    shifted = replace(transcript, values=transcript.values + 2.0)
    guess = Categorical(Noise(offset=UNKNOWN)).decode(shifted)
    assert list(guess.basis.offset) == list(NAMES)
    assert list(guess.basis.offset.values()) == pytest.approx([2.0] * 4, abs=0.5)
    assert (guess.values == BANK.columns["status"][:40]).mean() > 0.9


def answered(values, secret, queries, released=None):
    """Answers (k, m) about each of the values of a secret (n,) as one transcript."""
    names = tuple(np.unique(secret).tolist())
    return Transcript.of(queries, Answers.to_all(values.ravel(), released), names)


def four_values(n, m, seed):
    """A secret of n people, m queries, and the counts (4, m) of each value."""
    rng = np.random.default_rng(seed)
    secret = rng.choice(np.array(["a", "b", "c", "d"]), n, p=[0.1, 0.2, 0.3, 0.4])
    queries = random_subsets(np.arange(n), m, rng)
    counts = np.array([queries.dot((secret == name) * 1.0) for name in "abcd"])
    return secret, queries, counts, rng


@pytest.mark.slow
def test_gross_errors_are_seen_and_do_little_harm():
    secret, queries, counts, rng = four_values(50, 200, 1)
    noise = np.rint(rng.normal(0, 3.0, counts.shape))
    gross = (rng.random(counts.shape) < 0.05) * rng.choice([-50, 50], counts.shape)
    clean = Categorical().decode(answered(counts + noise, secret, queries))
    guess = Categorical().decode(answered(counts + noise + gross, secret, queries))
    assert guess.basis.wrong_answers == pytest.approx(0.05, abs=0.025)
    assert "grossly wrong" in guess.basis.picked_because
    assert (guess.values == secret).mean() > (clean.values == secret).mean() - 0.1
    # 50 people: three deviations of a mean of so many.
    sure = guess.confidence
    assert (
        abs(guess.expected_right - (guess.values == secret).mean())
        < 3 * np.sqrt((sure * (1 - sure)).sum()) / sure.size + 0.02
    )


@pytest.mark.slow
def test_noise_and_offset_of_each_value_are_found():
    secret, queries, counts, rng = four_values(40, 300, 2)
    sigma, offset = np.array([[2.0], [6.0], [2.0], [6.0]]), np.array([[4.0], [0.0], [-3.0], [0.0]])
    values = np.rint(counts + offset + sigma * rng.normal(size=counts.shape))
    guess = Categorical().decode(answered(values, secret, queries))
    assert guess.basis.sigma == pytest.approx(sigma.ravel(), rel=0.2)
    assert list(guess.basis.offset.values()) == pytest.approx(offset.ravel(), abs=1.2)
    assert "noise differs by value" in guess.basis.picked_because


def test_exact_counts_imply_everyone_and_prove_them_where_that_is_stated():
    secret, queries, counts, _ = four_values(60, 24, 3)
    transcript = answered(counts, secret, queries)
    guess = Categorical().decode(transcript)
    assert (guess.values == secret).all()
    assert guess.expected_right == 1.0
    assert guess.implied.all() and not guess.proven.any()
    assert guess.basis.assuming == "every answer is the exact count"
    told = Categorical(rules=Rules(shape=Shape.EXACT)).decode(transcript)
    assert told.proven.all()
    assert (told.values == secret).all()


def test_rounding_that_is_stated_proves_nobody_wrongly():
    secret, queries, counts, _ = four_values(30, 80, 4)
    transcript = answered(3 * np.rint(counts / 3), secret, queries)
    rules = Rules(shape=Shape.EXACT, base=3)
    guess = Categorical(rules=rules, time_limit=5.0).decode(transcript)
    assert guess.proven.any()
    assert (guess.values == secret)[guess.proven].all()
    assert guess.probability.sum(axis=1) == pytest.approx(1.0)
    # Proofs overrule samples, and no sample is a proof.
    assert (guess.confidence[guess.proven] == 1).all()
    assert (guess.confidence[~guess.proven] < 1).all()


def test_without_time_for_proofs_nobody_is_proven_and_all_are_guessed():
    secret, queries, counts, _ = four_values(30, 80, 4)
    transcript = answered(3 * np.rint(counts / 3), secret, queries)
    rules = Rules(shape=Shape.EXACT, base=3)
    guess = Categorical(rules=rules, time_limit=0).decode(transcript)
    assert guess.claimed.all() and not guess.forced.any()
    assert guess.basis.proofs == "not looked for"


def test_answers_that_no_values_give_leave_nobody_claimed():
    secret, queries, counts, _ = four_values(20, 30, 5)
    counts[0, 0] += 1
    guess = Categorical(rules=Rules(shape=Shape.EXACT)).decode(answered(counts, secret, queries))
    assert not guess.claimed.any()
    assert guess.probability is None


def test_a_model_that_does_not_fit_is_less_sure_of_every_value():
    probability = np.array([[0.9, 0.08, 0.02], [0.4, 0.3, 0.3]])
    widened = Check(2.0, 0.1, {}).applied(probability)
    assert widened.sum(axis=1) == pytest.approx(1.0)
    odds = np.log(widened[:, :1] / widened)
    assert odds == pytest.approx(np.log(probability[:, :1] / probability) / 2)
    assert Check(1.1, 0.1, {}).applied(probability) is probability


def test_who_cannot_have_one_of_three_values_is_not_forced_to_another():
    """Of three people one has each value, and the first has not "a": "b" and "c" are left."""
    queries = Queries(np.arange(3), np.array([[1, 0, 0], [1, 1, 1]], np.int8), Subsets())
    told = np.array([[True, True], [False, True], [False, True]])
    answers = Answers.to_all(np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), told.ravel())
    transcript = Transcript.of(queries, answers, ("a", "b", "c"))
    guess = Categorical(rules=Rules(shape=Shape.EXACT)).decode(transcript)
    assert not guess.forced.any()
    assert guess.probability[0, 0] < 0.01
