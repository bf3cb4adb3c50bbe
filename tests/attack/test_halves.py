import numpy as np
import pytest

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.halves import Halves
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript

N, M = 40, 400


def asked(rng, values=None):
    queries = random_subsets(np.arange(N), M, rng)
    return Transcript.of(queries, Answers.to_all(np.zeros(M) if values is None else values))


def test_residuals_that_nobody_explains_are_one_apart_whatever_their_law_and_drift():
    rng = np.random.default_rng(1)
    halves = Halves.of(asked(rng))
    laws = (
        lambda: rng.normal(0, 3, M),
        lambda: rng.laplace(0, 3, M),
        lambda: rng.standard_t(2, M),
        lambda: rng.normal(0, 3, M) + np.where(np.arange(M) < M / 2, 8.0, -8.0),
        lambda: rng.normal(0, 1, M) * np.where(np.arange(M) < M / 2, 1.0, 4.0),
    )
    for law in laws:
        # Sums of 40 squares have a relative SD of .22, their cube roots one of .075.
        assert np.mean([halves.apart(law()) for _ in range(50)]) == pytest.approx(1.0, abs=0.06)


def test_people_who_change_half_way_set_the_halves_apart():
    rng = np.random.default_rng(2)
    transcript = asked(rng)
    A = transcript.queries.matrix.astype(np.float64)
    changed = np.where(np.arange(N) < 8, 0.5, 0.0)
    moved = A @ changed * np.where(np.arange(M) < M // 2, 1.0, -1.0)
    halves = Halves.of(transcript)
    assert halves.apart(moved + rng.normal(0, 1, M)) > 1.4
    # An error that stays the same is not a change.
    assert halves.apart(A @ changed + rng.normal(0, 1, M)) < 1.25


def test_few_answers_have_no_halves():
    rng = np.random.default_rng(3)
    transcript = asked(rng)
    few = transcript.where(np.arange(M) < 2 * N - 1)
    assert Halves.of(few).blocks == ()
    assert Halves.of(few).apart(np.ones(2 * N - 1)) == 1.0


def test_probabilities_about_a_database_that_changes_are_withdrawn():
    rng = np.random.default_rng(4)
    queries = random_subsets(np.arange(N), 2 * M, rng)
    later = rng.integers(0, 2, N)
    earlier = np.where(np.arange(N) < 12, 1 - later, later)
    before, after = (queries.dot(x.astype(float)) for x in (earlier, later))
    counts = np.where(np.arange(2 * M) < M, before, after)
    noise = np.rint(rng.normal(0, 2, 2 * M))
    guess = Bayes().decode(Transcript.of(queries, Answers.to_all(counts + noise)))
    assert guess.probability is None
    assert "people count otherwise in the later answers" in guess.basis.misfit
    assert Bayes().decode(Transcript.of(queries, Answers.to_all(after + noise))).basis.misfit == ""
