"""Casts that no value can fail, on DuckDB and on PostgreSQL alike."""

import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import connect
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.errors import Refused
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load, url

TEXTS = ["12", "-3.50", "+7", "0012", "12 ", "1e5", "abc", "٣", "1\n", "", "9" * 16, "1.2.3"]
NUMBERS = [12.0, -3.5, 7.0, 12.0, None, None, None, None, None, None, None, None]
EACH = 40


@pytest.fixture(scope="module")
def columns():
    """Users in equal numbers with each of the texts, and whole numbers."""
    count = EACH * len(TEXTS)
    return {
        "uid": np.arange(count),
        "t": np.array(TEXTS)[np.arange(count) % len(TEXTS)],
        "w": np.array([-5, 0, 2**62])[np.arange(count) % 3],
    }


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def casting(request, columns):
    salt, release = salt_number(0), release_of("18.1")
    if request.param == "duckdb":
        yield Engine(Duck.of_columns(columns, salt, table="casts", user="uid"), release, salt)
        return
    postgres = request.getfixturevalue("postgres")
    load(postgres.connection, "casts", columns)
    with connect(url(postgres), table="casts", user="uid") as database:
        yield Engine(database, release, salt)


def groups(engine, expression):
    answer = engine.ask(f"SELECT {expression}, count(*) FROM casts GROUP BY 1")
    return {row.values[0]: row.values[1] for row in answer.rows}


def test_texts_that_write_numbers_are_read_and_others_are_null(casting):
    counts = groups(casting, "CAST(t AS double precision)")
    assert counts.keys() == set(NUMBERS)
    for number in counts:
        assert abs(counts[number] - EACH * NUMBERS.count(number)) < 15


def test_whole_numbers_are_written_and_bounded(casting):
    assert groups(casting, "CAST(w AS text)").keys() == {"-5", "0", "1000000000000000"}
    assert groups(casting, "CAST(length(t) AS varchar)").keys() == set("012345") | {"16"}


def test_a_cast_is_a_condition_like_another(casting):
    for condition, count in (
        ("CAST(t AS double precision) = 12", 2 * EACH),
        ("CAST(w AS text) = '-5'", 4 * EACH),
        ("CAST(w AS text) <> '-5'", 8 * EACH),
    ):
        (row,) = casting.ask(f"SELECT count(*) FROM casts WHERE {condition}").rows
        assert abs(row.values[0] - count) < 15


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("CAST(t AS date)", "write no other"),
        ("CAST(CAST(t AS double precision) AS text)", "cast it to an integer first"),
        ("CAST(t AS boolean)", "write no other"),
        ("CAST(CAST(t AS integer) AS text)", "cannot be cast again"),
        ("CAST(w AS date)", "write no other"),
        ("CAST(t AS numeric(3, 1))", "not allowed"),
    ],
)
def test_refusals(casting, text, complaint):
    with pytest.raises(Refused, match=complaint):
        casting.ask(f"SELECT {text}, count(*) FROM casts GROUP BY 1")


def test_a_rounded_text_is_no_range_in_disguise(casting):
    with pytest.raises(Refused, match="not on a function of it"):
        casting.ask("SELECT count(*) FROM casts WHERE CAST(t AS integer) = 12")


def test_a_variance_is_the_square_of_the_deviation(engine):
    (row,) = engine.ask("SELECT stddev(duration), variance(duration) FROM loans").rows
    assert row.values[1] == pytest.approx(row.values[0] ** 2, rel=1e-4)
