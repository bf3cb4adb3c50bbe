import numpy as np
import pytest

from benchmarks.decoders import compare, pooled_error, queries_needed
from benchmarks.worlds import KINDS, SUITES, Setting, Suite, random_tables
from countleak.errors import InputError


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_is_pure_in_its_number(kind):
    setting = Setting(40, 30, 2.0, 0.3, kind)
    first, again, other = setting.world(1), setting.world(1), setting.world(2)
    assert np.array_equal(first.secret, again.secret)
    assert np.array_equal(first.transcript.values, again.transcript.values, equal_nan=True)
    assert not np.array_equal(first.transcript.queries.matrix, other.transcript.queries.matrix)


def test_a_comparison_has_errors_baselines_and_limits():
    suite = Suite("?", (Setting(30, 300, 2.0),), ("lp", "bayes"))
    lp, bayes = compare(suite, trials=3)
    assert lp["decoder"] == "lp"
    assert bayes["accuracy"] >= lp["accuracy"] - 0.05
    assert bayes["baseline"] < bayes["accuracy"] <= 1
    assert bayes["evolution"] <= bayes["genie"] <= 1
    assert bayes["calibration_error"] < 0.1
    assert lp["calibration_error"] is None
    assert pooled_error([bayes]) == pytest.approx(bayes["calibration_error"])
    assert pooled_error([bayes, bayes]) == pytest.approx(bayes["calibration_error"])
    assert pooled_error([lp]) is None
    with pytest.raises(InputError, match="1 trials have no standard error"):
        list(compare(suite, trials=1))


def test_every_suite_names_decoders_that_exist():
    from benchmarks.decoders import DECODERS

    assert all(set(suite.decoders) <= set(DECODERS) for suite in SUITES.values())


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(100, 0.9), (200, 0.98), (300, 1.0)], 250.0),
        ([(100, 0.995), (200, 0.98), (300, 1.0)], 250.0),
        ([(100, 0.995), (200, 1.0)], 100.0),
        ([(100, 0.9), (200, 0.98)], None),
        ([], None),
    ],
)
def test_queries_needed_is_where_the_target_is_passed_for_good(points, expected):
    assert queries_needed(points) == (expected if expected is None else pytest.approx(expected))


def test_tables_are_drawn_without_repeating():
    tables = random_tables(list("abcdef"), 40, np.random.default_rng(0))
    assert len(set(tables)) == 40
    with pytest.raises(InputError, match="6 columns make 41 tables of up to 3, not 42"):
        random_tables(list("abcdef"), 42, np.random.default_rng(0))
