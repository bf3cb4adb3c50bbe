import pytest

from benchmarks.budget import PEOPLE, QUERIES, SIGMAS, measure_budget, summaries


def test_the_grid_is_the_papers():
    assert QUERIES[:3] == (50, 150, 250)
    assert QUERIES[-1] == 2950
    assert len(PEOPLE) * len(QUERIES) * len(SIGMAS) == 1050


def test_predictions_hold_on_a_few_cells():
    rows = measure_budget((50,), (150, 250), (4.0,), trials=20)
    assert [(row.queries, row.decoder) for row in rows] == [
        (150, "lp"), (150, "ls"), (250, "lp"), (250, "ls")
    ]  # fmt: skip
    for row in rows:
        assert abs(row.difference) <= 0.015 + 3 * row.standard_error, row
        assert row.difference == row.predicted - row.simulated
        assert abs(row.suppressing - row.simulated) < 0.05
    for found in summaries(rows, 0.015):
        assert found.cells == 2
        assert found.surely_beyond == 0


@pytest.mark.slow
def test_predictions_hold_on_the_whole_grid():
    # A hundred trials leave standard errors up to .007, and there are over 900 cells: some lie
    # beyond .015 by chance. None does by more than that.
    rows = measure_budget(PEOPLE, QUERIES, SIGMAS, trials=100)
    for found in summaries(rows, 0.015):
        assert found.surely_beyond == 0, found
        assert abs(found.mean) < 0.002
        assert found.root_mean_square < 0.006
