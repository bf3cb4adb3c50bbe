"""Questions in SQL: as parsers, DuckDB and PostgreSQL understand them."""

from itertools import islice

import duckdb
import numpy as np
import pytest
from sqlglot import exp, parse, parse_one

from countleak.attack.queries.digits import digit_queries
from countleak.attack.queries.ids import id_array
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.queries.tables import table_queries
from countleak.attack.secrets import Bit, Category, Number
from countleak.attack.transcript import Answers
from countleak.audit.people import People, generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.pool import RequestLimits, ask_all
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.simulated import RoundedToBase, Simulated
from countleak.audit.targets.sql import DIFFIX, PLAIN, CountSql, SqlQuestions
from countleak.errors import InputError
from tests.diffix.databases.test_postgres import url

SECRET = Bit("status = 'C'")
IDS = np.array([2003, 2500, 2999])
NAMES = [
    "plain",
    "Mixed Case",
    "order",
    'say "hi"',
    "größe",
    "a.b",
    "x; DROP TABLE y",
    "it's",
    "%s",
]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def create(connection, table, people, mark):
    """The people as a table, made without the code under test."""
    kinds = {"i": "bigint", "f": "float8", "U": "text", "b": "boolean", "O": "numeric(38)"}
    columns = people.all_columns
    defined = ", ".join(f"{quoted(n)} {kinds[v.dtype.kind]}" for n, v in columns.items())
    connection.execute(f"CREATE TABLE {table} ({defined})")
    into = table.replace("%", "%%") if mark == "%s" else table
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        connection.execute(f"INSERT INTO {into} VALUES ({', '.join([mark] * len(row))})", row)


class Exactly:
    """A mechanism that adds nothing."""

    def release(self, counts, seed):
        return Answers.to_all(counts)


class Duck:
    """A plain DuckDB as a target."""

    def __init__(self, people, secret, table=None):
        self.connection = duckdb.connect()
        name = people.table if table is None else table
        if "." in name:
            self.connection.execute(f"CREATE SCHEMA {name.split('.')[0]}")
        create(self.connection, name if "." in name else quoted(name), people, "?")
        self.questions = SqlQuestions(name, people.key, secret, PLAIN, "duckdb")

    def count(self, queries, position):
        statement = self.questions.statement(queries, position)
        return self.connection.execute(statement).fetchall()[0][0]


def truth(queries, people, secret):
    """The true answers, from the simulation of a system that adds nothing."""
    counted = ask(queries, Simulated(people, secret, Exactly()), secret)
    return counted.values.tolist()


def test_a_range_is_written_as_the_system_takes_it():
    queries = digit_queries(IDS, primes=1)
    snapped = SqlQuestions("loans", ("client_id",), SECRET, DIFFIX).statement(queries, 0)
    assert snapped == Diffix(generated_bank(7), SECRET).statement(queries, 0)
    assert snapped.endswith('AND "status" = \'C\' AND "client_id" BETWEEN 2000 AND 3000')
    plain = SqlQuestions("loans", ("client_id",), None, PLAIN).statement(queries, 0)
    assert plain.endswith(') AND "client_id" BETWEEN 2003 AND 2999')


def test_a_list_of_ids_and_ids_that_have_no_range_need_none():
    subsets = random_subsets(IDS, 3, np.random.default_rng(0))
    columns = {"sex": np.array(["f", "m", "f"])}
    cells = table_queries(id_array(["a", "b", "c"]), columns, [("sex",)])
    for queries in (subsets, cells):
        statement = SqlQuestions("loans", ("client_id",), SECRET).statement(queries, 0)
        assert "BETWEEN" not in statement
    assert "BETWEEN" in SqlQuestions("loans", ("client_id",)).statement(
        table_queries(IDS, columns, [("sex",)]), 0
    )


def test_the_statement_means_the_recorded_one(recorded):
    """Names quoted and functions spelled as sqlglot spells them, it is the query of the paper."""
    log = recorded["10000-12000"].log
    queries = log.queries(np.array([10000, 11999]))
    questions = SqlQuestions("loans", ("client_id",), log.secret)
    for at, entry in islice(enumerate(log.entries), 0, None, 7):
        meant = parse_one(questions.statement(queries, at), dialect="postgres")
        sent = parse_one(entry.sql, dialect="postgres")
        assert meant == parse_one(sent.sql("postgres", identify=True), dialect="postgres")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_table_or_column_is_a_name(postgres, name):
    ids = np.arange(1, 21)
    people = People(ids, {name + "2": np.tile(["a", "it's"], 10)}, name, name.replace(".", "_"))
    secret = Bit.of(name + "2", "=", "it's")
    queries = random_subsets(ids, 6, np.random.default_rng(0))
    exact = truth(queries, people, secret)
    duck = Duck(people, secret)
    assert [duck.count(queries, at) for at in range(6)] == exact
    table = quoted(people.table)
    postgres.connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
    create(postgres.connection, table, people, "%s")
    questions = SqlQuestions(people.table, people.key, secret, PLAIN)
    assert ask(queries, PostgresTarget(url(postgres), questions)).values.tolist() == exact
    postgres.connection.execute(f"DROP TABLE {table}".encode())


def test_a_schema_comes_before_the_table(postgres):
    people = People(np.arange(1, 11), {"status": np.tile(["B", "C"], 5)}, "uid")
    queries = random_subsets(people.ids, 5, np.random.default_rng(0))
    exact = truth(queries, people, SECRET)
    duck = Duck(people, SECRET, "office.people")
    assert [duck.count(queries, at) for at in range(5)] == exact
    postgres.connection.execute("DROP SCHEMA IF EXISTS office CASCADE")
    postgres.connection.execute("CREATE SCHEMA office")
    create(postgres.connection, "office.people", people, "%s")
    questions = SqlQuestions("office.people", people.key, SECRET, PLAIN)
    assert ask(queries, PostgresTarget(url(postgres), questions)).values.tolist() == exact
    postgres.connection.execute("DROP SCHEMA office CASCADE")


@pytest.mark.parametrize(
    "ids",
    [
        ["007", "7", "it's", "z"],
        ["0b7e9c1e-0000-4000-8000-000000000001", "0b7e9c1e-0000-4000-8000-000000000002"],
        [10**30, 10**30 + 1, 10**30 + 2],
        [-5, 0, 2**62],
        [("a", 1), ("a", 2), ("b", 1)],
    ],
    ids=["text", "uuid", "big", "integers", "composite"],
)
@pytest.mark.parametrize("secret", [None, SECRET, Category("status", ("B", "C")), Number("size")])
def test_people_of_any_ids_are_counted_and_summed(postgres, ids, secret):
    status, size = np.resize(["C", "B"], len(ids)), np.arange(1.0, len(ids) + 1)
    key = ("branch", "order") if isinstance(ids[0], tuple) else "order"
    people = People(id_array(ids), {"status": status, "size": size}, key)
    queries = random_subsets(people.ids, 8, np.random.default_rng(0))
    exact = truth(queries, people, secret)
    duck = Duck(people, secret)
    assert [duck.count(queries, at) or 0 for at in range(len(exact))] == exact
    postgres.connection.execute("DROP TABLE IF EXISTS people")
    create(postgres.connection, "people", people, "%s")
    questions = SqlQuestions("people", people.key, secret, PLAIN)
    found = ask(queries, PostgresTarget(url(postgres), questions), secret)
    assert found.values.tolist() == exact
    postgres.connection.execute("DROP TABLE people")


def test_rows_of_one_person_count_once_also_by_a_composite_key():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a text, b int, s text)")
    connection.execute("INSERT INTO t VALUES ('x', 1, 'C'), ('x', 1, 'C'), ('x', 2, 'C')")
    queries = random_subsets(id_array([("x", 1), ("x", 2)]), 8, np.random.default_rng(0))
    questions = SqlQuestions("t", ("a", "b"), Bit("s = 'C'"), PLAIN, "duckdb")
    counts = [connection.execute(questions.statement(queries, at)).fetchall() for at in range(8)]
    assert counts == [[(int(count),)] for count in queries.matrix.sum(axis=1)]


@pytest.mark.parametrize(
    "text",
    [
        "loans; DROP TABLE loans",
        "loans WHERE 1 = 1 --",
        "loans AS x",
        "loans, users",
        "loans UNION SELECT 1",
        "(SELECT 1)",
        "pg_sleep(100)",
        "loans /* x",
        "'",
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_a_table_or_key_cannot_smuggle_sql_in(text, dialect):
    queries = random_subsets(IDS, 2, np.random.default_rng(0))
    statement = SqlQuestions(text, (text,), Bit.of(text, "=", text), PLAIN, dialect).statement(
        queries, 0
    )
    (tree,) = parse(statement, dialect=dialect)
    assert isinstance(tree, exp.Select)
    assert not tree.find(exp.Subquery, exp.Union, exp.Anonymous)
    (table,) = tree.find_all(exp.Table)
    assert isinstance(table.this, exp.Identifier)
    assert table.name == text
    assert not table.alias
    assert {column.name for column in tree.find_all(exp.Column)} == {text}
    assert {part.this for part in tree.find_all(exp.Literal) if part.is_string} == {text}


@pytest.mark.parametrize(("table", "key"), [("", ("id",)), ("loans", ("",)), ("loans", ())])
def test_what_has_no_name_is_refused(table, key):
    with pytest.raises(InputError, match="has no name"):
        SqlQuestions(table, key)


def test_signs_cannot_be_asked():
    signs = random_signs(IDS, 2, np.random.default_rng(0))
    with pytest.raises(InputError, match="SQL cannot ask them"):
        SqlQuestions("loans", ("client_id",)).statement(signs, 0)


def test_questions_about_several_values_are_asked_one_after_the_other():
    queries = random_subsets(IDS, 2, np.random.default_rng(0))
    questions = SqlQuestions("loans", ("id",), Category("status", ("A", "B"), open=True))
    statements = [questions.statement(queries, at) for at in range(4)]
    assert [("= 'A'" in s, "= 'B'" in s) for s in statements] == [(True, False)] * 2 + [
        (False, True)
    ] * 2
    assert statements[0].replace("'A'", "'B'") == statements[2]
    assert questions.about == "status IN ('A', 'B', ...) of loans by id"


def test_a_rounded_simulation_is_near_the_database():
    people = generated_bank(7).between(2000, 2500)
    queries = random_subsets(people.ids, 20, np.random.default_rng(0))
    duck = Duck(people, SECRET)
    rounded = ask(queries, Simulated(people, SECRET, RoundedToBase(5))).values
    assert np.abs(rounded - [duck.count(queries, at) for at in range(20)]).max() <= 2.5


def test_a_template_is_filled_and_escaped_where_it_is_quoted():
    people = generated_bank(7).between(2000, 2500)
    duck = Duck(people, SECRET)
    duck.connection.execute(
        "CREATE MACRO noisy_count(source, condition) AS TABLE "
        "SELECT * FROM query('SELECT count(*) FROM ' || source || ' WHERE ' || condition)"
    )
    secret = Bit("status <> 'it''s'")
    queries = random_subsets(people.ids, 5, np.random.default_rng(0))
    exact = queries.dot(people.holds(secret))
    for text in (
        "FROM noisy_count('{table}', '{condition}')",
        "SELECT count(*) FROM {table} WHERE {condition} AND '''' <> '{table}'",
    ):
        questions = SqlQuestions("loans", people.key, secret, PLAIN, "duckdb", CountSql(text))
        for at in range(5):
            found = duck.connection.execute(questions.statement(queries, at)).fetchall()
            assert found == [(exact[at],)]
    with pytest.raises(InputError, match=r"write \{condition\} there"):
        CountSql("SELECT noisy_count('{table}')")


def test_statements_are_made_as_they_are_wanted(monkeypatch):
    queries = random_subsets(np.arange(50), 300, np.random.default_rng(0))
    questions = SqlQuestions("loans", ("id",), SECRET, PLAIN)
    made = []
    whole = SqlQuestions.statement
    monkeypatch.setattr(
        SqlQuestions, "statement", lambda *given: made.append(given[2]) or whole(*given)
    )

    class Five:
        def ask(self, statement):
            return 5.0

        def close(self):
            pass

    asked = ask_all(Five, questions.asked(queries, np.arange(300)), RequestLimits(2))
    next(asked)
    assert len(made) <= 6
    asked.close()


@pytest.mark.parametrize(
    ("dialect", "key", "expected"),
    [
        ("postgres", ("id",), 'COUNT(DISTINCT "id") FROM "t" WHERE "status" = \'C\' GROUP BY 1'),
        ("tsql", ("id",), "COUNT(DISTINCT [id]) FROM [t] WHERE [status] = 'C' GROUP BY [sex]"),
        ("oracle", ("id",), 'COUNT(DISTINCT "id") FROM "t" WHERE "status" = \'C\' GROUP BY "sex"'),
        ("mysql", ("a", "b"), "COUNT(DISTINCT `a`, `b`) FROM `t` WHERE `status` = 'C' GROUP BY 1"),
        ("sqlite", ("a", "b"), 'FROM (SELECT DISTINCT "sex" AS "group_1", "a", "b" FROM "t" WHERE'),
    ],
)
def test_tables_are_grouped_as_each_dialect_takes_it(dialect, key, expected):
    cells = table_queries(IDS, {"sex": np.array(["f", "m", "f"])}, [("sex",)])
    questions = SqlQuestions("t", key, SECRET, PLAIN, dialect)
    [(_, statement)] = questions.by_tables(cells, np.arange(2))
    assert expected in statement
