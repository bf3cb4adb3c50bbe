"""Tables joined by the user id: exact where noise is removed, sticky, and nothing else allowed."""

from collections import Counter

import duckdb
import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import PADDED, connect
from countleak.diffix.engine import Engine
from countleak.diffix.noise import Bucket
from countleak.diffix.releases import release_of
from countleak.diffix.sql.joins import join_rows
from countleak.diffix.sql.statement import Column, Kind, Table
from countleak.errors import Refused
from tests.diffix.databases.test_postgres import nodes_of, sent_for, url
from tests.diffix.sql.joined import SALT, declared, duck, engine_of, on_postgres, tables

JOIN = "loans a JOIN accounts b ON a.client_id = b.owner"


@pytest.fixture(scope="module")
def database(bank, tmp_path_factory):
    return duck(bank, tmp_path_factory.mktemp("joined"))


@pytest.fixture(scope="module")
def engine(database):
    return engine_of(database)


@pytest.fixture(scope="module")
def served(postgres, bank):
    on_postgres(postgres, bank)
    with connect(url(postgres), **declared()) as database:
        yield engine_of(database)


@pytest.fixture(scope="module")
def rows(bank):
    """The rows of the join, by brute force: user, status, duration, region, amount of account."""
    loans, accounts = tables(bank)["loans"], tables(bank)["accounts"]
    people = zip(loans["client_id"], loans["status"], loans["duration"], strict=True)
    every = list(zip(*accounts.values(), strict=True))
    return [
        (user, status, duration, region, amount)
        for user, status, duration in people
        for owner, region, amount in every
        if owner == user
    ]


def values(engine, text):
    return [row.values for row in engine.ask(text).rows]


def test_counts_without_noise_are_those_of_the_joined_rows(database, rows):
    exact = engine_of(database, sd=0.0)
    chosen = [row for row in rows if row[1] == "C" and row[3] == "X"]
    where = "a.status = 'C' AND b.region = 'X'"
    count = len({row[0] for row in chosen})
    for text in (
        f"SELECT count(DISTINCT a.client_id) FROM {JOIN} WHERE {where}",
        f"SELECT count(DISTINCT owner) FROM {JOIN} AND {where}",
        "SELECT count(DISTINCT b.owner) FROM accounts b, loans a "
        f"WHERE {where} AND b.owner = a.client_id",
        "SELECT count(DISTINCT u) FROM (SELECT client_id AS u FROM loans WHERE status = 'C') q "
        "INNER JOIN accounts ON accounts.owner = q.u AND region = 'X'",
        "SELECT count(DISTINCT client_id) FROM (SELECT client_id, status s, region FROM "
        "loans, accounts WHERE client_id = owner) q WHERE s = 'C' AND region = 'X'",
    ):
        assert values(exact, text) == [(count,)], text
    grouped = f"SELECT b.region, count(DISTINCT a.client_id) FROM {JOIN} GROUP BY b.region"
    users = Counter(region for _, region in {(row[0], row[3]) for row in rows})
    assert values(exact, grouped) == sorted(users.items())
    each = f"(SELECT b.owner, count(*) AS n FROM {JOIN} GROUP BY 1) q"
    sizes = Counter(Counter(row[0] for row in rows).values())
    text = f"SELECT n, count(DISTINCT owner) FROM {each} GROUP BY n"
    assert values(exact, text) == sorted(sizes.items())


def test_contributions_are_flattened_over_the_joined_rows(engine, rows):
    """As over one table that holds these rows, and has the noise of the loans."""
    names = ("client_id", "status", "duration", "region", "cost")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    arrays = {name: np.array(values) for name, values in columns}
    before = Duck.of_columns(arrays, SALT, table="loans", user="client_id")
    for where in ("", "WHERE status = 'C'", "WHERE duration BETWEEN 0 AND 50"):
        text = (
            "SELECT count(*), sum({0}), avg({0}), max({0}), median({0}), stddev({0}), "
            f"count(DISTINCT {{0}}) FROM {{1}} {where}"
        )
        joined = text.format("accounts.amount", "loans JOIN accounts ON client_id = owner")
        assert values(engine, joined) == values(engine_of(before), text.format("cost", "loans"))


CONDITIONS = [
    ("loans", "status = 'C'"),
    ("loans", "duration BETWEEN 0 AND 50"),
    ("loans", "floor(duration / 10) = 2"),
    ("loans", "status <> 'B'"),
    ("accounts", "region = 'X'"),
    ("accounts", "region IN ('X', 'Y')"),
    ("accounts", "owner BETWEEN 0 AND 5000"),
    ("accounts", "region IS NOT NULL"),
]


@pytest.mark.parametrize(("table", "condition"), CONDITIONS)
def test_a_condition_has_the_same_layers_joined_or_not(engine, table, condition):
    def seeds(text, prefix):
        names = ("status", "duration", "region", "owner")
        bucket = Bucket((), 9, 12345, {f"{prefix}{name}": at for at, name in enumerate(names)})
        return engine.seeds(engine.read(f"SELECT count(*) FROM {text} {condition}"), bucket)

    alone = seeds(f"{table} WHERE", "")
    for join in (
        "loans, accounts WHERE client_id = owner AND",
        "accounts JOIN loans ON owner = client_id WHERE",
    ):
        assert seeds(join, f"{table}.") == alone


def test_joining_adds_no_noise_whatever_comes_first(engine):
    """The table ``people`` has a row for everyone with a loan, so joining it leaves nobody out."""
    bucket = Bucket((), 9, 12345, {})
    assert len(engine.seeds(engine.read(f"SELECT count(*) FROM {JOIN}"), bucket)) == 1
    for where in ("", "WHERE loans.status = 'C'", "WHERE status <> 'B' AND amount <> 5"):
        for group in ("", "GROUP BY loans.status"):
            text = f"SELECT count(DISTINCT client_id), count(*) FROM {{}} {where} {group}"
            alone = values(engine, text.format("loans"))
            assert values(engine, text.format("loans JOIN people ON client_id = id")) == alone
            assert values(engine, text.format("people JOIN loans ON client_id = id")) == alone


REFUSED = [
    ("SELECT count(*) FROM loans LEFT JOIN accounts ON client_id = owner", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans RIGHT JOIN accounts ON client_id = owner", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans FULL JOIN accounts ON client_id = owner", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans CROSS JOIN accounts", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans NATURAL JOIN accounts", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans JOIN accounts USING (client_id)", "write JOIN ... ON"),
    ("SELECT count(*) FROM loans JOIN LATERAL (SELECT * FROM loans) q ON true", "stand in FROM"),
    ("SELECT count(*) FROM loans, accounts", "write ON loans.client_id = accounts.owner"),
    ("SELECT count(*) FROM loans l JOIN accounts a ON l.amount = a.amount", "write ON loans.cli"),
    ("SELECT count(*) FROM loans JOIN accounts ON client_id = owner + 0", "write ON loans.client"),
    ("SELECT count(*) FROM loans JOIN accounts ON client_id = owner OR 1 = 1", "OR"),
    ("SELECT count(*) FROM loans JOIN accounts ON true", "and by nothing else"),
    ("SELECT count(*) FROM loans a JOIN loans b ON a.client_id = b.client_id", "twice"),
    ("SELECT count(*) FROM loans, names WHERE client_id = name", "cannot be joined"),
    ("SELECT count(amount) FROM loans, accounts WHERE client_id = owner", "in several tables"),
    ("SELECT count(a.region) FROM loans a, accounts b WHERE client_id = owner", "doesn't exist"),
    ("SELECT count(c.region) FROM loans a, accounts b WHERE client_id = owner", "doesn't exist"),
    ("SELECT count(*) FROM loans, others WHERE client_id = owner", "`others` does not exist"),
    ("SELECT count(*) FROM loans, pg_user WHERE client_id = owner", "does not exist"),
    ("SELECT count(*) FROM loans, accounts a, accounts b, accounts c, accounts d", "at most 4"),
    ("SELECT count(*) FROM (loans JOIN accounts ON client_id = owner)", "one SELECT"),
    (
        "SELECT count(*) FROM loans JOIN accounts JOIN names ON name = owner ON client_id = owner",
        "not allowed: JOIN",
    ),
    (
        "SELECT count(*) FROM loans JOIN (SELECT region FROM accounts) q ON client_id = owner",
        "must select the user id",
    ),
    (
        "SELECT count(*) FROM loans JOIN (SELECT owner, count(*) FROM accounts GROUP BY owner) q "
        "ON client_id = owner",
        "cannot be joined itself",
    ),
    (
        "SELECT count(*) FROM loans a JOIN (SELECT owner FROM accounts, loans WHERE owner = "
        "client_id) q ON a.client_id = q.owner",
        "cannot be joined itself",
    ),
    (
        "SELECT count(*) FROM loans, accounts WHERE client_id = owner AND loans.amount "
        "BETWEEN 0 AND 10 AND loans.amount BETWEEN 0 AND 20",
        "`loans.amount` has more than one range",
    ),
    (
        "SELECT count(*) FROM loans, accounts WHERE client_id = owner AND client_id "
        "BETWEEN 0 AND 10 AND owner BETWEEN 5 AND 15",
        "user id has more than one range",
    ),
]


@pytest.mark.parametrize(("text", "complaint"), REFUSED)
def test_refusals(engine, text, complaint):
    with pytest.raises(Refused, match=complaint.replace(".", r"\.")):
        engine.read(text)


def test_releases_check_the_columns_of_a_join(database):
    later = Engine(database, release_of("18.3"), SALT)
    with pytest.raises(Refused, match=r"`accounts\.owner` is isolating"):
        later.read(f"SELECT count(*) FROM {JOIN} WHERE floor(b.owner / 10) = 200")
    with pytest.raises(Refused, match="A JOIN is not allowed"):
        Engine(database, release_of("tables"), SALT).read(f"SELECT count(*) FROM {JOIN}")


QUESTIONS = [
    f"SELECT count(DISTINCT a.client_id) FROM {JOIN} WHERE a.status = 'C' AND b.region = 'X'",
    f"SELECT count(*), sum(b.amount), avg(a.amount), median(b.amount) FROM {JOIN}",
    f"SELECT b.region, lower(a.status), count(*), count(DISTINCT b.amount) FROM {JOIN} "
    "WHERE floor(b.amount / 10) = 3 AND a.duration BETWEEN 0 AND 50 GROUP BY 1, 2",
    f"SELECT count(*) FROM {JOIN} WHERE a.duration = b.amount AND b.region LIKE 'X%'",
    f"SELECT n, count(*), sum(s) FROM (SELECT b.owner, count(*) AS n, sum(b.amount) AS s FROM "
    f"{JOIN} WHERE a.duration <> 12 GROUP BY b.owner) q WHERE s BETWEEN 0 AND 200 GROUP BY n",
    f"SELECT count(*), max(b.amount) FROM {JOIN} WHERE a.client_id = 2005",
]


def test_postgresql_answers_alike(served, engine):
    assert served.database.tables == engine.database.tables
    for text in QUESTIONS:
        assert served.ask(text) == engine.ask(text), text


def read_on(served, text):
    """The kind of every node that reads or joins more than decoys, in the plans of a question."""
    read = []
    for sent, given in sent_for(served, text):
        explained = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sent}"
        ((plan,),) = served.database.rows(explained, given)
        for node in nodes_of(plan[0]["Plan"]):
            if "Seq Scan" in node["Node Type"] or "Join" in node["Node Type"]:
                rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                read.append((node["Node Type"], rows * node["Actual Loops"]))
    return [(kind, rows) for kind, rows in read if rows > PADDED]


def test_a_server_joins_as_many_rows_for_one_person_as_for_none(served, bank):
    """Conditions do not get into the join, where an empty side would end it early."""
    text = f"SELECT count(*) FROM {JOIN} WHERE a.client_id = {{}} AND sqrt(b.amount) = 2"
    somebody = read_on(served, text.format(bank.ids[5]))
    assert somebody == read_on(served, text.format(-1))
    assert any("Join" in kind for kind, _ in somebody)


def test_conditions_stand_above_the_join_in_the_plans_of_duckdb():
    """Its optimizer, which works on tables of this size, would otherwise move them into it."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a AS SELECT range AS u, range % 7 AS x FROM range(30000)")
    connection.execute("CREATE TABLE b AS SELECT range AS u, range % 5 AS y FROM range(30000)")
    one, other = (Table(name, "u", {"u": Kind.WHOLE, x: Kind.WHOLE}) for name, x in ("ax", "by"))
    both = Table("a and b", "a.u", {}, joined=(one, other))
    columns = [Column("a.u", Kind.WHOLE), Column("a.x", Kind.WHOLE), Column("b.y", Kind.WHOLE)]
    source = join_rows(both, columns, lambda table, _: table.name, hashed=False)
    ((_, plan),) = connection.execute(f'EXPLAIN SELECT * FROM {source} WHERE "a.x" = 3').fetchall()
    assert plan.index("Filter") < plan.index("Hash Join")
    assert plan.count("Filter") == 1


def test_one_person_costs_the_statements_of_nobody(engine, bank):
    for chosen in ("count(*)", "b.region, sum(b.amount)"):
        group = " GROUP BY 1" if "," in chosen else ""
        text = f"SELECT {chosen} FROM {JOIN} WHERE a.client_id = {{}}{group}"
        one, nobody = (sent_for(engine, text.format(n)) for n in (bank.ids[5], -1))
        assert [sent for sent, _ in one] == [sent for sent, _ in nobody]
