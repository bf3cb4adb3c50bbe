import numpy as np
import pytest
from countleak.GONE import Amounts, Categories, score_amounts, score_categories

from countleak.attack.guess import Guess
from countleak.audit.scores import calibration, score, wilson
from countleak.errors import ShapeError

IDS = np.arange(10)
SECRET = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], dtype=np.int8)


def guess(values, claimed=None):
    claimed = np.ones(10, bool) if claimed is None else claimed
    return Guess(IDS, np.array(values, dtype=np.int8), claimed, np.zeros(10))


def test_a_score_by_hand():
    found = score(guess([1, 1, 0, 1, 0, 0, 0, 0, 0, 0]), SECRET)
    assert (found.right, found.wrong, found.claims) == (8, 2, 10)
    assert (found.false_negatives, found.false_positives) == (1, 1)
    assert found.accuracy == 0.8
    assert found.baseline == 0.7
    assert found.kappa == pytest.approx(100 * (0.8 - 0.7) / 0.3)
    assert found.alpha(known=10) == pytest.approx(10 / 11)
    assert found.alpha(known=0) == 10


def test_only_claims_count():
    found = score(guess([1] * 10, claimed=IDS < 2), SECRET)
    assert (found.accuracy, found.claims) == (1.0, 2)


def test_no_claim_is_no_accuracy_at_all():
    found = score(guess([0] * 10, claimed=np.zeros(10, bool)), SECRET)
    assert found.accuracy is None
    assert found.interval() is None
    assert found.kappa is None


def test_wilson_by_the_book():
    # 81 of 263, z = 1.96: (.2553, .3662), a textbook example (Newcombe 1998).
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 10)[0] == 0.0


def test_wilson_covers():
    rng = np.random.default_rng(0)
    for rate in (0.1, 0.5, 0.95):
        hits = [wilson(k, 60) for k in rng.binomial(60, rate, 2000).tolist()]
        covered = np.mean([low <= rate <= high for low, high in hits])
        assert 0.92 < covered < 0.985


def test_lengths_must_agree():
    with pytest.raises(ShapeError, match="a guess about 10 people, but 3 secrets"):
        score(guess([0] * 10), SECRET[:3])


def test_calibration_by_hand():
    probability = np.array([0.95, 0.95, 0.05, 0.6])
    found = calibration(probability, np.array([1, 0, 0, 0], dtype=np.int8))
    # Three claims at .95, two of them right; one at .6, wrong.
    assert [(b.claims, b.right) for b in found.bins] == [(1, 0), (3, 2)]
    assert found.error == pytest.approx((0.6 * 1 - 0 + abs(0.95 * 3 - 2)) / 4)
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 0.05**2 + 0.6**2) / 4)


def test_honest_probabilities_have_little_calibration_error():
    rng = np.random.default_rng(0)
    probability = rng.random(100_000)
    honest = (rng.random(100_000) < probability).astype(np.int8)
    assert calibration(probability, honest).error < 0.01
    assert calibration(probability**3, honest).error > 0.05


def test_values_by_hand():
    chance = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    values = Categories(np.arange(4), ("A", "B"), chance, np.array([True, True, True, False]))
    found = score_categories(values, np.array(["A", "B", "C", "B"]))
    assert (found.right, found.claims, found.people) == (2, 3, 4)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.baseline == 0.5
    assert found.interval() == wilson(2, 3)
    assert found.by_value()[2] == {"truth": "C", "people": 1, "as A": 1, "as B": 0}
    with pytest.raises(ShapeError, match="about 4 people, but 1 values"):
        score_categories(values, np.array(["A"]))


def test_numbers_by_hand():
    guessed, truth = np.array([10.0, 22.0, 33.0]), np.array([10.0, 20.0, 30.0])
    error = np.ones(3)
    found = score_amounts(Amounts(np.arange(3), guessed, error, guessed - 2, guessed + 2), truth)
    assert (found.within, found.baseline_within, found.covered) == (3, 1, 2)
    assert found.r_squared == pytest.approx(1 - (4 + 9) / 200)
    assert found.mean_error == pytest.approx(5 / 3)
    assert found.baseline_error == pytest.approx(20 / 3)
