"""The AUC of times against a count of all pairs, and that both databases are measured."""

import numpy as np
import pytest

from countleak.lab.bench.timing import QUESTIONS, auc, measure
from countleak.progress import silent


def test_an_auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 20, 300) + 1.0, rng.integers(0, 20, 200) + 0.0
    above = (one[:, None] > other).mean() + (one[:, None] == other).mean() / 2
    area, low, high = auc(one, other)
    assert area == pytest.approx(above)
    assert low < area < high


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(1)
    held = [
        low <= 0.5 <= high for _, low, high in (auc(*rng.normal(size=(2, 100))) for _ in range(400))
    ]
    assert 0.91 < np.mean(held) < 0.985


def test_every_question_is_timed_on_both_databases():
    rows = measure(3, 0, silent)
    assert [(row.database, row.question) for row in rows] == [
        (database, question) for database in ("DuckDB", "PostgreSQL") for question in QUESTIONS
    ]
    assert all(row.suppressed > 0 and row.empty > 0 for row in rows)
