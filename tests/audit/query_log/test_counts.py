import pytest

from countleak.audit.query_log.counts import LONGEST, Reader

COLUMNS = {"age": "age", "region": "Region", "name": "name", "born": "born"}


def read(text, dialect="postgres", table=("people",), parameters=()):
    return Reader(table, COLUMNS, dialect).read(text, parameters)


def conditions(text, **options):
    reading = read(text, **options)
    assert reading.unread is None, reading.unread
    return [(each.condition, each.by) for each in reading.asked]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT count(*) FROM people", "TRUE"),
        ("select COUNT(1) from public.People p where P.AGE > 3", '"age" > 3'),
        ("SELECT count(name) FROM people", 'NOT (("name") IS NULL)'),
        ("SELECT count(*) FROM people WHERE age > 1 OR age < 0 LIMIT 1", '"age" > 1 OR "age" < 0'),
        (
            "SELECT count(*) FILTER (WHERE age = 1 OR age = 2) FROM people WHERE name LIKE 'a%'",
            '"name" LIKE \'a%\' AND ("age" = 1 OR "age" = 2)',
        ),
        ("SELECT sum(CASE WHEN age > 1 THEN 1 ELSE 0 END) FROM people", '"age" > 1'),
        ("SELECT count(CASE WHEN age > 1 THEN 1 END) FROM people", None),
        (
            "SELECT count(*) FROM people WHERE born >= DATE '2000-01-01' AND age::int IN (1, 2)",
            None,
        ),
    ],
)
def test_counts_are_read_in_every_form(text, condition):
    (found,) = conditions(text)
    assert found[1] == ()
    assert condition is None or found[0] == condition


def test_groups_are_made_by_expressions_names_and_places():
    by = [("TRUE", ('LOWER("Region")', '"age"'))]
    for group in ("1, 2", "r, age", "lower(p.region), p.age"):
        text = (
            f"SELECT lower(region) AS r, p.age, count(*) FROM people p GROUP BY {group} ORDER BY 1"
        )
        assert conditions(text) == by
    (asked,) = read("SELECT region, count(*) FROM people GROUP BY 1 HAVING count(*) > 9").asked
    assert asked.at_least == 10


def test_parameters_are_put_in_their_places():
    text = "SELECT count(*) FROM people WHERE name = $1 AND region IS NOT DISTINCT FROM $2"
    ((condition, _),) = conditions(text, parameters=("it's", None))
    assert condition == "\"name\" = 'it''s' AND \"Region\" IS NOT DISTINCT FROM NULL"
    assert "parameter" in read(text, parameters=("a",)).unread


def test_text_of_a_column_is_no_code():
    ((condition, _),) = conditions(
        "SELECT count(*) FROM people WHERE name = '''); DROP TABLE people; --'"
    )
    assert condition == "\"name\" = '''); DROP TABLE people; --'"


def test_comments_make_no_other_count():
    plain = read("SELECT count(*) FROM people WHERE age = 1 AND name = 'a'")
    text = "SELECT /* 1 */ count(*) FROM people -- 2\n WHERE age /* 3 */ = 1 AND name = 'a' /* 4 */"
    assert read(text) == plain
    grouped = "SELECT region /* 1 */, count(*) FROM people GROUP BY region /* 2 */ -- 3"
    assert read(grouped) == read("SELECT region, count(*) FROM people GROUP BY region")


def test_like_of_sqlite_ignores_case():
    assert conditions("SELECT count(*) FROM people WHERE name LIKE 'a%'", dialect="sqlite") == [
        ("\"name\" ILIKE 'a%'", ())
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM people", "rows, not counts"),
        ("SELECT name FROM people WHERE age = 1", "rows, not counts"),
        ("SELECT avg(age) FROM people", "avg is no count"),
        ("SELECT sum(CASE WHEN age > 1 THEN 2 END) FROM people", "no count"),
        ("SELECT count(*) FROM people WHERE random() < 0.5", "not the same at every asking"),
        ("SELECT count(*) FROM people WHERE born < now()", "not the same at every asking"),
        ("SELECT count(*) FROM people WHERE born < current_date", "not the same"),
        ("SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)", "subquery"),
        ("SELECT count(*) FROM people WHERE EXISTS (SELECT 1)", "exists|subquery"),
        ("SELECT count(*) FROM (SELECT * FROM people) AS p", "subquery"),
        ("SELECT count(*) FROM people, other", "join"),
        ("SELECT count(*) FROM people JOIN other USING (age)", "join"),
        ("SELECT count(*) FROM people TABLESAMPLE SYSTEM (10)", "sample"),
        ("WITH p AS (SELECT * FROM people) SELECT count(*) FROM p", "WITH"),
        ("SELECT count(*) FROM people UNION ALL SELECT 1", "UNION"),
        ("SELECT count(*) FROM people WHERE age / 2 = 1", "division"),
        ("SELECT count(*) FROM people WHERE unknown = 1", "does not have"),
        ("SELECT count(*) FROM people WHERE other.age = 1", "another table"),
        ("SELECT count(*) FROM people WHERE pg_read_file('a') = 'b'", "pg_read_file is not on"),
        ("SELECT count(*) FROM people WHERE name ~ 'a'", "not on the list"),
        ("SELECT count(*) FROM people WHERE age::text::xml IS NULL", "cast"),
        ("SELECT region, count(*) FROM people GROUP BY ROLLUP (region)", "groups|list|count"),
        ("SELECT region, count(*) FROM people GROUP BY region LIMIT 3", "LIMIT"),
        ("SELECT region, count(*) FROM people GROUP BY 1 HAVING avg(age) > 3", "HAVING"),
        ("SELECT count(*) OVER () FROM people", "window"),
        ("SELECT DISTINCT count(*) FROM people", "DISTINCT"),
        ("SELECT count(DISTINCT lower(name)) FROM people", "distinct values that are no column"),
        ("SELECT count(*) FROM people; SELECT 1", "several statements"),
        ("INSERT INTO people VALUES (1)", "no plain SELECT"),
        ("COPY people TO 'file'", "no plain SELECT"),
        ("ATTACH 'file' AS other", "parsed|no question|no plain"),
        ("PRAGMA database_list", "no question"),
        ("((((", "no SQL"),
        ("\x00\ud7ff\u202e", "no SQL|several|no question"),
        ("SELECT count(*) FROM people WHERE " + "(" * 3000 + "1" + ")" * 3000, "no SQL|nested"),
        ("SELECT '" + "x" * LONGEST + "' FROM people", "longer than"),
    ],
)
def test_what_is_no_count_of_the_table_is_named(text, reason):
    import re

    reading = read(text)
    assert reading.asked == ()
    assert reading.about
    assert re.search(reason, reading.unread), reading.unread


def test_what_is_read_in_part_says_so():
    reading = read("SELECT count(*), avg(age) FROM people")
    assert len(reading.asked) == 1
    assert reading.unread == "of several: avg is no count"


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT count(*) FROM orders", ("orders",)),
        ("SELECT count(*) FROM old.people", ("old.people",)),
        ("BEGIN", ()),
        ("SELECT 1", ()),
    ],
)
def test_other_tables_are_told_apart(text, tables):
    reading = read(text, table=("public", "people"))
    assert not reading.about
    assert reading.tables == tables
