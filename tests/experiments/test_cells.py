import numpy as np
import pytest

from countleak.experiments.cells import cells, first_above, first_below, pick


def record(sigma, number, accuracy):
    trial = {"sigma": sigma, "number": number}
    return {"trial": trial, "accuracy": accuracy, "baseline": 0.5, "rests_on": {"seconds": 0.001}}


RECORDS = [record(s, i, a) for s, row in ((1.0, [1.0, 0.9, 1.0]), (2.0, [0.8, None, 0.6]))
           for i, a in enumerate(row)]  # fmt: skip


def test_a_cell_by_hand():
    one, two = cells(RECORDS, ("sigma",))
    assert one.mean == pytest.approx(0.9666667)
    assert one.error == pytest.approx(np.std([1.0, 0.9, 1.0], ddof=1) / np.sqrt(3))
    assert one.band == (pytest.approx(0.9013333), 1.0)
    assert (two.trials, two.claimed, two.mean) == (3, 2, pytest.approx(0.7))
    assert two.feasible[0] == pytest.approx(2 / 3)
    assert two.record()["ms_a_program"] == pytest.approx(1.0)


def test_a_cell_without_any_claim_has_no_mean():
    (cell,) = cells([record(1.0, 0, None)], ("sigma",))
    assert (cell.mean, cell.band, cell.feasible[0]) == (None, None, 0.0)


def test_picking_and_crossing():
    found = cells(RECORDS, ("sigma",))
    assert pick(found, sigma=2.0) == [found[1]]
    assert first_above(found, "sigma", 0.6) == 1.0
    assert first_below(found, "sigma", 0.8) == 2.0
    assert first_above(found, "sigma", 0.99) is None
