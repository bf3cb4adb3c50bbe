"""Two databases that differ in one person: no answer tells them apart but through noise.

Random questions are asked of both. Each is refused by both in the same words or answered by both;
groups that the person is not in have the same rows, to the last digit; and of the others at most
one, beside the star that suppressed groups merge into, differs, by no more than noise explains.
"""

from contextlib import ExitStack

import duckdb
import numpy as np
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from countleak.diffix.databases.duck import Duck
from countleak.diffix.databases.postgres import connect
from countleak.diffix.engine import Engine
from countleak.diffix.noise import STAR
from countleak.diffix.releases import release_of
from countleak.errors import Refused
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import url
from tests.diffix.grammar import generated_statements

# Rows of a person: values of amount, duration and status. All others have one row.
PEOPLE = [
    [(np.nan, 12, "C")],
    [(np.inf, 2**63 - 1, "")],
    [(-1e308, -(2**63), "x" * 100_000)],
    [(5e-324, 0, "%_")],
    [(1e32, 24, "A"), (1e32, 24, "A")],
]
SLOW = pytest.mark.slow
TYPES = "client_id bigint, amount double precision, duration bigint, status text"
CARDS = "owner bigint, region text, credit double precision"
SALT = salt_number(0)
# A count that one person moved past the threshold is small: the threshold is at most about 10.
NEAR_THRESHOLD = 40
# What a person adds is up to 1e32 times what others do. Where it is not flattened, it is all of it;
# noise changes the answers about few people by half, and sums by some of what the largest add.
MOST_MOVED = 0.9
LARGEST_OF_OTHERS = 1e6
# Distances from the average of all: the vendor's own leak, see test_aggregates.py.
NOT_FLATTENED = ("stddev", "variance")


def columns_with(bank, person):
    """The columns of the bank's loans, and of one person more if there is one."""
    rows = person or []
    amounts, durations, statuses = zip(*rows, strict=True) if rows else ((), (), ())
    return {
        "client_id": np.append(bank.ids, np.array([3333] * len(rows), dtype=bank.ids.dtype)),
        "amount": np.append(bank.columns["amount"].astype(float), amounts),
        "duration": np.append(bank.columns["duration"], np.array(durations, dtype=np.int64)),
        "status": np.append(
            bank.columns["status"].astype(object), np.array(statuses, dtype=object)
        ),
    }


def asked(engine, text):
    try:
        return engine.ask(text)
    except Refused as refusal:
        return str(refusal)


def compare(without, with_person, text):
    """Whether the question was answered; both must answer it alike."""
    one, other = asked(without, text), asked(with_person, text)
    if isinstance(one, str) or isinstance(other, str):
        assert one == other, text
        return False
    assert (one.columns, one.notices) == (other.columns, other.notices), text
    groups = len(without.read(text).groups)
    check_moved(one, other, groups, text)
    if not groups:
        (alone,), (joined,) = one.rows, other.rows
        if alone.released != joined.released and text.startswith("SELECT count(*)"):
            assert max(alone.values[0], joined.values[0]) < NEAR_THRESHOLD, text
        return True
    found = [{row.values[:groups]: row.values for row in answer.rows} for answer in (one, other)]
    keys = found[0].keys() | found[1].keys()
    differ = {key for key in keys if found[0].get(key) != found[1].get(key)}
    assert len({key for key in differ if key[0] != STAR}) <= 1, text
    return True


def check_moved(one, other, groups, text):
    """No value is moved far by one person, whatever that person's are."""
    found = [{row.values[:groups]: row.values[groups:] for row in a.rows} for a in (one, other)]
    for key in found[0].keys() & found[1].keys():
        for name, *values in zip(one.columns[groups:], found[0][key], found[1][key], strict=True):
            if None not in values and not name.startswith(NOT_FLATTENED):
                most = MOST_MOVED * max(20, *map(abs, values))
                if not name.startswith("count"):
                    most = max(most, 10 * LARGEST_OF_OTHERS)
                assert abs(values[0] - values[1]) <= most, (text, key, name, values)


def differential(without, with_person, count, seed, *, joined=False):
    texts = generated_statements(count, seed, finished=False, joined=joined)
    return sum(compare(without, with_person, text) for text in texts)


def duck(bank, person):
    database = Duck.of_columns(columns_with(bank, person), SALT, table="loans", user="client_id")
    return Engine(database, release_of("18.1"), SALT)


@pytest.fixture(scope="module")
def ducks(bank):
    return duck(bank, None), [duck(bank, person) for person in PEOPLE]


@pytest.mark.parametrize("number", range(len(PEOPLE)))
def test_questions_over_duckdb(ducks, number):
    assert differential(ducks[0], ducks[1][number], 30, seed=100 + number) > 20


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PEOPLE)))
def test_twenty_thousand_questions_over_duckdb(ducks, number):
    assert differential(ducks[0], ducks[1][number], 4000, seed=200 + number) > 3000


def cards_with(bank, person):
    """The columns of cards of every second person, and of that one."""
    owners = bank.ids[::2]
    columns = {
        "owner": owners,
        "region": np.where(owners % 3 == 0, "X", "Y").astype(object),
        "credit": (owners % 2000).astype(float),
    }
    if person is None:
        return columns
    given = {"owner": 3333, "region": person[0][2], "credit": person[0][0]}
    return {
        name: np.append(column, np.array([given[name]], column.dtype))
        for name, column in columns.items()
    }


def both_tables(bank, person, path):
    """An engine over loans and cards in DuckDB."""
    with duckdb.connect(str(path)) as connection:
        for name, of in (("loans", columns_with), ("cards", cards_with)):
            connection.register("given", of(bank, person))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    database = Duck.of_file(path, SALT, table="loans", user="client_id", others={"cards": "owner"})
    return Engine(database, release_of("18.1"), SALT)


@pytest.mark.parametrize("number", [0, 4, *(pytest.param(n, marks=SLOW) for n in (1, 2, 3))])
def test_questions_over_joined_tables(bank, tmp_path, number):
    without = both_tables(bank, None, tmp_path / "without.duckdb")
    with_person = both_tables(bank, PEOPLE[number], tmp_path / "with.duckdb")
    assert differential(without, with_person, 40, seed=400 + number, joined=True) > 20


@pytest.fixture(scope="module")
def served(postgres, bank):
    """Engines over two databases of a PostgreSQL server."""
    engines = []
    with ExitStack() as stack:
        for name, person in (("without", None), ("with_person", PEOPLE[1])):
            postgres.connection.execute(f"DROP DATABASE IF EXISTS {name}")
            postgres.connection.execute(f"CREATE DATABASE {name}")
            address = make_conninfo(url(postgres), dbname=name)
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f"CREATE TABLE loans ({TYPES})")
                rows = zip(*(v.tolist() for v in columns_with(bank, person).values()), strict=True)
                connection.cursor().executemany("INSERT INTO loans VALUES (%s, %s, %s, %s)", rows)
                connection.execute(f"CREATE TABLE cards ({CARDS})")
                rows = zip(*(v.tolist() for v in cards_with(bank, person).values()), strict=True)
                connection.cursor().executemany("INSERT INTO cards VALUES (%s, %s, %s)", rows)
            database = stack.enter_context(
                connect(address, table="loans", user="client_id", others={"cards": "owner"})
            )
            engines.append(Engine(database, release_of("18.1"), SALT))
        yield engines
    postgres.connection.execute("DROP DATABASE without")
    postgres.connection.execute("DROP DATABASE with_person")


@pytest.mark.parametrize(
    "count", [60, pytest.param(2000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_questions_over_postgresql(served, count):
    assert differential(*served, count, seed=300) > 0.6 * count
    assert differential(*served, count // 2, seed=301, joined=True) > 0.25 * count


def test_joined_tables_are_answered_alike_by_both_databases(served, bank, tmp_path):
    embedded = both_tables(bank, PEOPLE[1], tmp_path / "with.duckdb")
    for text in generated_statements(50, seed=302, joined=True):
        assert asked(served[1], text) == asked(embedded, text), text
