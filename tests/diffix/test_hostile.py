"""What a client sees does not depend on a row whose values a database cannot compute with.

Every form of question that is allowed is asked of a table of honest people, of the same with
hostile values among them, and of an empty table, on DuckDB and on a real PostgreSQL.
"""

import math
import re
from itertools import islice

import duckdb
import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import connect
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.sql.dates import TRUNCATED
from countleak.diffix.sql.functions import CASTS, FUNCTIONS, GENERALISING, ROUNDING
from countleak.diffix.sql.statement import Column, Kind
from countleak.errors import Refused
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import url

# Functions of our own tables, and those of which other spellings are read.
WRITTEN_OTHERWISE = (
    *GENERALISING,
    *CASTS,
    *(name for name in ROUNDING if name not in ("round", "trunc")),
)
HUGE = "x" * 1_000_000
# Of a double, of a decimal of any size, of a whole number, and of a text.
DOUBLES = [
    "NaN", "Infinity", "-Infinity", "5e-324", "1e-310", "1e308", "-1e308", "1e32", "-0.0", "0",
    None,
]  # fmt: skip
DECIMALS = ["NaN", "Infinity", "1e400", "-1e400", "1e-400", "1e32", "0", None, "5", "7", "1"]
WHOLES = [2**63 - 1, -(2**63), 0, None, 1, -1, 2**53 + 1, 5, 7, 3, 2]
TEXTS = ["", HUGE, None, "%_\\'", "é\u0301", " ", "NaN", "1e999", "\u202e", "\\", "🦆"]
DATES = [
    "infinity", "-infinity", "0044-03-15 (BC)", "10000-01-01", "0001-01-01", "9999-12-31", None,
    "2000-02-29", "1970-01-01", "1969-12-31", "2020-01-01",
]  # fmt: skip
HONEST = [
    (k, float(k % 7), float(k % 5), k % 6, "abc"[k % 3], f"20{10 + k % 3}-0{1 + k % 4}-15")
    for k in range(1, 61)
]
HOSTILE = [
    (1000 + k, *row)
    for k, row in enumerate(zip(DOUBLES, DECIMALS, WHOLES, TEXTS, DATES, strict=True))
]
TABLES = {"honest": HONEST, "hostile": [*HONEST, *HOSTILE], "empty": []}
TWICE = "SELECT * FROM {0} UNION ALL SELECT * FROM {0}"
TYPES = "uid bigint, f double precision, d {}, w bigint, s text, b date"


def duck(path, name):
    """A file of a table as DuckDB reads it; its decimals are doubles, which have no 1e400."""
    with duckdb.connect(str(path / f"{name}.duckdb")) as connection:
        connection.execute(f"CREATE TABLE {name} ({TYPES.format('double')})")
        rows = [
            [float(v) if place in (1, 2) and v is not None else v for place, v in enumerate(row)]
            for row in TABLES[name]
        ]
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute(f"CREATE TABLE {name}_too AS {TWICE.format(name)}")
    return Duck.of_file(path / f"{name}.duckdb", salt_number(0), **declared(name))


def declared(name):
    """How a table, and another that has all its rows twice, are declared."""
    return {"table": name, "user": "uid", "others": {f"{name}_too": "uid"}}


@pytest.fixture(scope="module")
def ducks(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile")
    return {name: duck(path, name) for name in TABLES}


@pytest.fixture(scope="module")
def servers(postgres):
    for name, rows in TABLES.items():
        postgres.connection.execute(f"DROP TABLE IF EXISTS {name}")
        postgres.connection.execute(f"CREATE TABLE {name} ({TYPES.format('numeric')})")
        postgres.connection.cursor().executemany(
            f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, translate(%s, '()', '')::date)",
            rows,
        )
        postgres.connection.execute(f"DROP TABLE IF EXISTS {name}_too")
        postgres.connection.execute(f"CREATE TABLE {name}_too AS {TWICE.format(name)}")
    with (
        connect(url(postgres), **declared("honest")) as honest,
        connect(url(postgres), **declared("hostile")) as hostile,
        connect(url(postgres), **declared("empty")) as empty,
    ):
        yield {"honest": honest, "hostile": hostile, "empty": empty}


@pytest.fixture(params=["ducks", "servers"])
def databases(request):
    return request.getfixturevalue(request.param)


def numeric_forms():
    """Every function of numbers, alone and in towers that overflow or underflow."""
    for column in "fdw":
        for name, function in FUNCTIONS.items():
            if not function.takes[0].numeric or name in WRITTEN_OTHERWISE:
                continue
            other = "" if len(function.takes) == 1 else ", 3"
            yield f"{column} {name} 3" if name in "+-*/" else f"{name}({column}{other})"
        for digits in ("-10", "10"):
            yield f"round({column}, {digits})"
            yield f"trunc({column}, {digits})"
        yield f"bucket({column} BY 1e-15)"
        yield f"bucket({column} BY 1e15)"
        yield f"CAST({column} AS integer)"
        yield f"pow(pow(pow({column} * 1e-15, 4), 4), 4)"
        yield f"pow(pow({column} * 1e15, 4), 4)"
        yield f"pow(pow({column}, 0.5), 0.25)"
        yield f"{column} * {column} * {column} * {column} * {column} * {column}"
        yield f"{column} * {column} - {column} / 1e-15"
        yield f"sqrt({column} - 1e15) * 1e-15"
        yield f"floor({column} * 1e15 + 0.5) / 1e-15"
        yield f"abs({column} / 1e15 / 1e15 / 1e15)"


def text_forms():
    for name, function in FUNCTIONS.items():
        if function.takes[0] is Kind.TEXT and name not in CASTS:
            other = ", s" if name == "concat" else ", 1" * (len(function.takes) - 1)
            yield f"{name}(s{other})"


def cast_forms():
    """Casts of numbers and dates to texts, and of texts to numbers."""
    yield "CAST(w AS text)"
    yield "CAST(CAST(d * 1e15 AS integer) AS varchar)"
    yield "CAST(b AS text)"
    yield "CAST(b - interval '36600 days' + interval '5000 weeks' AS text)"
    yield "CAST(s AS double precision)"
    yield "CAST(s || '1' AS integer)"
    yield "CAST(s || '999999.5' AS double precision)"


def date_forms():
    """Every function of dates, alone and of a date that is moved."""
    for date in ("b", "(b + interval '5000 weeks')", "(b - interval '36600 days')"):
        yield from (f"{name}({date})" for name in ("year", "quarter", "month", "day", "weekday"))
        yield f"extract(isodow FROM {date})"
        yield from (f"date_trunc('{unit}', {date})" for unit in TRUNCATED)
        yield f"{date} - b"


def conditions():
    for form in date_forms():
        is_date = form.startswith("date_trunc")
        yield f"{form} = '2010-01-01'" if is_date else f"{form} = 1"
    yield "b BETWEEN '2010-01-01' AND '2011-01-01'"
    yield "b >= DATE '0001-01-01' AND b < '9999-12-31'"
    yield "b IN ('2010-01-15', '2000-02-29')"
    yield "b <> '2010-01-15'"
    yield "b IS NULL"
    for form in numeric_forms():
        yield f"{form} = 5"
        yield f"{form} = f"
    for form in cast_forms():
        is_text = form.endswith(("text)", "varchar)"))
        yield f"{form} = '5'" if is_text else f"{form} = 5"
    for form in text_forms():
        yield f"{form} = 'a'" if not form.startswith("length") else f"{form} = 1"
    for column in "fdw":
        yield f"{column} BETWEEN 0 AND 10"
        yield f"{column} = 1e15"
        yield f"{column} <> 3"
        yield f"{column} IN (0, 1, 3.5)"
        yield f"{column} IS NULL"
        yield f"{column} IS NOT NULL"
    for pattern in ("%", "_", "%x%", ""):
        yield f"s LIKE '{pattern}'"
        yield f"s NOT ILIKE '{pattern}'"
    yield "s IN ('', 'a')"
    yield "s <> ''"
    yield "s IS NULL"


def aggregates():
    yield "count(*)"
    for column in ("uid", "f", "d", "w", "s", "b"):
        yield f"count({column})"
        yield f"count(DISTINCT {column})"
    for column in "fdw":
        yield f"sum({column}), avg({column}), stddev({column}), variance({column})"
        yield f"min({column}), max({column}), median({column})"
        yield f"count_noise({column}), sum_noise({column}), stddev_noise({column})"


def per_user():
    """Questions about what a subquery makes of each user's rows."""
    made = [f"count({column})" for column in ("*", "uid", "f", "d", "w", "s", "b", "DISTINCT s")]
    made += [f"{name}({column})" for name in ("sum", "avg", "min", "max") for column in "fdw"]
    for each in made:
        rows = f"(SELECT uid, {each} AS a FROM t WHERE w <> 3 GROUP BY uid) q"
        yield f"SELECT a, count(*), sum(a) FROM {rows} GROUP BY a"
        yield f"SELECT count(*), max(a), median(a), stddev(a) FROM {rows} WHERE a <> 1"
        yield f"SELECT count(*) FROM {rows} WHERE a BETWEEN 0 AND 10"
        yield f"SELECT count(*) FROM {rows} WHERE pow(pow(a, 4), 0.5) = 1"


def joins():
    """Questions about two tables, with columns of both."""
    source = "FROM t AS x JOIN t_too AS y ON x.uid = y.uid"
    for column in "fdwsb":
        yield f"SELECT count(*) {source} WHERE x.{column} = y.{column}"
        yield f"SELECT y.{column}, count(*), count(DISTINCT x.{column}) {source} GROUP BY 1"
    for column in "fdw":
        yield f"SELECT sum(x.{column}), max(y.{column}), stddev(y.{column}) {source}"
        yield f"SELECT count(*) {source} WHERE pow(x.{column}, 2) - y.{column} * 1e15 = 5"
        yield f"SELECT count(*) {source} WHERE y.{column} BETWEEN 0 AND 10 AND x.s LIKE '%a'"
        made = f"(SELECT x.uid, sum(y.{column}) AS a {source} WHERE x.w <> 3 GROUP BY x.uid) q"
        yield f"SELECT a, count(*), sum(a) FROM {made} GROUP BY a"


def statements():
    yield from joins()
    yield from per_user()
    for condition in conditions():
        yield f"SELECT count(*) FROM t WHERE {condition}"
    for aggregate in aggregates():
        yield f"SELECT {aggregate} FROM t"
        for column in ("f", "d", "w", "s", "b"):
            yield f"SELECT {column}, {aggregate} FROM t GROUP BY {column}"
    for form in (*numeric_forms(), *text_forms(), *date_forms(), *cast_forms()):
        yield f"SELECT {form}, count(*), sum(d) FROM t GROUP BY 1"


def seen(databases, name, text):
    """The names of an answer's columns, or the words of a refusal; any other error is a failure."""
    engine = Engine(databases[name], release_of("18.1"), salt_number(0))
    try:
        answer = engine.ask(re.sub(r"\b(FROM|JOIN) t(_too)?\b", rf"\1 {name}\2", text))
    except Refused as refusal:
        return str(refusal)
    for row in answer.rows:
        for value in row.values:
            assert not isinstance(value, float) or math.isfinite(value)
    return answer.columns


@pytest.mark.parametrize(
    "every", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["one in five", "all"]
)
def test_every_form_is_answered_or_refused_whatever_the_rows_hold(databases, every):
    answered = 0
    for text in islice(statements(), 0, None, every):
        expected = seen(databases, "empty", text)
        for name in ("honest", "hostile"):
            assert seen(databases, name, text) == expected, text
        answered += isinstance(expected, tuple)
    assert answered > 250 / every


def test_a_question_about_one_hostile_person_is_answered_like_one_about_nobody(databases):
    for uid in (1000 + k for k in range(len(HOSTILE))):
        for aggregate in aggregates():
            for group, chosen in (("", ""), (" GROUP BY f, s", "f, ")):
                text = f"SELECT {chosen}{aggregate} FROM {{}} WHERE uid = {uid}{group}"
                rows = [
                    Engine(databases[name], release_of("18.1"), salt_number(0))
                    .ask(text.format(name))
                    .rows
                    for name in ("hostile", "honest")
                ]
                assert rows[0] == rows[1], text


def test_magnitudes_that_doubles_cannot_hold_are_refused_before_any_row_is_read(ducks):
    for form in ("pow(pow(pow(f * 1e-15, 4), 4), 4)", "pow(pow(f, 4), 4)", "f*f*f*f*f*f*f*f*f*f*f"):
        assert "too large or too small" in seen(
            ducks, "empty", f"SELECT count(*) FROM t WHERE {form} = w"
        )
    assert isinstance(seen(ducks, "empty", "SELECT count(*) FROM t WHERE pow(w, 4) = f"), tuple)


def test_values_are_read_within_bounds_on_both_databases(ducks, servers):
    text = 'SELECT "f", "w", "s", "b" FROM {} WHERE "uid" >= 1000 ORDER BY "uid"'
    expected = ducks["hostile"].rows(text.format("hostile"))
    assert [row[0] for row in expected] == [
        None, 1e30, -1e30, 0, 0, 1e30, -1e30, 1e30, 0, 0, None,
    ]  # fmt: skip
    table = servers["hostile"].table
    columns = [Column(name, table.columns[name]) for name in ("uid", "f", "w", "s", "b")]
    source = servers["hostile"].dialect(salt_number(0)).source(table, columns)
    assert servers["hostile"].rows(text.format(source)) == expected
    assert max(len(row[2] or "") for row in expected) == 1000
    assert [row[3] for row in expected] == [
        None, None, None, None, -719162, 2932896, None, 11016, 0, -1, 18262,
    ]  # fmt: skip


def test_whole_numbers_fit_into_what_clients_expect():
    columns = {"uid": np.arange(50), "w": np.full(50, 2**63 - 1)}
    database = Duck.of_columns(columns, salt_number(0), table="people", user="uid")
    engine = Engine(database, release_of("18.1"), salt_number(0))
    (row,) = engine.ask("SELECT w, sum(w) FROM people GROUP BY w").rows
    assert row.values == (2**63 - 1, 2**63 - 1)
