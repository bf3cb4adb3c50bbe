"""Aggregates beyond sums: near the truth, never a lone person's value, and honest about noise."""

import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.flattening import NOTHING
from countleak.diffix.order_statistics import Ranked, noisy_largest, noisy_median
from countleak.diffix.releases import release_of
from tests.diffix.conftest import salt_number


def engine_of(values, salt=0):
    secret = salt_number(salt)
    columns = {"uid": np.arange(len(values)), "x": np.asarray(values, dtype=float)}
    return Engine(
        Duck.of_columns(columns, secret, table="people", user="uid"), release_of("18.1"), secret
    )


def answer(engine, what):
    return engine.ask(f"SELECT {what} FROM people").rows[0].values


def test_order_statistics_are_near_those_of_the_data():
    values = np.random.default_rng(0).normal(50, 10, 2000)
    smallest, largest, middle, spread = answer(
        engine_of(values), "min(x), max(x), median(x), stddev(x)"
    )
    # Outliers and top group are the 4 to 12 smallest and largest of 2000.
    assert np.sort(values)[1] < smallest < np.sort(values)[20]
    assert np.sort(values)[-20] < largest < np.sort(values)[-2]
    assert middle == pytest.approx(np.median(values), abs=0.3)
    assert spread == pytest.approx(values.std(), abs=0.5)


def test_a_lone_value_changes_no_minimum_maximum_or_median():
    values = np.full(100, 7.0)
    for what in ("min(x)", "max(x)", "median(x)"):
        alone = answer(engine_of(values), what)
        assert alone == (7,)
        for lone in (-1e9, 1e9):
            assert answer(engine_of([*values, lone]), what) == alone


def test_a_lone_value_among_few_changes_no_minimum_maximum_or_median():
    """Nor does it where so few are around it that all are next to the middle, or near the end."""
    groups = [(others, lone) for others in range(3, 20) for lone in (-8_675_309, 8_675_309)] * 5
    values = [[lone, *[7.0] * others] for others, lone in groups]
    columns = {
        "uid": np.arange(sum(map(len, values))),
        "g": np.repeat(np.arange(len(groups)), [len(each) for each in values]),
        "x": np.concatenate(values),
    }
    duck = Duck.of_columns(columns, salt_number(0), table="people", user="uid")
    engine = Engine(duck, release_of("18.1"), salt_number(0))
    rows = engine.ask("SELECT g, min(x), max(x), median(x) FROM people GROUP BY g").rows
    found = [row.values[1:] for row in rows if row.values[0] != "*"]
    assert sum(None not in values for values in found) > 60
    assert set().union(*found) == {7, None}


def test_too_few_have_no_order_statistics():
    assert noisy_largest(Ranked(3, [9.0, 5.0, 1.0]), (1, 2), "max") == NOTHING
    assert noisy_median(Ranked(3, [9.0, 5.0, 1.0]), (1, 2), "median") == NOTHING


@pytest.mark.parametrize("users", [16, 17, 40, 41])
def test_the_middle_of_few_and_many(users):
    assert answer(engine_of(np.arange(users)), "median(x)")[0] == pytest.approx(
        (users - 1) / 2, abs=4
    )


def test_noise_functions_give_the_sd_of_the_noise():
    values = np.arange(400) % 21
    text = "count_noise(*), sum_noise(x), avg_noise(x), stddev_noise(x)"
    of_count, of_sum, of_avg, of_stddev = answer(engine_of(values), text)
    assert of_count == 2
    salts = range(40)
    found = np.array(
        [answer(engine_of(values, salt), "sum(x), avg(x), stddev(x)") for salt in salts]
    )
    # Four standard errors of an SD over 40 salts, and a quarter for outlier counts that vary.
    for said, seen in zip((of_sum, of_avg, of_stddev), found.std(axis=0), strict=True):
        assert said == pytest.approx(seen, rel=4 / np.sqrt(80) + 0.25)


def test_the_sd_of_noise_does_not_tell_what_one_person_adds():
    """It follows from what people add on average: with all digits two of them tell a person's."""
    values = np.random.default_rng(1).integers(1000, 5000, 200)
    text = "count_noise(x), sum_noise(x), avg_noise(x), stddev_noise(x), variance_noise(x)"
    whole = answer(engine_of(values), text)
    for left_out in range(20):
        kept = engine_of(np.delete(values, left_out))
        # An average and a variance are divided by a noisy count, which is told too.
        assert answer(kept, text)[:2] == whole[:2] == (2, 3000)
        assert len(f"{answer(kept, text)[2]:g}") <= 4


def test_the_vendors_own_exact_distance_from_a_lone_value():
    """Distances are from the average of all, which nobody flattens."""
    lone = 8_675_309
    (spread,) = answer(engine_of([*np.ones(200), lone]), "stddev(x)")
    assert 200 * spread == pytest.approx(lone, rel=0.01)


def test_distinct_values_are_credited_to_those_who_have_fewest():
    """One user has every value, and everyone else one: no value is that user's contribution."""
    values = 30
    columns = {
        "uid": np.append(np.zeros(values, int), np.arange(1, values + 1)),
        "x": np.append(np.arange(values), np.arange(values)),
    }
    counts = []
    for salt in map(salt_number, range(20)):
        database = Duck.of_columns(columns, salt, table="people", user="uid")
        counts += answer(Engine(database, release_of("18.1"), salt), "count(DISTINCT x)")
    # Thirty users are credited with one value each: noise of one layer, of SD 2.
    assert np.mean(counts) == pytest.approx(values, abs=4 * 2 / np.sqrt(20))
    assert np.std(counts) < 4


def test_a_person_with_two_rows_changes_no_count_of_others():
    """People come in groups of six; their counts do not tell whether somebody has two rows."""

    def counts(ids):
        columns = {"uid": ids, "g": ids // 6}
        duck = Duck.of_columns(columns, salt_number(0), table="people", user="uid")
        answer = Engine(duck, release_of("18.1"), salt_number(0)).ask(
            "SELECT g, count(*), count(uid), count(DISTINCT uid), count_noise(*) FROM people "
            "GROUP BY g"
        )
        return {row.values[0]: row.values for row in answer.rows if row.values[0] not in ("*", 83)}

    ids = np.arange(500)
    expected = counts(ids)
    assert len(expected) > 60
    assert counts(np.append(ids, 499)) == expected
