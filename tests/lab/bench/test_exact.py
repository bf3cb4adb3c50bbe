from math import comb, log2

import pytest

from countleak.errors import InputError
from countleak.lab.bench.exact import Row, crossings, information_limit, measure_exact
from countleak.lab.figures.benches import draw_exact


def row(n, m, solved, worlds=20):
    return Row(n, m, information_limit(n), worlds, solved, (0.0, 1.0), solved, 0, 0, 0.1, ("x",))


def test_no_count_of_random_people_says_more_than_the_limit_grants():
    for n in (60, 100, 200):
        shares = [comb(n // 2, k) / 2 ** (n // 2) for k in range(n // 2 + 1)]
        bits = -sum(share * log2(share) for share in shares)
        # Half the binary logarithm of n up to a constant: the limit is asymptotic.
        assert abs(bits - n / information_limit(n)) < 0.6


def test_crossing_is_where_enough_are_solved_from_there_on():
    rows = [row(100, 50, 20), row(100, 45, 19), row(100, 40, 18), row(100, 35, 20)]
    (found,) = crossings(rows)
    assert (found.n, found.m) == (100, 45)
    assert found.ratio == pytest.approx(45 / (200 / log2(100)))
    (nowhere,) = crossings([row(60, 30, 18)])
    assert nowhere.m is None
    assert nowhere.ratio is None


def test_from_many_queries_to_few_until_half_are_not_solved(tmp_path):
    reports = []
    rows = measure_exact(
        [16, 20],
        (2.0, 0.8, 0.2, 0.1),
        trials=3,
        progress=lambda *pair: reports.append(pair),
    )
    # A fifth of a query per person determines nobody; a tenth is not tried.
    assert [(r.n, r.m) for r in rows] == [(16, 32), (16, 13), (16, 3), (20, 40), (20, 16), (20, 4)]
    assert all(r.solved == r.proven == 3 for r in rows if r.m >= 2 * r.n)
    assert all(r.solved < 2 and r.proven == 0 for r in rows if r.m < 5)
    assert all(r.wrong_proofs == 0 and r.time_outs == 0 for r in rows)
    assert reports[-1] == (24, 24)
    assert reports == sorted(reports)
    draw_exact(rows, 10.0, tmp_path / "exact.svg")
    text = (tmp_path / "exact.svg").read_text()
    assert "20 people" in text
    assert "10 s each" in text


def test_one_person_has_no_limit():
    with pytest.raises(InputError, match="at least 2"):
        measure_exact([1])
