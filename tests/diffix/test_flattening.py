import pytest

from countleak.diffix import flattening
from countleak.diffix.flattening import Contributions, flatten


@pytest.fixture
def counts(monkeypatch):
    """Outlier and top counts fixed at 2 and 3."""
    monkeypatch.setattr(
        flattening, "_drawn", lambda seeds, purpose: {"outliers": 2, "top": 3}[purpose]
    )


def test_outliers_become_the_average_of_the_top_group(counts):
    values = [1000, 400, 12, 9, 6, 3, 2, 2, 1, 1]
    found = flatten(Contributions(10, sum(values), values), ())
    # (12 + 9 + 6) / 3 = 9 stands for 1000 and for 400: 9 + 9 + 12 + 9 + 6 + 3 + 2 + 2 + 1 + 1.
    assert found.sum == 54
    # One user adds 5.4 on average, half a top one 4.5.
    assert found.scale == 5.4


def test_half_the_top_average_counts_where_it_is_larger(counts):
    values = [50, 50, 40, 40, 40] + [1] * 100
    found = flatten(Contributions(105, sum(values), values[:12]), ())
    assert found.sum == 5 * 40 + 100
    assert found.scale == 20


def test_too_few_to_tell_outliers_from_the_rest(counts):
    # Three users: one outlier, and the two others are the top group.
    assert flatten(Contributions(3, 107, [100, 4, 3]), ()).sum == 3.5 + 7
    assert flatten(Contributions(1, 100, [100]), ()).sum == 100
    assert flatten(Contributions(0, 0, []), ()).sum == 0


def test_counts_are_drawn_between_2_and_6_around_3():
    drawn = [flattening._drawn(range(4 * k, 4 * k + 4), "top") for k in range(2000)]
    assert set(drawn) == {2, 3, 4, 5, 6}
    # round(N(3, 1)) no less than 2: mean 2*.3085 + 3*.3829 + 4*.2417 + 5*.0606 + 6*.0062.
    assert sum(drawn) / 2000 == pytest.approx(3.073, abs=0.1)
