from dataclasses import replace

import numpy as np
import pytest

from countleak.attack.guess import Basis, Guess, Intervals, names_from
from countleak.audit.scores import calibration, score, wilson
from countleak.errors import InputError, ShapeError

BASIS = Basis(decoder="by hand")
IDS = np.arange(10)
SECRET = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], dtype=np.int8)


def guess(values, claimed=None):
    claimed = np.ones(10, bool) if claimed is None else claimed
    return Guess(IDS, np.array(values, dtype=np.int8), claimed, BASIS)


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
    values = names_from(np.arange(4), ("A", "B"), chance, BASIS).claims_at(0.6)
    values = replace(values, claimed=np.array([True, True, True, False]))
    found = score(values, np.array(["A", "B", "C", "B"]))
    assert (found.right, found.claims, found.people) == (2, 3, 4)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.baseline == 0.5
    assert found.interval() == wilson(2, 3)
    by_value = found.confusion.by_value()
    assert by_value[2] == {"truth": "C", "people": 1, "as A": 1, "as B": 0}
    record = found.record()
    assert record["by_value"] == by_value
    assert record["advantage"] == found.advantage == pytest.approx((2 / 3 - 0.5) / 0.5)
    with pytest.raises(ShapeError, match="about 4 people, but 1 secrets"):
        score(values, np.array(["A"]))


def numbers(guessed, reach=2.0):
    intervals = Intervals(np.ones(guessed.size), guessed - reach, guessed + reach)
    everyone = np.ones(guessed.size, np.bool_)
    return Guess(np.arange(guessed.size), guessed, everyone, BASIS, intervals=intervals)


def test_numbers_by_hand():
    guess, truth = numbers(np.array([10.0, 22.0, 33.0])), np.array([10.0, 20.0, 30.0])
    found = score(guess, truth)
    assert (found.right, found.guessable, found.errors.covered) == (3, 1, 2)
    assert found.errors.r_squared == pytest.approx(1 - (4 + 9) / 200)
    assert found.errors.mean_error == pytest.approx(5 / 3)
    assert found.errors.baseline_error == pytest.approx(20 / 3)
    assert score(guess, truth, tolerance=0.05).right == 1
    assert found.record()["within"] == 3
    assert str(found).startswith("3 of 3 secrets recovered within 10% (100.0%, 95% interval ")
    with pytest.raises(InputError, match="the tolerance is 0; it must be above 0"):
        score(guess, truth, tolerance=0.0)


def test_a_score_is_a_sentence_with_baseline_interval_and_advantage():
    found = score(guess([1, 1, 0, 1, 0, 0, 0, 0, 0, 0]), SECRET)
    assert str(found) == (
        "8 of 10 secrets recovered (80.0%, 95% interval 49.0% to 94.3%); guessing without any "
        "answer gets 70.0%, an advantage over guessing of 33.3%."
    )
    nobody = score(guess([0] * 10, claimed=np.zeros(10, bool)), SECRET)
    assert str(nobody) == "No claim about any of 10 people."
    alike = score(guess([0] * 10), np.zeros(10, np.int8))
    assert alike.advantage is None
    assert "advantage" not in str(alike)


def test_a_record_holds_all_of_a_score():
    record = score(guess([1, 1, 0, 1, 0, 0, 0, 0, 0, 0]), SECRET).record()
    assert record["interval"] == wilson(8, 10)
    assert (record["right"], record["wrong"], record["baseline"]) == (8, 2, 0.7)
    assert (record["false_positives"], record["false_negatives"]) == (1, 1)
    assert record["kappa"] == pytest.approx(100 * record["advantage"])
    assert record["alpha_ids_free"] == 10
