"""Many areas at once, small."""

import numpy as np
import pytest

from countleak.attack.ledger.bounds import Bounder
from countleak.lab.bench.tables.areas import SHAPES, areas
from countleak.lab.bench.tables.scale import measure_scale


def test_areas_publish_what_is_true_of_their_people():
    made = areas(np.random.default_rng(1), 2000)
    assert made.truth.size % sum(int(np.prod(shape)) for shape in SHAPES) == 0
    assert made.ledger.holds(made.truth.astype(float))
    hidden = made.ledger.high == np.inf
    assert hidden.sum() == made.hidden > 0
    sums = made.ledger.A @ made.truth
    # No table shows a cell of one or two people; margins are all shown.
    inner = np.asarray(made.ledger.A.sum(axis=1)).ravel() < min(n for _, n, _ in SHAPES)
    assert hidden[inner & (sums > 0) & (sums <= 2)].all()
    assert not hidden[~inner].any() or made.ledger.A.sum(axis=1)[hidden].max() <= 20


def test_all_cells_are_bounded_as_one_by_one():
    found = measure_scale(800, jobs=1)
    assert found.wrong == found.open == 0
    assert found.settled_at_once + found.cells == found.groups
    assert sum(found.means.values()) == found.cells
    assert 30 < found.smallest <= found.largest < 500
    made = areas(np.random.default_rng(0), 800)
    bounder = Bounder(made.ledger)
    pinned = [bounder.interval(np.array([j])).pinned for j in range(0, made.truth.size, 25)]
    assert sum(pinned) <= found.pinned + found.settled_at_once


@pytest.mark.slow
def test_several_processes_find_the_same():
    one, two = measure_scale(20_000, jobs=1), measure_scale(20_000, jobs=2)
    assert (one.means, one.pinned, one.open) == (two.means, two.pinned, two.open)
