"""Many clients at once on a server in a process of its own: every answer is its question's."""

import asyncio
import sys
from pathlib import Path
from time import perf_counter

import asyncpg
import psutil
import pytest

from tests.diffix.server.process import demo_engine, serving


def load(folder: Path, connections: int, queries: int, warm: int) -> dict[str, float]:
    """Ask that many questions over that many connections; time and the server's memory in MiB."""
    with serving(folder, "--demo") as (port, _, process):
        engine = demo_engine(folder)
        texts = [
            f"SELECT count(*) FROM loans WHERE status = '{status}' AND client_id BETWEEN {low} AND "
            f"{low + 2000}"
            for status in "ABCD"
            for low in range(0, 12_000, 1000)
        ]
        expected = {text: engine.ask(text).rows[0].values[0] for text in texts}

        async def client(number: int, queries: int) -> int:
            connection = await asyncpg.connect(
                host="127.0.0.1",
                port=port,
                user="analyst",
                database="bank",
                statement_cache_size=0 if number % 2 else 100,
            )
            for at in range(number, queries, connections):
                text = texts[(7 * at + number) % len(texts)]
                assert await connection.fetchval(text) == expected[text]
            await connection.close()
            return len(range(number, queries, connections))

        async def everyone(queries: int) -> int:
            return sum(await asyncio.gather(*(client(n, queries) for n in range(connections))))

        asyncio.run(everyone(warm))
        watched = psutil.Process(process.pid)
        before, start = watched.memory_info().rss, perf_counter()
        assert asyncio.run(everyone(queries)) == queries
        seconds, after = perf_counter() - start, watched.memory_info().rss
    return {"seconds": seconds, "before": before / 2**20, "after": after / 2**20}


def test_16_connections_and_400_queries(tmp_path):
    load(tmp_path, connections=16, queries=400, warm=32)


@pytest.mark.slow
def test_64_connections_and_20_000_queries_in_flat_memory(tmp_path, record_property):
    found = load(tmp_path, connections=64, queries=20_000, warm=2000)
    for name, value in found.items():
        record_property(name, round(value, 1))
    # Caches had filled before.
    assert found["after"] < 1.1 * found["before"] + 5
    sys.stdout.write(f"{found}\n")
