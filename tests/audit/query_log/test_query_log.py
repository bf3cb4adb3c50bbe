"""The account of a log, on real tables."""

import sqlite3
from fractions import Fraction
from itertools import combinations

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import countleak as cl
from countleak.audit.query_log import Options, audit_log
from countleak.errors import InputError, NoResult
from tests.attack.ledger.test_row_space import first_row

PEOPLE = """\
id,age,sex,region,born,note
1,34,F,A,1990-01-01,x
2,35,F,A,1989-05-05,
3,36,M,A,1988-01-01,y
4,50,M,B,1974-01-01,y
5,51,F,B,1973-01-01,x
6,60,M,B,1964-01-01,x
7,61,F,B,1963-02-01,
"""


@pytest.fixture
def audit(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)

    def audit(*statements, database="people.csv", table="people", **options):
        (tmp_path / "log.sql").write_text(";\n".join(statements) + ";\n")
        place = database if "://" in database else str(tmp_path / database)
        return audit_log(tmp_path / "log.sql", place, table, options=Options(**options))

    return audit


ALL, MOST = "SELECT count(*) FROM people", "SELECT count(*) FROM people WHERE age <> 34"


def test_two_large_counts_pin_the_one_between_them(audit):
    result = audit(ALL, ALL, MOST, "SELECT count(*) FROM orders")
    (alarm,) = result.alarms
    assert (alarm.by.number, alarm.people, alarm.is_proven) == (3, 1, True)
    assert alarm.equation == "query 1 [everybody] (7) - query 3 [age <> 34] (6) = 1 person"
    assert result.accounts[0].curve == ((3, 1),)
    assert not result.unread
    assert result.others == {"orders": 1}
    assert alarm.record()["earlier"] == [1]


def test_an_equation_that_holds_by_chance_says_of_whom(audit):
    # Everybody below 35 happens to be in region A.
    result = audit(
        "SELECT count(*) FROM people WHERE age >= 35",
        ALL,
        "SELECT count(*) FROM people WHERE region = 'A'",
    )
    first, second = result.alarms
    assert first.is_proven
    assert second.people == 2
    assert not second.is_proven
    assert "nobody is like this" in second.rests_on
    assert "NOT region = 'A'" in second.rests_on


def test_unread_statements_are_no_all_clear(audit):
    result = audit(
        ALL, "SELECT * FROM people", "SELECT count(*) FROM people WHERE note::date > '1'"
    )
    assert result.not_read == 2
    assert "the table's values do not allow it to be computed" in result.unread
    assert "Not in the account: 2 of 3 statements, so it is no all-clear." in str(result)
    with pytest.raises(NoResult, match="none of 1 statements counts rows of people"):
        audit("SELECT * FROM people")


def test_nulls_dates_and_groups_count_as_the_database_counts_them(audit):
    result = audit(
        "SELECT region, sex, count(*) FROM people GROUP BY 1, 2",
        "SELECT note, count(*) FROM people GROUP BY note",
        "SELECT count(*) FROM people WHERE NOT note = 'x'",
        "SELECT count(*) FROM people WHERE born >= DATE '1989-05-05'",
        "SELECT count(DISTINCT id), count(DISTINCT sex) FROM people",
        small=1,
    )
    direct = {a.terms[0].condition: a for a in result.alarms if len(a.terms) == 1}
    assert set(direct) == {"region = A AND sex = M"}
    counts = {t.condition: t.count for a in result.alarms for t in a.terms}
    assert counts.get("NOT note = 'x'", 2) == 2
    assert list(result.unread) == ["it counts distinct values of a column in which they repeat"]


def test_logged_answers_that_differ_are_not_in_the_account(audit, tmp_path):
    (tmp_path / "log.csv").write_text(f"query;answer\n{ALL};7\n{MOST};5\n{MOST};*\n{ALL};7.0\n")
    result = audit_log(tmp_path / "log.csv", str(tmp_path / "people.csv"))
    assert not result.alarms
    assert {reason[:28]: len(some) for reason, some in result.unread.items()} == {
        "its answer is not the count ": 1,
        "its answer was no number, so": 1,
    }


def test_an_account_per_user_holds_only_what_one_knows(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    log = tmp_path / "log.csv"
    log.write_text(f"query,user\n{ALL},ann\n{MOST},bob\n{ALL},bob\n")
    together = audit_log(log, str(tmp_path / "people.csv"))
    assert [alarm.by.number for alarm in together.alarms] == [2]
    alone = audit_log(log, str(tmp_path / "people.csv"), options=Options(per_user=True))
    assert [(alarm.user, alarm.by.number) for alarm in alone.alarms] == [("bob", 3)]
    assert [account.user for account in alone.accounts] == ["ann", "bob"]


def test_the_secret_is_marked_where_it_tells_people_apart(audit):
    result = audit(ALL, "SELECT count(*) FROM people WHERE note <> 'y'", MOST, secret="NOTE")
    marked = {alarm.people: alarm.names_secret for alarm in result.alarms}
    # One by age alone, and two with the same note less that one.
    assert marked == {1: False, 2: True}
    with pytest.raises(InputError, match="no column 'salary'"):
        audit(ALL, secret="salary")


def test_a_pair_is_an_alarm_and_three_are_one_only_if_asked_for(audit):
    texts = [ALL, "SELECT count(*) FROM people WHERE age > 36"]
    assert not audit(*texts).alarms
    (alarm,) = audit(
        *texts, "SELECT region, sex, count(*) FROM people GROUP BY 1, 2", small=3
    ).alarms[:1]
    assert (alarm.people, alarm.by.number) == (3, 2)


def test_every_kind_of_database_is_read(audit, tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE SCHEMA clinic")
        source = f"read_csv('{tmp_path / 'people.csv'}')"
        connection.execute(f"CREATE TABLE clinic.people AS SELECT * FROM {source}")
        connection.execute(f"COPY (SELECT * FROM {source}) TO '{tmp_path / 'p.parquet'}'")
    before = path.read_bytes()
    with sqlite3.connect(tmp_path / "people.sqlite") as lite:
        lite.execute("CREATE TABLE people (id INTEGER, age INTEGER, sex TEXT)")
        rows = [line.split(",")[:3] for line in PEOPLE.splitlines()[1:]]
        lite.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    lite.close()
    for database, table in (
        ("people.duckdb", "clinic.people"),
        ("p.parquet", "people"),
        (f"sqlite:///{tmp_path / 'people.sqlite'}", "people"),
    ):
        result = audit(ALL, MOST, database=database, table=table)
        assert [alarm.by.number for alarm in result.alarms] == [2], database
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"database": "none.csv"}, "no such file"),
        ({"database": "people.csv", "table": None, "dialect": "klingon"}, "no dialect 'klingon'"),
        ({"database": "log.sql"}, "log.sql"),
        ({"database": "log.sql", "table": None}, "name the table"),
        ({"database": "mysql+pymysql://a:secret@far.example/db"}, "another machine"),
        ({"small": 0}, "at least one person"),
    ],
)
def test_bad_input_is_said_in_one_line(audit, options, message):
    with pytest.raises(InputError, match=message) as raised:
        audit(ALL, **options)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_nothing_in_a_log_reaches_a_file(audit, tmp_path):
    (tmp_path / "evil.csv").write_text("a\n1\n")
    hostile = [
        f"SELECT count(*) FROM people WHERE age IN (SELECT a FROM read_csv('{tmp_path}/evil.csv'))",
        "SELECT count(*) FROM people WHERE getenv('HOME') = 'x'",
        f"COPY people TO '{tmp_path}/stolen.csv'",
        "SELECT count(*) FROM people WHERE age = 1); DROP TABLE countleak_rows; --",
        'SELECT count(*) FROM people WHERE "age""; DROP TABLE x" = 1',
        "SELECT count(*) FROM people WHERE countleak_row = 0",
    ]
    result = audit(ALL, *hostile, MOST)
    assert len(result.alarms) == 1
    assert result.not_read >= 5
    assert not (tmp_path / "stolen.csv").exists()


@st.composite
def logs(draw):
    people = draw(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=9))
    clause = st.builds(
        lambda column, sign, value: f"{column} {sign} {value}",
        st.sampled_from("abc"),
        st.sampled_from(["=", "<>", "<=", ">"]),
        st.integers(0, 3),
    )
    condition = st.lists(clause, min_size=1, max_size=2).map(" AND ".join)
    return people, draw(st.lists(condition, min_size=1, max_size=7))


@given(logs())
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_alarms_are_those_of_brute_force_and_their_equations_are_true(tmp_path, case):
    people, conditions = case
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in people))
    log = tmp_path / "log.sql"
    log.write_text("".join(f"SELECT count(*) FROM t WHERE {each};\n" for each in conditions))
    result = audit_log(log, str(tmp_path / "t.csv"))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{tmp_path / 't.csv'}')")
        holds = np.array(
            [
                [row[0] for row in connection.execute(f"SELECT {each} FROM t").fetchall()]
                for each in conditions
            ],
            np.int64,
        )
    cells, which = np.unique(holds, axis=1, return_inverse=True)
    sizes = np.bincount(which.ravel())
    expected = {}
    for size in (1, 2):
        for group in combinations(range(sizes.size), size):
            row = first_row(cells, group) if sizes[list(group)].sum() <= 2 else None
            earliest = max(expected.get((c,), len(conditions)) for c in group)
            if row is not None and (size == 1 or row < earliest):
                expected[group] = row
    found = sorted((alarm.by.number - 1, alarm.people) for alarm in result.alarms)
    assert found == sorted((row, int(sizes[list(g)].sum())) for g, row in expected.items())
    for alarm in result.alarms:
        total = sum(
            (term.times * holds[term.query - 1].astype(object) for term in alarm.terms), Fraction(0)
        )
        assert set(total.tolist()) <= {0, 1}
        assert sum(total.tolist()) == alarm.people


def test_it_is_one_level_down():
    assert cl.query_log.audit_log is audit_log
