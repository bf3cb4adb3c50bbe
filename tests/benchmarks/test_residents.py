from collections import Counter

import numpy as np

from benchmarks.tables.residents import (
    FIVE_YEARS,
    OTHER_CUTS,
    TOTAL,
    cross_table,
    in_bands,
    residents,
)


def test_bands_cover_every_age_once():
    ages = np.arange(100)
    assert in_bands(ages, FIVE_YEARS).tolist() == [
        "85+" if age >= 85 else f"{age // 5 * 5}-{age // 5 * 5 + 4}" for age in range(100)
    ]
    assert in_bands(ages, OTHER_CUTS)[[0, 3, 4, 82, 83, 99]].tolist() == [
        "0-3", "0-3", "4-6", "75-82", "83+", "83+",
    ]  # fmt: skip


def test_a_table_counts_everyone_in_every_cell_and_margin():
    everyone = residents(np.random.default_rng(1), people=200, regions=3)
    columns = everyone.labels(OTHER_CUTS)
    expected = Counter()
    for who in zip(*columns.values(), strict=True):
        for shown in np.ndindex(2, 2, 2):
            cell = tuple(str(k) if s else TOTAL for k, s in zip(who, shown, strict=True))
            expected[cell] += 1
    counts = cross_table(columns)
    assert {cell: count for cell, count in counts.items() if count} == expected
    assert len(counts) == np.prod([np.unique(column).size + 1 for column in columns.values()])


def test_the_oldest_are_mostly_women():
    everyone = residents(np.random.default_rng(2), people=20_000)
    old, young = everyone.age >= 80, everyone.age < 50
    assert (everyone.sex[old] == "F").mean() > 0.55
    assert abs((everyone.sex[young] == "F").mean() - 0.5) < 0.03
    assert np.unique(everyone.region).size == 20
