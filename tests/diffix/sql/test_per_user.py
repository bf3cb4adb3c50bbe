"""Subqueries that group by the user id: a row per user, answered as truly as any other question."""

import numpy as np
import pytest

from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.errors import Refused

BY_USER = "(SELECT uid, {} FROM visits{} GROUP BY uid) AS q"


def per_user(aggregates, where=""):
    return BY_USER.format(aggregates, where)


@pytest.fixture(scope="module")
def rows(visits):
    """User, place, cost and weight of each row."""
    return visits.database.rows(
        'SELECT uid, place, "cost", weight FROM visits WHERE uid IS NOT NULL'
    )


def test_users_by_their_number_of_rows(visits):
    """User u has u % 5 + 1 rows: 80 users have each number from 1 to 5."""
    text = f"SELECT n, count(*) FROM {per_user('count(*) AS n')} GROUP BY n"
    answer = visits.ask(text)
    assert [row.values[0] for row in answer.rows] == [1, 2, 3, 4, 5]
    assert all(abs(row.values[1] - 80) < 10 for row in answer.rows)


def test_what_a_subquery_makes_of_rows_is_what_they_hold(visits, rows):
    north = {}
    for user, place, cost, weight in rows:
        if place == "north":
            north.setdefault(user, []).append((cost, weight))
    costs = [[cost for cost, _ in of_user] for of_user in north.values()]
    made = "sum(cost) AS s, min(cost) AS l, max(cost) AS m, avg(weight) AS a, count(*) AS n"
    source = per_user(made, " WHERE place = 'north'")
    (row,) = visits.ask(
        f"SELECT count(*), sum(n), avg(s), avg(l), avg(m), avg(a) FROM {source}"
    ).rows
    count, total, *means = row.values
    assert abs(count - len(north)) < 12
    assert abs(total - sum(map(len, costs))) < 40
    weights = [np.mean([weight for _, weight in of_user]) for of_user in north.values()]
    expected = [np.mean([of(c) for c in costs]) for of in (sum, min, max)] + [np.mean(weights)]
    assert means == pytest.approx(expected, rel=0.15, abs=4)


def test_conditions_inside_and_outside(visits, rows):
    kept = [user for user, place, cost, _ in rows if place != "south" and 0 <= cost < 50]
    counts = np.unique(kept, return_counts=True)[1]
    source = per_user("count(*) AS n", " WHERE place <> 'south' AND cost BETWEEN 0 AND 50")
    (row,) = visits.ask(f"SELECT count(*) FROM {source} WHERE n = 2").rows
    assert abs(row.values[0] - (counts == 2).sum()) < 15


def test_noise_is_that_of_what_is_asked_and_not_of_its_names(visits):
    one = f"SELECT n, count(*) FROM {per_user('count(*) AS n')} GROUP BY n"
    other = f"SELECT x.k, count(*) FROM {per_user('count(*) AS k, sum(cost) AS s')} GROUP BY x.k"
    assert visits.ask(one).rows == visits.ask(other.replace("AS q", "AS x")).rows


def test_one_row_per_user_is_answered_like_the_rows(engine):
    inside = (
        "SELECT count(*) FROM (SELECT client_id, count(*) AS n FROM loans WHERE {} GROUP BY 1) q"
    )
    for condition in ("status = 'C'", "amount BETWEEN 0 AND 100000", "duration <> 12"):
        plain = engine.ask(f"SELECT count(*) FROM loans WHERE {condition}")
        assert engine.ask(inside.format(condition)).rows == plain.rows


def test_the_group_of_one_user_is_suppressed(visits):
    texts = [
        f"SELECT n, count(*) FROM {per_user('count(*) AS n', f' WHERE uid = {user}')} GROUP BY n"
        for user in (7, 7_000_000)
    ]
    assert [visits.ask(text).rows for text in texts] == [(), ()]


def test_releases_that_refuse_them(visits):
    tables = Engine(visits.database, release_of("tables"), visits.salt)
    with pytest.raises(Refused, match="subquery that groups"):
        tables.ask(f"SELECT count(*) FROM {per_user('count(*) AS n')}")
    later = Engine(visits.database, release_of("18.3"), visits.salt)
    with pytest.raises(Refused, match="isolating"):
        later.ask(f"SELECT count(*) FROM {per_user('sum(cost) AS s')} WHERE floor(s / 10) = 3")
