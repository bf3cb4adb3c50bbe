"""A census by blocks: its schema, and a few blocks."""

import numpy as np

from benchmarks.tables import census
from benchmarks.tables.census import (
    SHAPE,
    bill,
    measure_census,
    population,
    published,
    schema,
)
from countleak.attack.ledger.variability import variability


def test_tables_count_those_they_name():
    truth = population(np.random.default_rng(3))
    cube = truth.reshape(SHAPE)
    sums = iter((schema() @ truth).tolist())

    def table(size):
        return [next(sums) for _ in range(size)]

    under, adult = census.AGES < 20, census.AGES >= 18
    assert table(1) == [truth.sum()]
    assert table(7) == cube.sum(axis=(0, 1, 3)).tolist()
    assert table(2) == cube.sum(axis=(0, 1, 2)).tolist()
    assert table(14) == cube.sum(axis=(0, 1)).T.ravel().tolist()
    assert table(7) == cube[:, adult].sum(axis=(0, 1, 3)).tolist()
    assert table(14) == cube[:, adult].sum(axis=(0, 1)).T.ravel().tolist()
    band = np.searchsorted(census.BANDS, census.AGES, side="right") - 1
    banded = np.stack([cube[:, band == k].sum(axis=1) for k in range(len(census.BANDS))], axis=1)
    assert table(46) == banded.sum(axis=(2, 3)).ravel().tolist()
    assert table(7 * 46) == banded.sum(axis=3).transpose(2, 0, 1).ravel().tolist()
    assert table(46) == banded[..., 1].sum(axis=2).ravel().tolist()
    assert table(46) == banded[:, :, 0, 0].ravel().tolist()
    assert table(40) == cube[:, under].sum(axis=(2, 3)).ravel().tolist()
    assert next(sums, None) is None


def test_blocks_are_reconstructed_within_the_certified_distance():
    blocks = measure_census(4, jobs=1)
    assert all(block.fits for block in blocks)
    for block in blocks:
        assert 0 <= block.people - block.right <= block.most
        assert block.shown <= block.most <= block.people
    found = bill(blocks)
    assert found.wrong == 0
    assert found.right_low <= found.right <= found.right_high
    assert found.reconstructed_per_second > found.bounded_per_second > 0
    assert found.core_hours_to_bound > found.core_hours_to_reconstruct > 0


def test_blocks_in_which_the_simplex_loses_its_way_are_bounded_too():
    for number in (204, 411):
        ledger, _ = published(population(np.random.default_rng([6, 0, number])))
        found = variability(ledger)
        assert 0 < found.at_least <= found.searched <= found.at_most
