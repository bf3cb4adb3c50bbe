import pytest

from benchmarks.scale import Row, draw_leaks, exponent, leaks, measure, run_here


@pytest.mark.slow
def test_a_run_is_a_process_of_its_own_and_what_takes_too_long_ends():
    seen = []
    rows = measure([150], 10.0, 0, lambda *done: seen.append(done), ["message passing"])
    assert [row.method for row in rows] == ["message passing"]
    assert 50 < rows[0].memory < 2000
    assert seen[-1] == (1, 1)


@pytest.mark.parametrize("method", ["message passing", "HiGHS"])
def test_a_method_gets_what_is_predicted(method):
    row = run_here(method, 150, 0)
    assert row.interval[0] < row.accuracy < row.interval[1]
    assert abs(row.accuracy - row.predicted) < 0.1


def test_exponents_are_fitted():
    rows = [
        Row("m", n, 1.0, 1e-6 * n**2, 1.0, float(n), 1.0, (0.9, 1.0), None, None)
        for n in (100, 1000, 10000)
    ]
    assert exponent(rows, "m", "seconds") == pytest.approx(2.0)
    assert exponent(rows, "m", "memory") == pytest.approx(1.0)
    assert exponent(rows, "other", "seconds") is None


@pytest.mark.slow
def test_noise_that_leaks_grows_with_the_square_root(tmp_path):
    found = leaks(1000, 0, lambda *done: None)
    ratios = [leak.sigma / leak.n**0.5 for leak in found]
    assert ratios[-1] == pytest.approx(ratios[0], rel=0.1)
    assert found[2].attained == pytest.approx(0.95, abs=0.02)
    draw_leaks(found, tmp_path / "law.svg")
    assert (tmp_path / "law.svg").stat().st_size > 5000
