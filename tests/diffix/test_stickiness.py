"""Noise that another spelling cannot average away, and where the vendor's own noise could be.

Every figure is the SD, over salts, of the mean of the answers to many spellings of one question
about the same people. Each spelling's own noise vanishes from a mean of 24, what they share stays.
"""

import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.noise import Bucket
from countleak.diffix.releases import release_of
from countleak.diffix.sql.statement import Column, Kind
from tests.diffix.conftest import loans_engine, salt_number

SALTS = 40
# Four standard errors of an SD over so many salts.
TOLERANCE = 4 / np.sqrt(2 * SALTS)
SPELLINGS = 24


@pytest.fixture(scope="module")
def engines(bank):
    return [loans_engine(bank, "18.1", salt) for salt in range(SALTS)]


@pytest.fixture(scope="module")
def tables():
    """People of a town with many columns, each of numbers below 1000."""
    rng = np.random.default_rng(0)
    columns = {f"c{k}": rng.integers(0, 1000, 200) for k in range(SPELLINGS)}
    columns |= {"uid": np.arange(200), "town": np.arange(200) % 3}
    salts = [salt_number(k) for k in range(SALTS)]
    return [
        Engine(Duck.of_columns(columns, s, table="people", user="uid"), release_of("tables"), s)
        for s in salts
    ]


def sd_of_mean(engines, texts):
    return np.std([np.mean([e.ask(t).rows[0].values[-1] for t in texts]) for e in engines])


def spelled(conditions):
    return [f"SELECT count(*) FROM loans WHERE {condition}" for condition in conditions]


def test_tables_give_the_same_people_the_same_layer_under_every_condition(tables):
    plain = "SELECT count(*) FROM people WHERE town = 1"
    chaff = [f"{plain} AND floor_by(c{k}, 1000) = 0" for k in range(SPELLINGS)]
    assert sd_of_mean(tables, [plain]) == pytest.approx(np.sqrt(2), rel=TOLERANCE)
    # The layer of what is said averages out, as it does in pg_diffix; that of the users stays.
    left = np.sqrt(1 + 1 / SPELLINGS)
    assert sd_of_mean(tables, chaff) == pytest.approx(left, rel=TOLERANCE)


def test_a_cell_of_a_table_is_seeded_like_its_condition(bank):
    engine = loans_engine(bank, "tables")
    rows = engine.ask("SELECT floor_by(amount, 50000), count(*) FROM loans GROUP BY 1").rows
    for amount, count in (row.values for row in rows if row.values[0] != "*"):
        text = f"SELECT count(*) FROM loans WHERE floor_by(amount, 50000) = {amount}"
        assert engine.ask(text).rows[0].values[0] == count


@pytest.mark.parametrize(
    "same",
    [
        ("status ILIKE 'c%'", "status ILIKE 'C%'", "status ILIKE 'C%%'", "status ILIKE 'c%%%'"),
        ("status LIKE '_%'", "status LIKE '%_'", "status LIKE '%_%%'"),
        ("duration = 12", "duration = 12.00000000000000000001", "duration = 1.2e1"),
        ("duration <> 12", "duration <> 12.00000000000000000001"),
        ("duration IN (12, 24)", "duration IN (24, 12.0000000000000000001, 12)"),
        ("lower(status) = 'c'", "status = 'C'", "upper(status) = 'C'"),
    ],
)
def test_spellings_that_share_all_noise(engine, same):
    answers = {engine.ask(text).rows for text in spelled(same)}
    assert len(answers) == 1


def test_chaff_beside_a_condition_adds_layers_and_takes_none(engine):
    table = engine.database.table
    twelve = engine.salt.value(table, Column("duration", Kind.WHOLE), 12)
    bucket = Bucket((), 9, 12345, {"duration": twelve, "amount": 678})
    texts = (
        "duration = 12",
        "duration + 0 * amount = 12",
        "duration + amount - amount = 12",
        "duration = 12 AND duration <> 1",
    )
    plain, *others = (set(engine.seeds(engine.read(text), bucket)) for text in spelled(texts))
    assert all(plain < other for other in others)


# The vendor's own: spellings that were fresh noise there, and the SD that the mean of 24 leaves.
LEAKS = {
    "<>": ([f"status <> 'no {k}'" for k in range(SPELLINGS)], np.sqrt(12), np.sqrt(12 / SPELLINGS)),
    "ranges": (
        [f"duration BETWEEN 0 AND {factor * 10**k}" for k in range(2, 14) for factor in (1, 2)],
        np.sqrt(8),
        np.sqrt(8 / SPELLINGS),
    ),
    # Two static and UID layers each, and none that another pattern has.
    "patterns": (["status LIKE 'C%'", "status LIKE '%C'"], np.sqrt(8), np.sqrt(8 / 2)),
}


@pytest.mark.parametrize("leak", sorted(LEAKS))
def test_the_vendors_own_leaks_stay(engines, leak):
    conditions, one, mean = LEAKS[leak]
    assert sd_of_mean(engines, spelled(conditions[:1])) == pytest.approx(one, rel=TOLERANCE)
    assert sd_of_mean(engines, spelled(conditions)) == pytest.approx(mean, rel=TOLERANCE)


def test_the_vendors_own_exact_count_of_nulls():
    columns = {
        "uid": np.arange(300),
        "income": np.where(np.arange(300) % 10 == 0, np.nan, np.arange(300.0)),
    }
    for salt in map(salt_number, range(5)):
        database = Duck.of_columns(columns, salt, table="people", user="uid")
        values = (
            Engine(database, release_of("18.1"), salt)
            .ask("SELECT count(*), count(income) FROM people")
            .rows[0]
            .values
        )
        assert values[0] - values[1] == 30
