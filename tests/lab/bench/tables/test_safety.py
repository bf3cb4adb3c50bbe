"""The safety map, small, and drawn."""

from itertools import product

import numpy as np
import pytest

from countleak.errors import InputError
from countleak.lab.bench.tables.safety import (
    Setting,
    margins,
    measure_map,
    nearest_five,
    population,
    rounded,
    settings,
)
from countleak.lab.figures.safety import draw_safety


def test_margins_are_all_tables_by_some_of_the_variables():
    counts = np.arange(9)
    shown = margins(2, 3) @ counts
    cube = counts.reshape(3, 3)
    expected = []
    for a, b in product([0, 1, 2, None], repeat=2):
        expected.append(
            cube[slice(None) if a is None else a, slice(None) if b is None else b].sum()
        )
    assert shown.tolist() == expected


def test_rounding_goes_to_a_neighbour_and_keeps_the_mean():
    counts = np.repeat(np.arange(30.0), 4000)
    nearest = rounded(np.random.default_rng(1), counts, 5, "nearest")
    assert (np.abs(nearest - counts) <= 2).all()
    random = rounded(np.random.default_rng(1), counts, 3, "random")
    assert (np.abs(random - counts) < 3).all()
    assert (random % 3 == 0).all()
    # SD of a rounded count is at most 1.5: five standard errors of the mean of 4000.
    assert np.abs((random - counts).reshape(30, -1).mean(axis=1)).max() < 5 * 1.5 / np.sqrt(4000)


def test_few_variables_pin_little_and_every_interval_is_true(tmp_path):
    chosen = [Setting(3, 2, base, way, 60) for base in (3, 5, 10) for way in ("nearest", "random")]
    rows = measure_map(2, jobs=1, chosen=chosen)
    assert [row.setting for row in rows] == chosen
    assert all(row.wrong == row.open == 0 for row in rows)
    assert all(row.cells == 16 and 0 <= row.low <= row.share <= row.high <= 1 for row in rows)
    (claim,) = nearest_five(rows)
    assert claim.worlds == 2
    draw_safety(rows, tmp_path / "map.svg")
    assert "nearest 5" in (tmp_path / "map.svg").read_text()


def test_one_world_has_no_interval():
    with pytest.raises(InputError, match="2 or more"):
        measure_map(1, chosen=[])


def test_a_population_has_its_people():
    for setting in settings()[:: len(settings()) // 5]:
        assert population(np.random.default_rng(2), setting).sum() == setting.people


@pytest.mark.slow
def test_six_variables_rounded_to_the_nearest_five_are_pinned():
    (row,) = measure_map(2, jobs=1, chosen=[Setting(6, 2, 5, "nearest", 500)])
    assert row.share > 0.9
    assert row.wrong == 0
