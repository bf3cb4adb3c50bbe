from datetime import date, timedelta

import duckdb
import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import connect
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.sql.dates import date_of, days_of, snap_dates
from countleak.errors import Refused
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import url

FIRST = date(2015, 1, 1)
DAYS = np.random.default_rng(3).integers(0, 1200, 600)
BORN = [FIRST + timedelta(int(day)) for day in DAYS]


@pytest.fixture(scope="module")
def ducks(tmp_path_factory):
    path = tmp_path_factory.mktemp("dates") / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits (uid bigint, born date, seen date)")
        rows = [(k, day, day + timedelta(k % 3)) for k, day in enumerate(BORN)]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    database = Duck.of_file(path, salt_number(0), table="visits", user="uid")
    return Engine(database, release_of("18.1"), salt_number(0))


def count(engine, where):
    (row,) = engine.ask(f"SELECT count(*) FROM visits WHERE {where}").rows
    return row.values[0]


def test_dates_are_read_and_written_alike():
    for text in ("0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31"):
        assert date_of(days_of(text)) == text
    for text in ("2017-13-01", "2017-02-30", "17-01-01", "2017-1-1", "now", "infinity", ""):
        with pytest.raises(Refused, match="is no date"):
            days_of(text)


@pytest.mark.parametrize(
    ("low", "high", "first", "end"),
    [
        ("2017-01-01", "2018-01-01", "2017-01-01", "2018-01-01"),
        ("2017-01-01", "2017-02-01", "2017-01-01", "2017-02-01"),
        ("2017-01-05", "2017-01-06", "2017-01-05", "2017-01-06"),
        ("2017-02-01", "2017-05-01", "2017-02-01", "2017-05-01"),
        ("2017-02-03", "2017-06-20", "2017-01-01", "2017-07-01"),
        ("2013-06-01", "2021-06-01", "2010-01-01", "2030-01-01"),
        ("0001-01-01", "9999-12-31", "0001-01-01", "9999-12-31"),
    ],
)
def test_ranges_are_of_days_months_or_years(low, high, first, end):
    found = snap_dates(days_of(low), days_of(high))
    assert found[0] <= days_of(low)
    assert found[1] >= days_of(high)
    assert (date_of(found[0]), date_of(found[1])) == (first, end)


def test_a_range_that_moves_says_so_in_dates(ducks):
    answer = ducks.ask(
        "SELECT count(*) FROM visits WHERE born BETWEEN '2016-02-03' AND '2016-06-20'"
    )
    assert "2016-01-01 <= `born` < 2016-07-01" in answer.notices[0]
    inside = sum(date(2016, 1, 1) <= day < date(2016, 7, 1) for day in BORN)
    assert answer.rows[0].values[0] == pytest.approx(inside, abs=15)


def test_parts_and_shifts_count_whom_they_should(ducks):
    year = sum(day.year == 2016 for day in BORN)
    assert count(ducks, "year(born) = 2016") == pytest.approx(year, abs=15)
    assert count(ducks, "extract(year FROM born) = 2016") == count(ducks, "year(born) = 2016")
    assert count(ducks, "date_trunc('year', born) = '2016-01-01'") == pytest.approx(year, abs=15)
    monday = sum(day.isoweekday() == 1 for day in BORN)
    assert count(ducks, "weekday(born) = 1") == pytest.approx(monday, abs=15)
    assert count(ducks, "seen - born = 2") == pytest.approx(200, abs=15)
    assert count(ducks, "seen - interval '2 days' = born") == pytest.approx(200, abs=15)


def test_one_spelling_of_a_date_is_that_of_its_group(ducks):
    rows = ducks.ask("SELECT quarter(born), count(*) FROM visits GROUP BY 1").rows
    assert [row.values[0] for row in rows] == [1, 2, 3, 4]
    rows = ducks.ask("SELECT date_trunc('year', born), count(*) FROM visits GROUP BY 1").rows
    assert [row.values[0] for row in rows] == [
        "2015-01-01",
        "2016-01-01",
        "2017-01-01",
        "2018-01-01",
    ]
    rows = ducks.ask(
        "SELECT date_trunc('year', born) AS y, count(*) FROM visits GROUP BY 1 "
        "HAVING date_trunc('year', born) >= '2017-01-01'"
    ).rows
    assert [row.values[0] for row in rows] == ["2017-01-01", "2018-01-01"]
    assert count(ducks, "born = DATE '2016-05-01'") == count(ducks, "born = '2016-05-01'")


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ("born = 5", "A date cannot be compared with a number"),
        ("born = 'soon'", "is no date"),
        ("born > '2016-01-01'", "finite, nonempty range"),
        ("born LIKE '2016%'", "compares a text column"),
        ("year(uid) = 2016", "does not take a"),
        ("born + 5 = '2016-01-01'", "does not take a date"),
        ("born + interval '1 month' = '2016-01-01'", "days or weeks"),
        ("born + interval '99999 days' = '2016-01-01'", "at most 36600 days"),
        ("extract(epoch FROM born) = 5", "Parts of a date"),
        ("date_trunc('hour', born) = '2016-01-01'", "date_trunc takes"),
        ("year(born + interval '1 day') = 2016", "not on a function of it"),
    ],
)
def test_refusals(ducks, where, complaint):
    with pytest.raises(Refused, match=complaint):
        count(ducks, where)


def test_both_databases_answer_alike(ducks, postgres):
    connection = postgres.connection
    connection.execute("DROP TABLE IF EXISTS dated")
    connection.execute("CREATE TABLE dated (uid bigint, born date, seen date)")
    rows = [(k, day, day + timedelta(k % 3)) for k, day in enumerate(BORN)]
    connection.cursor().executemany("INSERT INTO dated VALUES (%s, %s, %s)", rows)
    connection.execute("DROP TABLE IF EXISTS visits")
    connection.execute("ALTER TABLE dated RENAME TO visits")
    questions = [
        "SELECT count(*) FROM visits WHERE born BETWEEN '2016-01-01' AND '2017-01-01'",
        "SELECT count(*) FROM visits WHERE born = '2016-05-01'",
        "SELECT year(born), month(born), count(DISTINCT seen) FROM visits GROUP BY 1, 2",
        "SELECT date_trunc('month', born), count(*) FROM visits GROUP BY 1",
        "SELECT date_trunc('week', seen + interval '1 week'), count(*) FROM visits GROUP BY 1",
        "SELECT weekday(born), seen - born, count(*) FROM visits GROUP BY 1, 2",
        "SELECT born, count(*) FROM visits GROUP BY born",
        "SELECT count(*) FROM visits WHERE day(born) = 3 AND born <> '2016-05-03'",
    ]
    with connect(url(postgres), table="visits", user="uid") as database:
        server = Engine(database, release_of("18.1"), salt_number(0))
        for question in questions:
            assert server.ask(question) == ducks.ask(question), question
