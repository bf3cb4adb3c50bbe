"""The cure beside the real pytauargus, on small worlds."""

import pytest

from countleak.lab.bench.tables.cures import compared

pytest.importorskip("pytauargus")


@pytest.mark.parametrize(
    "tables", ["one table", pytest.param("two tables", marks=pytest.mark.slow)]
)
def test_nothing_is_pinned_after_a_cure(tables):
    row = compared(tables, 0, people=60, regions=2)
    assert row.failure is None
    assert row.pinned_unprotected > 0
    assert row.ours.pinned == 0 < row.ours.hidden
    assert row.theirs.hidden > 0
    assert (row.theirs.pinned > 0) == (tables == "two tables")
