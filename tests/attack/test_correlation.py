"""Noise in common is found where it is and nowhere else, and guesses stay honest about it."""

import numpy as np
import pytest

from countleak.attack.correlation import distinct, find_shared, innovations, repeats
from countleak.attack.covariance import InTurn, Overlap, SameParameter, SamePeople, Shared
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.categorical import Categorical
from countleak.attack.diagnosis import diagnose
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets
from countleak.attack.rules import Rules
from countleak.attack.transcript import Answers, Transcript


def asked(matrix, values, parameters=None, names=()):
    ids = np.arange(matrix.shape[1])
    queries = Queries(ids, matrix.astype(np.int8), Subsets(), parameters or {})
    return Transcript.of(queries, Answers.to_all(np.rint(values).astype(float)), names)


def subsets(rng, m, n):
    return rng.integers(0, 2, (m, n)), rng.integers(0, 2, n)


def residual(transcript, secret):
    """Residuals of a guess that is wrong for some: only what no guess explains may matter."""
    wrong = np.where(np.arange(secret.size) < 5, 1 - secret, secret)
    return transcript.b - transcript.A @ wrong


def drifting(rng, m, fade):
    noise = rng.normal(size=m)
    for t in range(1, m):
        noise[t] = fade * noise[t - 1] + np.sqrt(1 - fade**2) * noise[t]
    return noise


@pytest.mark.parametrize("law", ["gaussian", "heavy", "gross"])
def test_independent_noise_is_not_read_as_common(law):
    for seed in range(8):
        rng = np.random.default_rng([seed, 1])
        matrix, secret = subsets(rng, 300, 40)
        noise = 4 * (rng.standard_t(2, 300) if law == "heavy" else rng.normal(size=300))
        if law == "gross":
            noise[rng.random(300) < 0.05] += 50
        parameters = {"first": np.arange(300) % 12, "second": np.arange(300) // 12}
        transcript = asked(matrix, matrix @ secret + noise, parameters)
        assert find_shared([(transcript.queries, residual(transcript, secret))]) == ()


def test_noise_that_fades_over_time():
    rng = np.random.default_rng(5)
    matrix, secret = subsets(rng, 400, 40)
    transcript = asked(matrix, matrix @ secret + 4 * drifting(rng, 400, 0.9))
    (shared,) = find_shared([(transcript.queries, residual(transcript, secret))])
    assert isinstance(shared.kernel, InTurn) and shared.share > 0.8
    new = innovations(transcript.queries, residual(transcript, secret), (shared,))
    assert abs(np.corrcoef(new[1:], new[:-1])[0, 1]) < 0.2


def test_conditions_with_noise_of_their_own():
    rng = np.random.default_rng(6)
    conditions, secret = rng.random((28, 40)) < 0.7, rng.integers(0, 2, 40)
    first, second = np.triu_indices(28, 1)
    layers, matrix = rng.normal(0, 3, 28), conditions[first] & conditions[second]
    values = matrix @ secret + layers[first] + layers[second] + rng.normal(0, 2, first.size)
    transcript = asked(matrix, values, {"first": first, "second": second})
    (shared,) = find_shared([(transcript.queries, residual(transcript, secret))])
    assert shared.kernel == SameParameter(("first", "second"))
    assert shared.share == pytest.approx(18 / 22, abs=0.12)
    assert "alike in first or second" in str(shared)


def test_noise_of_nearly_the_same_people_and_of_the_same():
    rng = np.random.default_rng(7)
    base, secret = subsets(rng, 100, 40)
    matrix = np.repeat(base, 4, axis=0)
    noise = np.repeat(rng.normal(0, 3, 100), 4) + rng.normal(0, 2, 400)
    order = rng.permutation(400)
    same = asked(matrix[order], (matrix @ secret + noise)[order])
    (shared,) = find_shared([(same.queries, residual(same, secret))])
    assert isinstance(shared.kernel, SamePeople | Overlap)
    assert shared.share == pytest.approx(9 / 13, abs=0.2)
    matrix[np.arange(400), rng.integers(0, 40, 400)] ^= 1
    near = asked(matrix[order], (matrix @ secret + noise)[order])
    (shared,) = find_shared([(near.queries, residual(near, secret))])
    assert isinstance(shared.kernel, Overlap)


def test_what_is_repeated_is_kept_once_where_answers_are():
    rng = np.random.default_rng(8)
    matrix, secret = subsets(rng, 60, 20)
    values = matrix @ secret + rng.normal(0, 4, 60)
    sticky = asked(np.tile(matrix, (3, 1)), np.tile(values, 3))
    assert len(distinct(sticky)) == 60
    assert (repeats(sticky).again, repeats(sticky).sticky) == (120, True)
    fresh = asked(np.tile(matrix, (2, 1)), np.append(values, values + 4))
    assert distinct(fresh) is fresh and repeats(fresh).sticky is False
    assert repeats(asked(matrix, values)).sticky is None
    # In other words, but with the same answers: sticky by the people alone.
    reworded = asked(np.tile(matrix, (2, 1)), np.tile(values, 2), {"word": np.arange(120)})
    assert repeats(reworded).sticky is None and len(distinct(reworded)) == 60


def test_what_is_stated_of_repeated_questions_decides_whatever_the_answers_look_like():
    rng = np.random.default_rng(3)
    matrix, secret = subsets(rng, 60, 20)
    values = matrix @ secret + rng.normal(0, 3, 60)
    fresh = asked(np.tile(matrix, (3, 1)), np.tile(values, 3) + rng.normal(0, 3, 180))
    assert len(distinct(fresh)) == 180
    kept = distinct(fresh, sticky=True)
    assert np.array_equal(kept.values, fresh.values[:60])
    same = asked(np.tile(matrix, (3, 1)), np.tile(values, 3))
    assert len(distinct(same)) == 60
    assert distinct(same, sticky=False) is same


def test_a_stated_rule_about_repeated_questions_reaches_the_decoders_and_the_diagnosis():
    rng = np.random.default_rng(4)
    matrix, secret = subsets(rng, 120, 20)
    values = np.tile(matrix @ secret, 3) + rng.normal(0, 3, 360)
    fresh = asked(np.tile(matrix, (3, 1)), values)
    for stated, answers in ((None, 360), (True, 120), (False, 360)):
        found = diagnose(fresh, Rules(sticky=stated))
        assert found.residuals.size == answers
    once = AutoDecoder(rules=Rules(sticky=True)).decode(fresh)
    assert np.array_equal(
        once.probability, AutoDecoder().decode(fresh.take(np.arange(120))).probability
    )
    assert once.basis.stated == ("a question asked again gets the same answer",)


def test_too_few_answers_say_nothing_of_common_noise():
    rng = np.random.default_rng(9)
    matrix, secret = subsets(rng, 50, 40)
    transcript = asked(matrix, matrix @ secret + drifting(rng, 50, 0.9))
    assert find_shared([(transcript.queries, transcript.b)]) == ()
    assert find_shared([]) == ()
    unchanged = innovations(transcript.queries, transcript.b, ())
    np.testing.assert_array_equal(unchanged, transcript.b)


def doubt(guess, right):
    """Expected less actual share of right guesses, and how many claims at 95% are wrong."""
    sure = np.maximum(guess.probability, 1 - guess.probability)
    return sure.mean() - right.mean(), int((~right[sure > 0.95]).sum())


def test_a_guess_from_repeated_answers_is_as_sure_as_it_should_be():
    gaps = []
    for seed in range(2):
        rng = np.random.default_rng([seed, 3])
        matrix, secret = subsets(rng, 200, 80)
        values = np.tile(matrix @ secret + rng.normal(0, 4, 200), 4)
        guess = AutoDecoder().decode(asked(np.tile(matrix, (4, 1)), values))
        gaps.append(doubt(guess, guess.values == secret)[0])
        assert "600 answers repeat others" in guess.basis.picked_because
    assert abs(np.mean(gaps)) < 0.08


def test_an_error_per_person_is_found_and_reckoned_with():
    rng = np.random.default_rng(4)
    matrix, secret = subsets(rng, 400, 100)
    values = matrix @ (secret + rng.normal(0, 0.35, 100)) + rng.normal(0, 2, 400)
    transcript = asked(matrix, values)
    diagnosis = diagnose(transcript)
    assert diagnosis.has_errors_per_person
    # Few answers tell errors of everyone from those of whoever counts.
    assert diagnosis.per_person + diagnosis.per_one == pytest.approx(0.35, abs=0.12)
    assert diagnosis.effective < 0.5
    guess = AutoDecoder().decode(transcript)
    assert "errors per person" in guess.basis.picked_because
    gap, wrong = doubt(guess, guess.values == secret)
    assert abs(gap) < 0.06 and wrong <= 2


def test_noise_that_fades_is_taken_out():
    rng = np.random.default_rng(11)
    matrix, secret = subsets(rng, 500, 80)
    guess = AutoDecoder().decode(asked(matrix, matrix @ secret + 5 * drifting(rng, 500, 0.95)))
    assert (guess.values == secret).mean() == 1
    assert "in time" in guess.basis.picked_because


@pytest.mark.slow
def test_categories_from_repeated_answers():
    gaps = []
    for seed in range(2):
        rng = np.random.default_rng([seed, 5])
        matrix, values = rng.integers(0, 2, (120, 60)), rng.choice(3, 60, p=[0.3, 0.1, 0.6])
        answers = [np.tile(matrix @ (values == v) + rng.normal(0, 3, 120), 3) for v in range(3)]
        transcript = asked(np.tile(matrix, (3, 1)), np.concatenate(answers), names=tuple("abc"))
        guess = Categorical().decode(transcript)
        right = guess.values == np.array(list("abc"))[values]
        gaps.append(guess.confidence.mean() - right.mean())
    assert abs(np.mean(gaps)) < 0.06


def test_shared_noise_in_words():
    assert str(Shared(SamePeople(), 0.5)) == (
        "50% of the variance is shared by answers about the same people"
    )
