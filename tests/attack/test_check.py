import numpy as np
import pytest

from countleak.attack.check import Check, check_fit
from countleak.attack.covariance import Overlap, Shared
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.mixture import Mixture, Part
from countleak.attack.noise import UNKNOWN, Below, Noise, Range, Shape, Threshold, Values
from countleak.attack.posterior.evidence import gather
from countleak.attack.predictive import Replay
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript

N, M = 50, 400


def asked(seed, noise):
    """Questions about random bits, and what ``noise`` (M,) makes of the counts."""
    rng = np.random.default_rng(seed)
    queries = random_subsets(np.arange(N), M, rng)
    secret = rng.integers(0, 2, N)
    counts = queries.dot(secret.astype(np.float64))
    return Transcript.of(queries, Answers.to_all(noise(counts, rng))), secret


def checked(transcript, noise=None):
    noise = noise or Noise(UNKNOWN, UNKNOWN)
    decoder = Bayes(noise)
    return check_fit(transcript, gather(transcript, noise), decoder.posterior(transcript))


def test_a_model_that_fits_is_left_alone():
    for seed in range(5):
        transcript, _ = asked(seed, lambda c, rng: c + np.rint(rng.normal(0, 3, M)))
        check = checked(transcript)
        assert check.misfit == ""
        assert check.doubt == ""


@pytest.mark.parametrize(
    ("noise", "figure"),
    [
        (lambda c, rng: np.roll(c, 1) + rng.normal(0, 1, M), "count"),
        (lambda c, rng: np.minimum(c, np.quantile(c, 0.4)) + np.rint(rng.normal(0, 1, M)), "count"),
        (lambda c, rng: c + np.rint(20 * (np.arange(M) > M / 2) + rng.normal(0, 1, M)), "turn"),
        (lambda c, rng: c + np.rint(rng.choice([-9, 9], M) + rng.normal(0, 1, M)), "spread"),
    ],
)
def test_a_model_that_does_not_fit_is_found_out(noise, figure):
    transcript, _ = asked(1, noise)
    check = checked(transcript)
    assert abs(check.off[figure]) > 6
    assert check.misfit
    guess = Bayes(Noise(UNKNOWN, UNKNOWN)).decode(transcript)
    assert guess.probability is None
    assert guess.basis.misfit == check.misfit


def test_repeated_answers_inflate_the_scores():
    rng = np.random.default_rng(3)
    queries = random_subsets(np.arange(N), M // 4, rng)
    secret = rng.integers(0, 2, N)
    values = queries.dot(secret.astype(np.float64)) + np.rint(rng.normal(0, 3, M // 4))
    four = queries.take(np.tile(np.arange(M // 4), 4))
    check = checked(Transcript.of(four, Answers.to_all(np.tile(values, 4))))
    # Each answer is given four times, so sums of scores vary four times as much as they should;
    # what the bits absorb of that is not seen.
    assert 2 < check.inflation < 4
    assert check.doubt


def test_widened_probabilities_are_nearer_to_even():
    check = Check(2.0, 0.1, {})
    wide = check.applied(np.array([0.01, 0.5, 0.99]))
    assert wide == pytest.approx([0.0913, 0.5, 0.9087], abs=1e-3)
    shares = check.applied(np.array([[0.9, 0.05, 0.05]]))
    assert shares.sum() == pytest.approx(1)
    assert 1 / 3 < shares[0, 0] < 0.9
    assert Check(1.1, 0.1, {}).applied(wide) is wide


REPLAYED = [
    Noise(3.0),
    Noise(3.0, shape=Shape.LAPLACE),
    Noise(3.0, shape=Shape.MIXTURE, mixture=Mixture((Part(0.5, -0.9, 0.44), Part(0.5, 0.9, 0.44)))),
    Noise(shape=Shape.UNIFORM, bound=4),
    Noise(shape=Shape.EXACT, base=5, random_rounding=True),
    Noise(3.0, shared=(Shared(Overlap(16), 0.5),)),
    Noise(3.0, floor=10.0, ceiling=15.0),
    Noise(3.0, threshold=Threshold(11.0)),
    Noise(3.0, threshold=Range(10, 12)),
    Noise(3.0, threshold=Below(11.0)),
]


@pytest.mark.parametrize("noise", REPLAYED, ids=str)
def test_answers_are_drawn_as_likely_as_they_are_said_to_be(noise):
    """The likelihood of answers drawn from a law is, on average, highest under that law."""
    transcript, secret = asked(4, lambda c, rng: c)
    rng, x = np.random.default_rng(5), secret.astype(np.int64)
    sigma = np.atleast_1d(np.asarray(noise.sigma, np.float64))
    values = Values(sigma, np.zeros(1), 0.0)
    replay = Replay(transcript, noise, True)

    def likelihood(shift):
        answers = Replay(transcript, noise, True).answered(
            x, values, np.random.default_rng([5, shift])
        )
        evidence = gather(answers, noise)
        tables = [
            evidence.table(Values(sigma * scale, np.array([offset]), 0.0)).ravel()
            for scale, offset in ((1.0, 0.0), (1.0, 1.5), (1.0, -1.5))
        ]
        return [table[evidence.cells(x)].sum() for table in tables]

    own, above, below = np.mean([likelihood(k) for k in range(5)], axis=0)
    if noise.reach != 0:
        assert own > above
        assert own > below
    drawn = replay.answered(x, values, rng)
    if noise.threshold is None:
        assert drawn.released.all()
    else:
        assert not drawn.released.all()


def test_doubt_about_everyone_leaves_the_known_alone():
    check = Check(1.0, 0.1, {}, alone=0.02)
    given = np.array([1.0, 1.0, 0.0])
    assert check.applied(given).tolist() == [0.99, 0.99, 0.01]
    assert check.applied(given, np.array([True, False, False])).tolist() == [1.0, 0.99, 0.01]
