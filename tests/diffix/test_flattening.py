import numpy as np
import pytest

from countleak.diffix import flattening
from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.flattening import NOTHING, Contributions, flatten, noisy_sum
from countleak.diffix.releases import release_of
from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.parser import parse
from countleak.diffix.sql.queries import Asked
from tests.diffix.conftest import salt_number

NOBODY = Contributions()


@pytest.fixture
def counts(monkeypatch):
    """Outlier and top counts fixed at 2 and 3."""
    monkeypatch.setattr(
        flattening, "drawn", lambda seeds, purpose: {"outliers": 2, "top": 3}[purpose]
    )


def test_outliers_become_the_average_of_the_top_group(counts):
    values = [1000, 400, 12, 9, 6, 3, 2, 2, 1, 1]
    found = flatten(Contributions(10, sum(values), values), ())
    # (12 + 9 + 6) / 3 = 9 stands for 1000 and for 400: 9 + 9 + 12 + 9 + 6 + 3 + 2 + 2 + 1 + 1.
    assert found.sum == 54
    # One user adds 5.4 on average, half a top one 4.5.
    assert found.sd(2) == 5.4
    assert found.sd(6) == 6


def test_half_the_top_average_counts_where_it_is_larger(counts):
    values = [50, 50, 40, 40, 40] + [1] * 100
    found = flatten(Contributions(105, sum(values), values[:12]), ())
    assert found.sum == 5 * 40 + 100
    assert found.sd(2) == 20


def test_a_side_with_too_few_users_is_left_out(counts):
    assert not flatten(Contributions(4, 407, [100, 100, 104, 103]), ()).is_enough
    many = Contributions(5, 25.0, [5.0] * 5)
    few = Contributions(1, 8_675_309.0, [8_675_309.0])
    assert noisy_sum((few, NOBODY), (1, 2), "sum", 2) == NOTHING
    assert noisy_sum((many, few), (1, 2), "sum", 2) == noisy_sum((many, NOBODY), (1, 2), "sum", 2)


def test_sides_have_noise_of_their_own():
    side = Contributions(100, 300.0, [3.0] * 12)
    sums = [noisy_sum((side, side), (k, -k), "sum", 2).value for k in range(1, 3001)]
    # Two layers of SD max(2, 3, 3/2) on each side.
    assert np.std(sums) == pytest.approx(np.sqrt(4) * 3, rel=5 / np.sqrt(6000))
    assert noisy_sum((side, side), (1, 2), "sum", 2).sd == pytest.approx(6)


def test_counts_are_drawn_between_2_and_6_around_3():
    drawn = [flattening.drawn(range(4 * k, 4 * k + 4), "top") for k in range(2000)]
    assert set(drawn) == {2, 3, 4, 5, 6}
    # round(N(3, 1)) no less than 2: mean 2*.3085 + 3*.3829 + 4*.2417 + 5*.0606 + 6*.0062.
    assert sum(drawn) / 2000 == pytest.approx(3.073, abs=0.1)


def one_debtor(salt, debt):
    """200 people who own 5 to 9 each, and one who owes ``debt``."""
    columns = {"uid": np.arange(201), "money": np.append(np.arange(200) % 5 + 5, -debt)}
    secret = salt_number(salt)
    database = Duck.of_columns(columns, secret, table="people", user="uid")
    return Engine(database, release_of("18.1"), secret)


def test_a_lone_value_is_not_in_the_sum():
    sums = {
        debt: [
            one_debtor(salt, debt).ask("SELECT sum(money) FROM people").rows[0] for salt in range(5)
        ]
        for debt in (8_675_309, 1)
    }
    assert sums[8_675_309] == sums[1]
    # One layer of SD 7, the average of what they own.
    assert all(abs(row.values[0] - 1400) < 50 for row in sums[1])


def test_noise_of_sums_is_max_2_avg_half_top_per_layer():
    """The spread over salts, of which one layer of a question without conditions is drawn."""
    sums = np.array(
        [
            one_debtor(salt, 1).ask("SELECT sum(money) FROM people").rows[0].values[0]
            for salt in range(40)
        ]
    )
    assert np.std(sums) == pytest.approx(7, rel=4 / np.sqrt(80))


def test_people_who_add_0_are_contributors():
    columns = {"uid": np.arange(50), "money": np.where(np.arange(50) < 10, 100, 0)}
    database = Duck.of_columns(columns, salt_number(3), table="people", user="uid")
    statement = parse("SELECT sum(money) FROM people", Reader(database.table))
    asked = Asked(statement, (), database.dialect(salt_number(3)))
    query = asked.contributions(statement.aggregates[0], 12, ())
    (row,) = database.rows(*query)
    # Bucket, then users, sum and largest of each side: nobody subtracts.
    assert (row[1], row[2], row[4]) == (50, 1000, 0)
