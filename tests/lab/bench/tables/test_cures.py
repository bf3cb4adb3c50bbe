"""The cure beside the real pytauargus, on a small world."""

import pytest

from countleak.lab.bench.tables.cures import compared

pytest.importorskip("pytauargus")


def test_two_small_tables_are_safe_together_after_a_cure():
    row = compared("two tables", 0, people=60, regions=2)
    assert row.failure is None
    assert row.pinned_unprotected > 0
    assert row.ours.pinned == 0 < row.ours.hidden
    assert row.theirs.hidden > 0
