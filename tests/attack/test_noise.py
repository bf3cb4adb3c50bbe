import numpy as np
import pytest

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.noise import (
    UNKNOWN,
    Noise,
    Shape,
    Threshold,
    Values,
    log_at_most,
    log_released,
)
from countleak.attack.posterior.sampling import Effort
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.transcript import Answers, Transcript
from countleak.errors import InputError

WHOLE = np.arange(-2000.0, 2001.0)


@pytest.mark.parametrize("shape", [Shape.GAUSSIAN, Shape.LAPLACE])
@pytest.mark.parametrize("sigma", [0.05, 0.7, 4.0, 30.0])
def test_whole_answers_have_probabilities_that_sum_to_one(shape, sigma):
    values = Values(np.array([sigma, 2 * sigma]), 0.3, 0.0)
    chances = np.exp(log_released(WHOLE, values, shape, whole=True))
    assert chances.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-6)


def test_densities_integrate_to_one_and_have_the_stated_deviation():
    grid = np.linspace(-200, 200, 400_001)
    for shape in (Shape.GAUSSIAN, Shape.LAPLACE):
        density = np.exp(log_released(grid, Values(np.array([4.0]), 1.0, 0.0), shape, False)[0])
        step = grid[1] - grid[0]
        assert density.sum() * step == pytest.approx(1.0, abs=1e-4)
        assert (density * (grid - 1.0) ** 2).sum() * step == pytest.approx(16.0, rel=1e-3)


@pytest.mark.parametrize("shape", [Shape.GAUSSIAN, Shape.LAPLACE])
def test_a_clamped_answer_is_all_the_answers_below_it(shape):
    values = Values(np.array([3.0]), -0.5, 0.0)
    below = np.exp(log_released(WHOLE[WHOLE <= -2], values, shape, True)).sum()
    assert np.exp(log_at_most(np.array([-1.5]), values, shape)) == pytest.approx(below, rel=1e-6)


def test_a_gross_error_never_rules_a_count_out():
    sure = log_released(np.array([60.0]), Values(np.array([2.0]), 0.0, 0.0), Shape.GAUSSIAN, True)
    doubt = log_released(np.array([60.0]), Values(np.array([2.0]), 0.0, 0.05), Shape.GAUSSIAN, True)
    assert sure < -400
    assert doubt == pytest.approx(np.log(0.05 / 200), rel=1e-6)


def test_a_threshold_suppresses_or_releases():
    counts = np.arange(12.0)
    rule = Threshold()
    total = np.exp(rule.log_suppressed(counts)) + np.exp(rule.log_released(counts))
    assert total == pytest.approx(np.ones(12), abs=1e-9)
    assert np.exp(rule.log_suppressed(np.array([1.0, 4.0, 8.0]))) == pytest.approx(
        [1.0, 0.5, 0.0], abs=1e-9
    )


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (lambda: Noise(0.0), "sigma is 0.0"),
        (lambda: Noise(wrong=1.0), r"it lies in \[0, 1\)"),
        (lambda: Noise(shape=Shape.UNIFORM), "decode it as bounded"),
        (lambda: Noise((1.0, 2.0, 3.0), groups=np.array([0, 1])), "2 groups of queries but 3"),
        (lambda: Noise(offset=np.nan), "the offset is nan; it must be finite"),
        (lambda: Threshold(4.0, 0.0), "the SD above 0"),
        (lambda: Threshold(4.0, np.nan), "the SD above 0"),
        (lambda: Threshold(4.0, np.inf), "must be finite"),
        (lambda: Threshold(np.nan), "must be finite"),
        (lambda: Threshold(minimum=np.nan), "must be finite"),
    ],
)
def test_bad_noise_is_refused(bad, complaint):
    with pytest.raises(InputError, match=complaint):
        bad()


@pytest.mark.parametrize("sigma", [1e-300, 1e300, np.nan, np.inf, -1.0, (2.0, np.nan)])
def test_noise_of_no_size_or_of_any_is_refused(sigma):
    with pytest.raises(InputError, match=r"sigma is .*; it must lie between 0.001 and 1e[+]10"):
        Noise(sigma)


def test_unknown_is_to_be_estimated_and_none_is_absent():
    assert Noise().sigma is UNKNOWN
    assert repr(UNKNOWN) == "UNKNOWN"
    rng = np.random.default_rng(4)
    queries = random_subsets(np.arange(20), 400, rng)
    counts = queries.dot(rng.integers(0, 2, 20).astype(float))
    transcript = Transcript.of(queries, Answers.to_all(counts + 3 + np.rint(rng.normal(0, 2, 400))))
    effort = Effort(2, 3, 60, 80)
    free = Bayes(Noise(UNKNOWN, UNKNOWN), effort=effort).posterior(transcript)
    assert free.values.sigma == pytest.approx([2.0], rel=0.2)
    assert free.values.offset == pytest.approx(3.0, abs=0.7)
    given = Bayes(Noise(2.5, 3.0), effort=effort).posterior(transcript)
    assert (given.values.sigma.tolist(), given.values.offset) == ([2.5], 3.0)
    # No threshold: a suppressed answer says nothing. One: it says that few were counted.
    hidden = Transcript.of(queries, Answers.to_all(counts, np.zeros(400, np.bool_)))
    with pytest.raises(InputError, match="give a threshold"):
        Bayes(Noise(threshold=None)).posterior(hidden)
    assert Bayes(Noise(threshold=Threshold()), effort=effort).posterior(hidden).rates[0] < 0.5
