"""Our intervals beside those of the real pytauargus, and both beside all tables that fit."""

from itertools import product

import numpy as np
import pytest

from countleak.errors import MissingExtra
from countleak.lab.bench.tables import argus
from countleak.lab.bench.tables.single import Example, compared, generated, own_examples

pytest.importorskip("pytauargus")


def test_its_own_examples_are_bounded_equally(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for example in own_examples():
        row = compared(example)
        assert row.suppressed > 0
        assert row.equal == row.suppressed
        assert row.pinned_not_empty is None
    # Its solvers leave logs where they run.
    assert not list(tmp_path.iterdir())


def test_generated_tables_are_bounded_as_narrowly_or_more():
    flat, _, cube = generated(1)
    rows = [compared(flat), compared(cube)]
    assert all(row.wider == 0 < row.equal for row in rows)
    # Of three dimensions, whole numbers say more than fractions.
    assert rows[0].tighter == 0 < rows[1].tighter
    assert all(row.pinned == 0 < row.pinned_marked for row in rows)


def test_its_audit_agrees_with_all_tables_that_fit():
    columns = {"a": np.repeat(["x", "y"], 7), "b": np.array(list("pppqqqqpqqqppp"))}
    columns["b"][6] = "r"
    example = Example("small", columns, np.ones(14, np.int64), "FREQ(3,30)")
    table = argus.protect(example.columns, example.weight, example.rule)
    inner = [cell for cell in table.value if argus.TOTAL not in cell]
    fitting = []
    hidden = [cell for cell in inner if cell in table.hidden]
    for counts in product(range(8), repeat=len(hidden)):
        tried = {cell: table.value[cell] for cell in inner} | dict(zip(hidden, counts, strict=True))
        shown = {
            cell: sum(n for one, n in tried.items() if inside(one, cell)) for cell in table.value
        }
        if all(shown[cell] == v for cell, v in table.value.items() if cell not in table.hidden):
            fitting.append(shown)
    assert table.hidden
    for cell, audited in table.audited.items():
        assert audited.low == pytest.approx(min(shown[cell] for shown in fitting))
        assert audited.high == pytest.approx(max(shown[cell] for shown in fitting))
    assert compared(example).equal == len(table.hidden)


def inside(one, cell):
    return all(a in (argus.TOTAL, b) for a, b in zip(cell, one, strict=True))


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pytauargus", None)
    with pytest.raises(MissingExtra, match="bench"):
        argus.pytauargus()
