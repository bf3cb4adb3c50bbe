"""Many clients at once on a server in a process of its own: every answer is its question's."""

import asyncio
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

import asyncpg
import numpy as np
import psutil
import pytest

from countleak.diffix.salt import salt_file
from tests.diffix.server.process import demo_engine, salted_engine, serving

# What takes the longest, or the most, of all that a user may send.
WORST = [
    "SELECT " + ", ".join(f"floor(amount / {n})" for n in range(1, 9)) + ", count(*) FROM loans "
    "GROUP BY " + ", ".join(map(str, range(1, 9))),
    "SELECT client_id, sum(amount), avg(duration) FROM loans GROUP BY client_id",
    "SELECT count(*) FROM loans WHERE client_id = 1e-999999999",
    f"SELECT count(*) FROM loans WHERE status IN ({', '.join(map(repr, map(str, range(9000))))})",
    "SELECT count(*) FROM loans WHERE " + "(" * 5000,
    "SELECT string_agg(x::text, ',') FROM generate_series(1, 2000000000) AS t(x)",
    "SELECT count(*) FROM generate_series(1, 100000000000) AS t(x) WHERE x % 7 = 3",
    "SELECT count(*) FROM loans -- " + "x" * 99_000,
]
FILE = """
salt_file = "salt"

[limits]
seconds = {seconds}

[databases.bank]
{database}
tables = {{ loans = "client_id" }}
"""


def texts() -> list[str]:
    return [
        f"SELECT count(*) FROM loans WHERE status = '{status}' AND client_id BETWEEN {low} AND "
        f"{low + 2000}"
        for status in "ABCD"
        for low in range(0, 12_000, 1000)
    ]


async def connect(port: int, user: str = "analyst", **more: object) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=port, user=user, database="bank", ssl=False, **more
    )


@contextmanager
def described(folder: Path, database: str, users: list[str], seconds: float = 30):
    """A server of the bank that a file describes, to users who need no proof."""
    (folder / "serve.toml").write_text(
        FILE.format(database=database, seconds=seconds)
        + "".join(f"\n[users.{user}]\ntrust = true\n" for user in users)
    )
    with serving(folder, "serve.toml") as (port, _, process):
        yield port, process


@contextmanager
def demo(folder: Path):
    with serving(folder, "--demo") as (port, _, process):
        yield port, process, demo_engine(folder)


@contextmanager
def over_postgres(folder: Path, bank, address: str):
    with described(folder, f"url = '{address}'", ["analyst"]) as (port, process):
        yield port, process, salted_engine(bank, salt_file(folder / "salt"))


def memory(process) -> float:
    """What the server and its workers take, in MiB."""
    server = psutil.Process(process.pid)
    return sum(one.memory_info().rss for one in (server, *server.children())) / 2**20


def load(server, connections: int, queries: int, warm: int) -> dict[str, float]:
    """Ask that many questions over that many connections; time and the server's memory in MiB."""
    with server as (port, process, engine):
        asked = texts()
        expected = {text: engine.ask(text).rows[0].values[0] for text in asked}

        async def client(number: int, queries: int) -> int:
            cached = 0 if number % 2 else 100
            connection = await connect(port, statement_cache_size=cached)
            for at in range(number, queries, connections):
                text = asked[(7 * at + number) % len(asked)]
                assert await connection.fetchval(text) == expected[text]
            await connection.close()
            return len(range(number, queries, connections))

        async def everyone(queries: int) -> int:
            return sum(await asyncio.gather(*(client(n, queries) for n in range(connections))))

        asyncio.run(everyone(warm))
        before, start = memory(process), perf_counter()
        assert asyncio.run(everyone(queries)) == queries
        return {"seconds": perf_counter() - start, "before": before, "after": memory(process)}


def test_16_connections_and_400_queries(tmp_path):
    load(demo(tmp_path), connections=16, queries=400, warm=32)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["DuckDB", "PostgreSQL"])
def test_64_connections_and_20_000_queries_in_flat_memory(
    tmp_path, record_property, request, database
):
    if database == "DuckDB":
        server = demo(tmp_path)
    else:
        bank, address = (request.getfixturevalue(n) for n in ("bank", "postgres_loans"))
        server = over_postgres(tmp_path, bank, address)
    found = load(server, connections=64, queries=20_000, warm=2000)
    for name, value in found.items():
        record_property(name, round(value, 1))
    # Caches had filled before.
    assert found["after"] < 1.1 * found["before"] + 5
    sys.stdout.write(f"{database}: {found}\n")


async def honest(port: int, user: str, queries: int) -> list[float]:
    """The seconds that each of a user's questions took, one after the other."""
    connection, seconds = await connect(port, user), []
    for text in (texts() * (queries // 48 + 1))[:queries]:
        begin = perf_counter()
        assert await connection.fetchval(text) is not None
        seconds.append(perf_counter() - begin)
    await connection.close()
    return seconds


async def hostile(port: int, number: int) -> None:
    """Ask the worst there is, as fast as it goes."""
    while True:
        with suppress(asyncpg.PostgresError, OSError):
            connection = await connect(port, "eleventh", statement_cache_size=0)
            try:
                for text in WORST[number % len(WORST) :]:
                    with suppress(asyncpg.PostgresError):
                        await connection.fetch(text)
            finally:
                connection.terminate()


def waits(folder: Path, queries: int, attackers: int) -> np.ndarray:
    """How long ten users wait for answers, while an eleventh is honest or has many attackers."""
    users = [*(f"user{number}" for number in range(10)), "eleventh"]

    async def everyone(port: int) -> list[float]:
        attacks = [asyncio.create_task(hostile(port, number)) for number in range(attackers)]
        asking = users if not attackers else users[:-1]
        found = await asyncio.gather(*(honest(port, user, queries) for user in asking))
        for attack in attacks:
            attack.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
        return [seconds for one in found[:10] for seconds in one]

    with described(folder, "file = 'loans.csv'", users, seconds=5) as (port, process):
        found = asyncio.run(everyone(port))
        assert memory(process) < 3000
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("queries", [20, 500])
def test_ten_users_are_answered_whatever_an_eleventh_does(tmp_path, bank, queries, record_property):
    """Every question is answered; how soon is for whoever looks at what is recorded."""
    bank.write_csv(tmp_path / "loans.csv")
    for name, attackers in (("honest", 0), ("hostile", 30)):
        found = waits(tmp_path, queries, attackers)
        # Plain numbers, for a process of pytest-xdist can hand on no others.
        p50, p99 = (1000 * np.quantile(found, (0.5, 0.99))).tolist()
        record_property(name, (round(p50, 1), round(p99, 1)))
        sys.stdout.write(f"eleventh {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms\n")
