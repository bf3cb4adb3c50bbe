import numpy as np
import pytest

from benchmarks.worlds import Setting
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.diagnosis import diagnose
from countleak.attack.noise import DOWN, Shape
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.targets.simulated import Gaussian, Laplace, RoundedToBase, SimulatedDiffix
from countleak.errors import InputError

SEED = np.random.SeedSequence(3)


@pytest.fixture(scope="module")
def counted():
    rng = np.random.default_rng(0)
    queries = random_subsets(np.arange(80), 1000, rng)
    return queries, queries.dot(rng.integers(0, 2, 80).astype(float))


@pytest.mark.parametrize("mechanism", [Gaussian(4.0), SimulatedDiffix(4.0)])
def test_gaussian_noise_and_its_scale(counted, mechanism):
    queries, counts = counted
    diagnosis = diagnose(Transcript.of(queries, mechanism.release(counts, SEED)))
    assert diagnosis.noise.shape is Shape.GAUSSIAN
    assert diagnosis.sigma == pytest.approx(4.0, abs=4 * diagnosis.sigma_error)
    assert diagnosis.wrong == 0 and diagnosis.by is None and diagnosis.noise.reach is None


def test_every_fit_of_a_diagnosis_is_reported(counted):
    queries, counts = counted
    steps = []
    answers = Laplace(4.0).release(counts, SEED)
    diagnose(Transcript.of(queries, answers), progress=lambda *step: steps.append(step))
    # Normal noise, what answers are off by, and mixtures of normal laws.
    assert sum(done == total for done, total in steps) >= 3
    assert all(0 < done <= total for done, total in steps)


@pytest.mark.parametrize("rounded", [True, False])
def test_laplace_noise(counted, rounded):
    queries, counts = counted
    values = Laplace(4.0).release(counts, SEED).values
    answers = Answers.to_all(np.rint(values) if rounded else values)
    diagnosis = diagnose(Transcript.of(queries, answers))
    assert diagnosis.noise.shape is Shape.LAPLACE
    assert diagnosis.sigma == pytest.approx(4.0, rel=0.15)
    assert diagnosis.whole == rounded


@pytest.mark.slow
def test_whole_answers_that_were_rounded_down_are_told_from_others():
    """As an engine does that cuts off the digits of Laplace noise; bits can hide half a person."""
    down, right = [], []
    for seed in range(2):
        rng = np.random.default_rng([7, seed])
        queries, bits = random_subsets(np.arange(73), 300, rng), rng.random(73) < 0.6
        noisy = queries.dot(bits.astype(float)) + rng.laplace(0, 1, 300)
        for rounded in (np.floor(noisy), np.rint(noisy)):
            transcript = Transcript.of(queries, Answers.to_all(rounded))
            noise = diagnose(transcript).noise
            assert noise.shape is Shape.LAPLACE
            down.append(noise.offset == DOWN)
            right.append(np.array_equal(Bayes(noise).decode(transcript).values, bits))
    assert down == [True, False] * 2
    assert sum(right) >= 3


@pytest.mark.parametrize(("random", "bound"), [(False, 2.0), (True, 4.0)])
def test_rounding_to_a_base(counted, random, bound):
    queries, counts = counted
    answers = RoundedToBase(5, random).release(counts, SEED)
    diagnosis = diagnose(Transcript.of(queries, answers))
    noise = diagnosis.noise
    assert (noise.shape, noise.base, noise.reach) == (Shape.EXACT, 5, bound)


@pytest.mark.parametrize("bound", [2, 4, 7])
def test_uniform_noise_and_its_bound(bound):
    world = Setting(150, 60, float(bound), 0.4, "cells").world(2)
    diagnosis = diagnose(world.transcript)
    assert (diagnosis.noise.shape, diagnosis.noise.bound) == (Shape.UNIFORM, bound)


def test_gross_errors_groups_and_suppression():
    wrong = Setting(kind="wrong").world(0)
    assert diagnose(wrong.transcript).wrong == pytest.approx(0.05, abs=0.02)
    groups = Setting(kind="two groups").world(0)
    diagnosis = diagnose(groups.transcript)
    assert diagnosis.by == "server"
    assert [group.sigma for group in diagnosis.groups] == pytest.approx([4.0, 8.0], rel=0.15)
    sparse = Setting(101, 400, 2.0, 12 / 101, "suppressed").world(0)
    threshold = diagnose(sparse.transcript).noise.threshold
    assert threshold is not None and threshold.mean == pytest.approx(4.0, abs=0.8)


def test_an_offset_is_found_with_many_answers(counted):
    rng = np.random.default_rng(1)
    queries = random_subsets(np.arange(40), 3000, rng)
    counts = queries.dot(rng.integers(0, 2, 40).astype(float))
    answers = Answers.to_all(counts + 2 + np.rint(rng.normal(0, 3, 3000)))
    diagnosis = diagnose(Transcript.of(queries, answers))
    assert diagnosis.has_offset
    assert diagnosis.offset == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize("sticky", [True, False, None])
def test_stickiness_needs_a_question_asked_twice(counted, sticky):
    queries, counts = counted
    noise = np.rint(np.random.default_rng(2).normal(0, 4, 1000))
    if sticky is None:
        assert diagnose(Transcript.of(queries, Answers.to_all(counts + noise))).sticky is None
        return
    again = np.append(np.arange(1000), np.arange(20))
    fresh = np.rint(np.random.default_rng(3).normal(0, 4, 20))
    values = np.append(counts + noise, counts[:20] + (noise[:20] if sticky else fresh))
    diagnosis = diagnose(Transcript.of(queries.take(again), Answers.to_all(values)))
    assert diagnosis.sticky is sticky
    assert diagnosis.repeated == 20


def test_two_questions_about_the_same_people_are_not_one_asked_twice(counted):
    queries, counts = counted
    again = np.append(np.arange(1000), np.arange(20))
    repeated = queries.take(again)
    words = Queries(repeated.ids, repeated.matrix, Subsets(), {"wording": np.arange(1020)})
    noise = np.rint(np.random.default_rng(2).normal(0, 4, 1020))
    transcript = Transcript.of(words, Answers.to_all(counts[again] + noise))
    assert diagnose(transcript).sticky is None


@pytest.mark.slow
def test_recorded_answers_give_their_odd_exponents_away(recorded):
    """Without the truth: in 10000-12000 the exponents from 1.8 on do not fit."""
    for name, odd, offset in (("2000-3000", set(), -0.36), ("10000-12000", {1.8, 1.9}, 0.96)):
        log, ids = recorded[name].log, recorded[name].people.ids
        diagnosis = diagnose(log.transcript(ids))
        assert diagnosis.noise.shape is Shape.GAUSSIAN
        assert {group.value for group in diagnosis.odd} == odd
        assert diagnosis.offset == pytest.approx(offset, abs=4 * diagnosis.offset_error)
        assert diagnosis.offset_error < 0.4


def test_too_few_answers_are_refused(counted):
    queries, counts = counted
    few = np.arange(60)
    with pytest.raises(InputError, match="60 released answers about 80 people leave nothing over"):
        diagnose(Transcript.of(queries.take(few), Answers.to_all(counts[few])))


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Gaussian(4.0), "noise gaussian, SD "),
        (RoundedToBase(5), "noise rounding to multiples of 5, within 2 of the count"),
    ],
    ids=["gaussian", "rounded"],
)
def test_a_diagnosis_is_one_sentence(counted, mechanism, law):
    queries, counts = counted
    diagnosis = diagnose(Transcript.of(queries, mechanism.release(counts, SEED)))
    sentence = str(diagnosis)
    assert sentence == repr(diagnosis)
    assert sentence.startswith("1000 answers about 80 people, 0 suppressed: noise ")
    assert law in sentence
    assert "offset" in sentence
    assert "grossly wrong" in sentence
    assert sentence.count("\n") == 0
    assert sentence.endswith(".")
