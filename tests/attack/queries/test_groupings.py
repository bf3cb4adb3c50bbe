import duckdb
import numpy as np
import pytest

from countleak.attack.queries.groupings import Grouping, as_shown, groupings_of
from countleak.errors import InputError

AMOUNTS = np.array([0, 7, 10, 14, 15, 20, 29, 31])
DAYS = np.array(["2019-12-31", "2020-01-01", "2020-05-31", "2020-06-01"])
ZIPS = np.array(["10001", "10115", "80331"])
# What noisy fronts have and plain databases do not.
FLOOR_BY = "CREATE MACRO floor_by(v, w) AS floor(v / w) * w"
ROUND_BY = "CREATE MACRO round_by(v, w) AS floor(v / w + 0.5) * w"


def shown_by_duckdb(values, grouping):
    """The groups of the values as DuckDB computes them."""
    connection = duckdb.connect()
    connection.execute(FLOOR_BY)
    connection.execute(ROUND_BY)
    kind = {"i": "BIGINT", "U": "DATE" if "-" in str(values[0]) else "TEXT"}[values.dtype.kind]
    connection.execute(f"CREATE TABLE t (n int, v {kind})")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values.tolist())))
    text = f"SELECT {grouping.expression().sql('duckdb', identify=True)} FROM t ORDER BY n"
    return [value for (value,) in connection.execute(text).fetchall()]


@pytest.mark.parametrize(
    ("values", "grouping"),
    [
        (AMOUNTS, Grouping("v")),
        (AMOUNTS, Grouping("v", "floor_by", 10)),
        (AMOUNTS, Grouping("v", "round_by", 10)),
        (AMOUNTS - 20, Grouping("v", "floor", 5)),
        (AMOUNTS - 20, Grouping("v", "round", 10)),
        (ZIPS, Grouping("v", "substring", 2)),
        (DAYS, Grouping("v", "date_trunc", "month")),
        (DAYS, Grouping("v", "date_trunc", "quarter")),
        (DAYS, Grouping("v", "date_trunc", "year")),
    ],
    ids=str,
)
def test_the_labels_are_those_that_a_database_shows(values, grouping):
    labels = grouping.labels(values)
    shown = [as_shown(x, y) for x, y in zip(labels, shown_by_duckdb(values, grouping), strict=True)]
    if grouping.function == "date_trunc":
        shown = [str(day)[:10] for day in shown]
    assert shown == labels


@pytest.mark.parametrize(
    ("values", "grouping"),
    [
        (np.array([-5, 0, 49, 50, 51, 99_999, 100_000, 10**7]), Grouping("v", "width_bucket", 50)),
        (np.array([-251, -250, -249, 0, 49, 50, 149, 150]), Grouping("v", "round", 100)),
    ],
    ids=str,
)
def test_ranges_that_postgres_has_are_labelled_as_it_shows_them(postgres, values, grouping):
    listed = ", ".join(f"({value})" for value in values)
    text = f"SELECT {grouping} FROM (VALUES {listed}) AS t(v)"
    shown = [value for (value,) in postgres.connection.execute(text.encode()).fetchall()]
    labels = grouping.labels(values)
    assert [as_shown(x, y) for x, y in zip(labels, shown, strict=True)] == labels


def test_what_is_shown_as_text_is_read_like_the_labels():
    assert as_shown(5, "5.0") == 5
    assert as_shown(0.25, "2.5e-1") == 0.25
    assert as_shown(5, "*") == "*"
    assert as_shown(True, "t") is True
    assert as_shown(False, "false") is False
    assert as_shown("007", 7) == "7"
    assert as_shown("a", None) is None


def test_columns_are_grouped_as_they_can_be():
    functions = ("", "floor_by", "round_by", "substring", "date_trunc")
    assert {g.function for g in groupings_of("v", AMOUNTS, functions)} == {
        "", "floor_by", "round_by",
    }  # fmt: skip
    odd = groupings_of("v", AMOUNTS, ("floor", "round"), ("floor",))
    assert {4, 6, 7} <= {g.size for g in odd if g.function == "floor"}
    assert {g.size for g in odd if g.function == "round"} == {10}
    assert [g.size for g in groupings_of("v", DAYS, functions)] == [0, "year", "quarter"]
    assert [g.size for g in groupings_of("v", ZIPS, functions)] == [0, 1]
    assert groupings_of("v", np.array(["a", "a"]), functions) == []
    missing = np.array([1, None, 3], dtype=object)
    assert Grouping("v", "floor_by", 2).labels(missing) == [0, None, 2]


@pytest.mark.parametrize(
    ("function", "size"),
    [
        ("sum", 1),
        ("floor_by", 0),
        ("floor_by", "5"),
        ("date_trunc", "day"),
        ("substring", -1),
        ("round", 20),
    ],
)
def test_what_is_no_grouping_is_refused(function, size):
    with pytest.raises(InputError):
        Grouping("v", function, size)
