"""The sampler against the posterior by enumeration of all bits."""

from itertools import product

import numpy as np
import pytest

from countleak.attack.noise import UNKNOWN, Noise, Shape, Threshold, Values
from countleak.attack.posterior.evidence import gather
from countleak.attack.posterior.fit import fit_secrets
from countleak.attack.posterior.replicas import OFFSET
from countleak.attack.posterior.sampling import Effort, Start, sample
from countleak.attack.posterior.secret_draws import Bits
from countleak.attack.queries import Queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.targets.simulated import SimulatedDiffix
from countleak.errors import InputError

N = 8
EFFORT = Effort(ladders=2, replicas=3, settle=100, keep=1500)
ALL = np.array(list(product([0, 1], repeat=N)))


def exact(transcript, noise, prior, values):
    """P(bit = 1) of each of the N people, from all 2^N bit vectors."""
    evidence = gather(transcript, noise)
    table = evidence.table(values).ravel()
    logs = np.array([table[evidence.cells(x)].sum() for x in ALL])
    logs += ALL.sum(1) * np.log(prior) + (N - ALL.sum(1)) * np.log(1 - prior)
    weight = np.exp(logs - logs.max())
    return (weight @ ALL) / weight.sum()


def drawn(seed, family=random_subsets, m=14):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, N).astype(float)
    return family(np.arange(N), m, rng), secret, rng


def close(queries, answers, noise, values, prior=0.4, tolerance=0.03):
    transcript = Transcript.of(queries, answers)
    evidence = gather(transcript, noise)
    start = Start(np.zeros(N, np.int64), values)
    found = sample(evidence, start, np.random.default_rng(1), kind=Bits(prior), effort=EFFORT)
    assert found.probability == pytest.approx(
        exact(transcript, noise, prior, values), abs=tolerance
    )
    return evidence


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", [random_subsets, random_signs])
def test_gaussian_answers_through_sums_of_squares(seed, family):
    queries, secret, rng = drawn(seed, family)
    answers = Answers.to_all(queries.dot(secret) + np.rint(rng.normal(0, 2.5, 14)))
    evidence = close(queries, answers, Noise(2.5), Values(np.array([2.5]), 0.0, 0.0))
    assert evidence.is_gaussian


@pytest.mark.parametrize("shape", [Shape.LAPLACE, Shape.GAUSSIAN])
def test_answers_that_are_not_whole_and_some_wrong(shape):
    queries, secret, rng = drawn(5)
    answers = Answers.to_all(queries.dot(secret) + rng.normal(0, 1.5, 14))
    noise = Noise(1.5, wrong=0.1, shape=shape)
    evidence = close(queries, answers, noise, Values(np.array([1.5]), 0.0, 0.1))
    assert not evidence.is_gaussian and evidence.fractions == 16


def test_suppressed_and_clamped_answers_speak():
    queries, secret, _ = drawn(2, m=25)
    secret[1:] = 1.0
    answers = SimulatedDiffix(1.0).release(queries.dot(secret), np.random.SeedSequence(4))
    assert 5 < (~answers.released).sum() < 20
    noise = Noise(1.0, floor=3.0, threshold=Threshold())
    evidence = close(queries, answers, noise, Values(np.array([1.0]), 0.0, 0.0))
    # Each released answer near the threshold speaks twice: its value, and that it was released.
    assert evidence.said.size > len(answers)


def test_two_groups_have_each_their_noise():
    queries, secret, rng = drawn(3, m=20)
    groups = np.arange(20) % 2
    scale = np.where(groups, 6.0, 1.5)
    answers = Answers.to_all(queries.dot(secret) + np.rint(rng.normal(0, scale)))
    noise = Noise((1.5, 6.0), groups=groups)
    close(queries, answers, noise, Values(np.array([1.5, 6.0]), 0.0, 0.0))


@pytest.mark.parametrize("wrong", [0.0, UNKNOWN], ids=["sums of squares", "table"])
def test_noise_scale_offset_and_rate_are_found(wrong):
    rng = np.random.default_rng(8)
    secret = (rng.random(60) < 0.3).astype(float)
    plain = random_subsets(np.arange(60), 3000, rng)
    groups = np.arange(3000) % 2
    queries = Queries(plain.ids, plain.matrix, Subsets())
    noise = np.rint(rng.normal(1.0, np.where(groups, 6.0, 3.0)))
    transcript = Transcript.of(queries, Answers.to_all(queries.dot(secret) + noise))
    evidence = gather(transcript, Noise(UNKNOWN, UNKNOWN, wrong, groups))
    values = Values(np.array([4.0, 4.0]), 0.0, 0.0 if wrong == 0 else 0.02)
    start = Start(np.zeros(60, np.int64), values)
    found = sample(evidence, start, rng, effort=Effort(2, 3, 80, 100))
    assert found.values.sigma == pytest.approx([3.0, 6.0], abs=0.3)
    assert found.values.offset == pytest.approx(1.0, abs=0.6)
    assert found.values.wrong < 0.005
    assert found.rates[0] == pytest.approx(secret.mean(), abs=0.06)
    assert ((found.probability >= 0.5) == secret).mean() > 0.98


def test_known_bits_stay_and_help():
    queries, secret, rng = drawn(6)
    answers = Answers.to_all(queries.dot(secret) + np.rint(rng.normal(0, 2.5, 14)))
    known = np.arange(N) < 3
    start = Start(np.where(known, secret, 0).astype(np.int64), Values(np.array([2.5]), 0.0, 0.0))
    evidence = gather(Transcript.of(queries, answers), Noise(2.5))
    found = sample(evidence, start, rng, kind=Bits(0.5), known=known, effort=EFFORT)
    assert np.array_equal(found.probability[known], secret[known])
    fits = ALL[(ALL[:, :3] == secret[:3]).all(axis=1)]
    misfit = ((answers.values - fits @ queries.matrix.T) ** 2).sum(axis=1) / (2 * 2.5**2)
    weight = np.exp(misfit.min() - misfit)
    assert found.probability == pytest.approx((weight @ fits) / weight.sum(), abs=0.03)


def test_the_same_seed_gives_the_same_samples():
    queries, secret, rng = drawn(7)
    answers = Answers.to_all(queries.dot(secret) + np.rint(rng.normal(0, 2.5, 14)))
    evidence = gather(Transcript.of(queries, answers), Noise())
    start = Start(np.zeros(N, np.int64), Values(np.array([2.5]), 0.0, 0.0))
    first, second = (sample(evidence, start, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.probability, second.probability)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_an_offset_is_either_not_there_or_integrated_out(shift):
    queries, secret, rng = drawn(4, m=60)
    told = queries.dot(secret) + shift + np.rint(rng.normal(0, 4, 60))
    evidence = gather(Transcript.of(queries, Answers.to_all(told)), Noise(4.0, UNKNOWN))
    start = Start(np.zeros(N, np.int64), Values(np.array([4.0]), 0.0, 0.0))
    found = sample(evidence, start, rng, kind=Bits(0.5), effort=EFFORT)
    residual = told - ALL @ queries.matrix.T
    w, before = 1 / 16, 1 / (OFFSET * 4.0) ** 2
    after = 60 * w + before
    none = -0.5 * w * (residual**2).sum(axis=1)
    some = none + 0.5 * (w * residual.sum(axis=1)) ** 2 / after - 0.5 * np.log(after / before)
    logs = np.logaddexp(none, some)
    weight = np.exp(logs - logs.max())
    assert found.probability == pytest.approx((weight @ ALL) / weight.sum(), abs=0.03)
    mean = np.exp(some - logs) * w * residual.sum(axis=1) / after
    assert found.values.offset == pytest.approx((weight @ mean) / weight.sum(), abs=0.15)


def world(seed, n, m, sd):
    """Secrets (n,) and a transcript of m random subsets with rounded Gaussian noise."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n).astype(float)
    queries = random_subsets(np.arange(n), m, rng)
    answers = Answers.to_all(queries.dot(secret) + np.rint(rng.normal(0, sd, m)))
    return secret, Transcript.of(queries, answers)


@pytest.mark.parametrize(("m", "sd"), [(300, 2.0), (300, 0.5), (600, 4.0)])
def test_many_people_are_not_claimed_beyond_what_is_right(m, sd):
    claims, differences = [], []
    for seed in range(3):
        secret, transcript = world(seed, 600, m, sd)
        found = fit_secrets(
            transcript,
            gather(transcript, Noise()),
            np.random.default_rng(seed),
            effort=Effort(6, 1, 60, 60),
        )
        sure = np.maximum(found.probability, 1 - found.probability)
        right = (found.probability >= 0.5) == secret
        differences.append(sure.mean() - right.mean())
        claims.append(right[sure >= 0.95])
    claimed = np.concatenate(claims)
    assert claimed.sum() >= 0.95 * claimed.size - 3 * np.sqrt(0.05 * claimed.size)
    assert np.mean(differences) < 0.02 + 3 * np.std(differences) / np.sqrt(3)


def test_frozen_ladders_are_said_to_disagree_and_claim_less():
    secret, transcript = world(0, 600, 300, 2.0)
    evidence = gather(transcript, Noise())
    start = Start(np.zeros(600, np.int64), Values(np.array([2.0]), 0.0, 0.0))
    alone, together = (
        sample(evidence, start, np.random.default_rng(1), effort=Effort(ladders, 1, 60, 60))
        for ladders in (1, 6)
    )
    assert not together.settled and together.doubt.startswith("chains disagree")
    assert together.disagreement > 0.1
    surely = [np.abs(found.probability - 0.5) >= 0.49 for found in (alone, together)]
    right = [((f.probability >= 0.5) == secret) for f in (alone, together)]
    # One chain alone is sure of much that is wrong.
    assert right[0][surely[0]].mean() < 0.95
    assert surely[1].sum() < surely[0].sum() / 4


def test_rounds_are_added_until_the_ladders_agree_and_replay():
    _, transcript = world(2, 60, 50, 1.5)
    evidence = gather(transcript, Noise())
    start = Start(np.zeros(60, np.int64), Values(np.array([1.5]), 0.0, 0.0))
    reports: list[tuple[int, int]] = []

    def run(seconds):
        reports.clear()
        return sample(
            evidence,
            start,
            np.random.default_rng(3),
            effort=Effort(3, 4, 5, 5, seconds),
            progress=lambda done, total: reports.append((done, total)),
        )

    short = run(0.0)
    assert not short.settled and [done for done, _ in reports] == [5, 10, 15, 20, 25, 30, 30]
    first = run(10.0)
    done = [at for at, _ in reports]
    assert done == sorted(done) and reports[-1][0] == reports[-1][1] > 100
    assert first.settled and first.disagreement < short.disagreement
    assert np.array_equal(first.probability, run(10.0).probability)


def test_effort_must_be_some():
    with pytest.raises(InputError, match="at least 1"):
        Effort(ladders=0)
    with pytest.raises(InputError, match="seconds"):
        Effort(seconds=-1.0)
