"""A server that really runs: in its own thread, on real sockets, over DuckDB and PostgreSQL."""

import asyncio
import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from countleak.diffix.engine import Engine
from countleak.diffix.server.options import Limits, Listening
from countleak.diffix.server.server import Server
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import User, Users, Verifier, hash_token
from tests.diffix.conftest import loans_engine
from tests.diffix.databases.test_postgres import load, url
from tests.diffix.server.loads import bank_columns, bank_on_postgres

# The query of the paper.
QUERY = (
    "SELECT count(DISTINCT client_id) FROM loans WHERE floor(100 * pow((client_id * 2),0.7) + 0.5) "
    "= floor(100 * pow((client_id * 2), 0.7)) AND status = 'C' AND client_id BETWEEN 2000 and 3000"
)
OR = "SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'"
OR_REFUSED = "Combining conditions with `OR` is not allowed."
PASSWORD, TOKEN = secrets.token_hex(12), secrets.token_hex(12)
USERS = Users(
    {
        "analyst": User("analyst", trusted=True),
        "guarded": User("guarded", Verifier.of_password(PASSWORD), (hash_token(TOKEN),)),
        "narrow": User(
            "narrow", Verifier.of_password(PASSWORD), databases=frozenset({"elsewhere"})
        ),
    }
)


@dataclass
class Running:
    """Where a server listens, and the lines it logged."""

    port: int = 0
    rest: str = ""
    lines: list[str] = field(default_factory=list)

    def dsn(self, database: str = "bank", user: str = "analyst", **more: object) -> str:
        given = {"host": "127.0.0.1", "port": self.port, "user": user, "dbname": database, **more}
        return " ".join(f"{name}={value}" for name, value in given.items())

    def connect(self, database: str = "bank", user: str = "analyst", **more: object):
        return psycopg.connect(self.dsn(database, user), **more)

    def answers(self) -> bool:
        """Whether a new client gets an answer."""
        with self.connect() as connection:
            return connection.execute("SELECT count(*) FROM loans").fetchone()[0] > 800


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]):
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


@contextmanager
def running(server: Server) -> Iterator[Running]:
    """The server while it runs in a thread of its own."""
    found, ready = Running(), threading.Event()
    held: dict[str, object] = {}

    def said(protocol: str, host: str, port: int) -> None:
        if protocol == "REST":
            found.rest = f"http://{host}:{port}"
            ready.set()
        else:
            found.port = port

    async def main() -> None:
        held["stop"], held["loop"] = asyncio.Event(), asyncio.get_running_loop()
        await server.serve(said, held["stop"])

    handler, log = _Lines(found.lines), logging.getLogger("countleak.diffix.server")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    # The command line's own handler may write to a stream of a test that is over.
    log.propagate = False
    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(30)
        yield found
    finally:
        held["loop"].call_soon_threadsafe(held["stop"].set)
        thread.join(30)
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = True
        assert not thread.is_alive()


def served_bank(bank, limits=None, name="bank") -> Served:
    return Served(name, bank_columns(bank), limits or Limits(), USERS.by_name)


def served_on_postgres(address, limits=None, name="bank_pg") -> Served:
    return Served(name, bank_on_postgres(address), limits or Limits(), USERS.by_name)


def make_server(databases, limits=None, users=USERS, **listening) -> Server:
    where = Listening(postgres_port=0, rest_port=0, **listening)
    return Server(databases, users, where, limits or Limits())


@pytest.fixture(scope="session")
def postgres_loans(postgres, bank):
    """A table `loans` of the bank on a real PostgreSQL server: its address."""
    connection = postgres.connection
    connection.execute("DROP DATABASE IF EXISTS served")
    connection.execute("CREATE DATABASE served")
    address = psycopg.conninfo.make_conninfo(url(postgres), dbname="served")
    with psycopg.connect(address, autocommit=True) as own:
        load(own, "loans", {bank.id_column: bank.ids, **bank.columns})
    return address


@pytest.fixture(scope="session")
def server(bank, postgres_loans):
    """A server with the database `bank` on DuckDB and `bank_pg`, the same, on PostgreSQL."""
    databases = [served_bank(bank), served_on_postgres(postgres_loans)]
    with running(make_server(databases)) as found:
        yield found


@pytest.fixture(params=["bank", "bank_pg"])
def database(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def engine(bank) -> Engine:
    return loans_engine(bank)
