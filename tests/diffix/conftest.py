"""A loans table in DuckDB, and an engine over it for any release and salt."""

import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt


def salt_number(number: int) -> Salt:
    return Salt(b"a salt for tests, number %d" % number)


def loans_engine(people, release="18.1", salt=0) -> Engine:
    secret = salt_number(salt)
    columns = {people.id_column: people.ids, **people.columns}
    database = Duck.of_columns(columns, secret, table="loans", user=people.id_column)
    return Engine(database, release_of(release), secret)


@pytest.fixture(scope="session")
def engine(bank) -> Engine:
    return loans_engine(bank)


@pytest.fixture(scope="session")
def visits() -> Engine:
    """Users with several rows each: 400 users, user u has u % 5 + 1 rows."""
    users = np.repeat(np.arange(400), np.arange(400) % 5 + 1)
    rng = np.random.default_rng(5)
    salt = salt_number(0)
    columns = {
        "uid": users,
        "place": rng.choice(["north", "south", "east"], size=users.size),
        "cost": rng.integers(-20, 80, size=users.size),
        "weight": np.round(rng.normal(70, 9, size=users.size), 2),
    }
    return Engine(
        Duck.of_columns(columns, salt, table="visits", user="uid"), release_of("18.1"), salt
    )
