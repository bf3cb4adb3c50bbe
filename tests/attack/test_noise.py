import numpy as np
import pytest

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.noise import (
    UNKNOWN,
    Noise,
    Range,
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
    chances = np.exp(log_released(WHOLE, values, Noise(shape=shape), whole=True))
    assert chances.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-6)


def test_densities_integrate_to_one_and_have_the_stated_deviation():
    grid = np.linspace(-200, 200, 400_001)
    for shape in (Shape.GAUSSIAN, Shape.LAPLACE):
        values = Values(np.array([4.0]), 1.0, 0.0)
        density = np.exp(log_released(grid, values, Noise(shape=shape), False)[0])
        step = grid[1] - grid[0]
        assert density.sum() * step == pytest.approx(1.0, abs=1e-4)
        assert (density * (grid - 1.0) ** 2).sum() * step == pytest.approx(16.0, rel=1e-3)


@pytest.mark.parametrize("shape", [Shape.GAUSSIAN, Shape.LAPLACE])
def test_a_clamped_answer_is_all_the_answers_below_it(shape):
    values = Values(np.array([3.0]), -0.5, 0.0)
    below = np.exp(log_released(WHOLE[WHOLE <= -2], values, Noise(shape=shape), True)).sum()
    clamped = np.exp(log_at_most(np.array([-1.5]), values, Noise(shape=shape)))
    assert clamped == pytest.approx(below, rel=1e-6)


def test_a_gross_error_never_rules_a_count_out():
    sure = log_released(np.array([60.0]), Values(np.array([2.0]), 0.0, 0.0), Noise(), True)
    doubt = log_released(np.array([60.0]), Values(np.array([2.0]), 0.0, 0.05), Noise(), True)
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


BOUNDED = {
    "exact": (Noise(shape=Shape.EXACT), lambda s, rng: s),
    "uniform": (
        Noise(shape=Shape.UNIFORM, bound=3),
        lambda s, rng: s + rng.integers(-3, 4, s.size),
    ),
    "nearest": (Noise(shape=Shape.EXACT, base=5), lambda s, rng: 5 * np.rint(s / 5)),
    "random": (
        Noise(shape=Shape.EXACT, base=4, random_rounding=True),
        lambda s, rng: 4 * np.floor(s / 4 + rng.random(s.size)),
    ),
    "uniform, then nearest": (
        Noise(shape=Shape.UNIFORM, bound=2, base=5),
        lambda s, rng: 5 * np.rint((s + rng.integers(-2, 3, s.size)) / 5),
    ),
    "normal, then nearest": (
        Noise(2.0, base=5),
        lambda s, rng: 5 * np.rint((s + rng.normal(0, 2.0, s.size)) / 5),
    ),
}


@pytest.mark.parametrize("law", BOUNDED)
def test_the_chance_of_an_answer_is_how_often_it_is_given(law):
    noise, answer = BOUNDED[law]
    rng = np.random.default_rng(3)
    for count in (40, 41, 42, 43, 44):
        given = answer(np.full(40_000, float(count)), rng)
        values, often = np.unique(given, return_counts=True)
        at = Values(np.array([2.0]), 0.0, 0.0)
        chance = np.exp(log_released(values - count, at, noise, True)[0])
        assert often / given.size == pytest.approx(chance, abs=0.012)
        if noise.reach is not None:
            assert np.abs(given - count).max() <= noise.reach


def test_a_range_suppresses_exactly_what_lies_in_it():
    counts = np.arange(6.0)
    hidden = np.exp(Range(1, 2).log_suppressed(counts))
    shown = np.exp(Range(1, 2).log_released(counts))
    assert np.round(hidden, 3).tolist() == [0, 1, 1, 0, 0, 0]
    assert np.round(shown, 3).tolist() == [1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (lambda: Noise(0.0), "sigma is 0.0"),
        (lambda: Noise(wrong=1.0), r"it lies in \[0, 1\)"),
        (lambda: Noise(shape=Shape.UNIFORM), "uniform noise needs a bound"),
        (lambda: Noise(bound=2), "no other noise has one"),
        (lambda: Noise(shape=Shape.UNIFORM, bound=0), "it must lie above 0"),
        (lambda: Noise(base=0), "multiples of 0; write a number from 1"),
        (lambda: Noise(base=3, random_rounding=True), "to the nearest multiple only"),
        (lambda: Range(2, 1), "write the lower one first"),
        (lambda: Range(-1, 1), "write the lower one first"),
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


def test_common_noise_is_checked():
    with pytest.raises(InputError, match="error per person is -1"):
        Noise(per_person=-1.0)
    for effective in (0.0, 1.5):
        with pytest.raises(InputError, match="it lies in"):
            Noise(effective=effective)
