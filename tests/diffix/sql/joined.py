"""Two tables of the same people, and one of others, in a DuckDB file and on PostgreSQL."""

from dataclasses import replace

import duckdb
import numpy as np

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from tests.diffix.conftest import salt_number
from tests.diffix.databases.test_postgres import load

SALT = salt_number(0)
USERS = {"loans": "client_id", "accounts": "owner", "people": "id", "names": "name"}


def tables(bank):
    """The loans of 500 people, one each, and up to 3 accounts of 400 of these and of 50 others."""
    rng = np.random.default_rng(11)
    ids = bank.ids[:500]
    owners = np.repeat(np.append(ids[:400], np.arange(10**6, 10**6 + 50)), np.arange(450) % 4)
    return {
        "loans": {"client_id": ids} | {n: v[:500] for n, v in bank.columns.items()},
        "accounts": {
            "owner": owners,
            "region": rng.choice(["X", "Y"], size=owners.size),
            "amount": rng.integers(-20, 80, size=owners.size),
        },
        "people": {"id": ids, "kind": np.full(500, "k")},
        "names": {"name": np.array(["ada", "bob"] * 20), "region": np.array(["X"] * 40)},
    }


def duck(bank, path):
    """The tables in an engine."""
    with duckdb.connect(str(path / "joined.duckdb")) as connection:
        for name, columns in tables(bank).items():
            view = {n: v.astype(object) if v.dtype.kind == "U" else v for n, v in columns.items()}
            connection.register("given", view)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    return Duck.of_file(path / "joined.duckdb", SALT, **declared())


def declared():
    """How the tables are declared to a database."""
    (table, user), *others = USERS.items()
    return {"table": table, "user": user, "others": dict(others)}


def on_postgres(postgres, bank):
    """The tables on a server."""
    for name, columns in tables(bank).items():
        load(postgres.connection, name, columns)


def engine_of(database, sd=2.0):
    """An engine of 18.1 with noise of an ``sd`` per layer."""
    return Engine(database, replace(release_of("18.1"), sd=sd), SALT)
