"""The trial, small, with the real pytauargus."""

import pytest

from benchmarks.tables.trial import measure_trial, shares

pytest.importorskip("pytauargus")


def test_both_tables_pin_what_neither_pins_alone():
    reports = []
    worlds = measure_trial(2, 300, 3, progress=lambda *pair: reports.append(pair))
    assert reports == [(0, 2), (1, 2), (2, 2)]
    assert all(world.wrong == world.flagged == 0 for world in worlds)
    for world in worlds:
        for pinned in (world.hidden, world.finest):
            assert pinned.by_first == pinned.by_second == 0
            assert 0 < pinned.by_both <= pinned.groups
        assert world.hidden.groups <= world.suppressed
    both = [share for share in shares(worlds) if share.held == "both"]
    assert [share.of for share in both] == [
        sum(world.hidden.groups for world in worlds),
        sum(world.finest.groups for world in worlds),
    ]
    assert all(share.low < share.share < share.high for share in both)
