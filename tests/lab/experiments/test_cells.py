import numpy as np
import pytest

from countleak.lab.experiments.cells import cells, first_above, first_below, pick


def record(sigma, number, accuracy):
    trial = {"sigma": sigma, "number": number}
    status = "infeasible" if accuracy is None else "optimal"
    rests_on = {"seconds": 0.001, "status": status}
    return {
        "trial": trial,
        "people": 10,
        "accuracy": accuracy,
        "baseline": 0.5,
        "rests_on": rests_on,
    }


RECORDS = [record(s, i, a) for s, row in ((1.0, [1.0, 0.9, 1.0]), (2.0, [0.8, None, 0.6]))
           for i, a in enumerate(row)]  # fmt: skip


def test_a_cell_by_hand():
    one, two = cells(RECORDS, ("sigma",))
    assert one.mean == pytest.approx(0.9666667)
    assert one.error == pytest.approx(np.std([1.0, 0.9, 1.0], ddof=1) / np.sqrt(3))
    # Student's t with two degrees of freedom is 4.3027.
    assert one.band == (pytest.approx(0.9666667 - 4.3027 * one.error, abs=1e-5), 1.0)
    assert (two.trials, two.claimed, two.mean) == (3, 2, pytest.approx(0.7))
    assert two.feasible[0] == pytest.approx(2 / 3)
    assert two.record()["ms_per_program"] == pytest.approx(1.0)


def test_a_cell_without_any_claim_has_no_mean():
    (cell,) = cells([record(1.0, 0, None)], ("sigma",))
    assert (cell.mean, cell.band, cell.feasible[0]) == (None, None, 0.0)


def test_picking_and_crossing():
    found = cells(RECORDS, ("sigma",))
    assert pick(found, sigma=2.0) == [found[1]]
    assert first_above(found, "sigma", 0.6) == 1.0
    assert first_below(found, "sigma", 0.8) == 2.0
    assert first_above(found, "sigma", 0.99) is None


def test_trials_that_all_agree_are_not_sure_beyond_a_bit():
    (cell,) = cells([record(1.0, i, 1.0) for i in range(5)], ("sigma",))
    assert cell.error == pytest.approx(1 / (10 * 5))


def test_a_trial_that_could_not_be_solved_is_neither_feasible_nor_not():
    failed = record(1.0, 1, None)
    failed["rests_on"]["status"] = "trouble"
    (cell,) = cells([record(1.0, 0, 0.9), failed], ("sigma",))
    assert (cell.trials, cell.claimed, cell.infeasible, cell.feasible[0]) == (2, 1, 0, 1.0)
