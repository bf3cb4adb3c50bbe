"""Digit queries per second through the server, beside the same queries to a plain PostgreSQL."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from benchmarks.start import main, whole_from
from countleak.attack.queries.arithmetic import numeric_server
from countleak.attack.queries.digits import digit_queries
from countleak.attack.secrets import Bit
from countleak.audit.people import People, generated_bank
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.pool import Connection
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.sql import SqlQuestions
from countleak.cli import console, options
from countleak.diffix.salt import Salt
from countleak.diffix.server.background import DATABASE, TABLE, serve_columns
from countleak.progress import Progress

SALT = Salt(b"the salt of a measurement")
RELEASE = "18.1"
# Asked before the clock starts: the first questions prepare statements.
WARM_UP = 20


@dataclass(frozen=True)
class Throughput:
    """Queries per second of a system over some connections, and the latency of each, in seconds."""

    system: str
    connections: int
    queries: int
    per_second: float
    p50: float
    p99: float


def measure(queries: int, connections: Sequence[int], progress: Progress) -> list[Throughput]:
    """The attack's first ``queries``, put to each system over each number of connections."""
    bank, secret = generated_bank(7), Bit("status = 'C'")
    people = bank.between(2000, 2999)
    pool = digit_queries(people.ids)
    # From all exponents alike, for large ones take longer in numeric arithmetic.
    chosen = np.linspace(0, len(pool) - 1, min(queries, len(pool))).astype(np.int64)
    questions = SqlQuestions(TABLE, bank.key, secret)
    statements = [questions.statement(pool, at) for at in chosen.tolist()]
    rows: list[Throughput] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countleak-")))
        served = stack.enter_context(
            serve_columns(bank.all_columns, bank.key[0], folder, SALT, RELEASE)
        )
        plain = stack.enter_context(plain_server(bank))
        diffix = Diffix(bank, secret, RELEASE, SALT)
        over_wire = PostgresTarget(served.postgres, questions)
        systems: list[tuple[str, Callable[[], Connection[str]], Sequence[int]]] = [
            ("Diffix in process", lambda: _InProcess(diffix), (1,)),
            ("Diffix over PostgreSQL's protocol", over_wire.connect, ()),
            ("Diffix over REST", RestTarget(served.rest, DATABASE, questions).connect, ()),
            ("plain PostgreSQL", PostgresTarget(plain, questions).connect, ()),
        ]
        runs = [(name, connect, k) for name, connect, only in systems for k in only or connections]
        for done, (name, connect, k) in enumerate(runs):
            progress(done, len(runs))
            rows.append(_throughput(name, connect, k, statements))
        progress(len(runs), len(runs))
    return rows


class _InProcess:
    """The engine itself, without any connection."""

    def __init__(self, diffix: Diffix):
        self._diffix = diffix

    def ask(self, statement: str) -> float | None:
        row = self._diffix.ask(statement).rows[0]
        return float(row.values[0]) if row.released else None

    def close(self) -> None:
        pass


def _throughput(
    name: str, connect: Callable[[], Connection[str]], count: int, statements: Sequence[str]
) -> Throughput:
    connections = [connect() for _ in range(count)]

    def work(number: int, some: Sequence[str]) -> list[float]:
        seconds = []
        for statement in some:
            begin = perf_counter()
            connections[number].ask(statement)
            seconds.append(perf_counter() - begin)
        return seconds

    shares = [statements[k::count] for k in range(count)]
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count), [s[:WARM_UP] for s in shares]))
            begin = perf_counter()
            latencies = np.concatenate(list(pool.map(work, range(count), shares)))
            seconds = perf_counter() - begin
    finally:
        for connection in connections:
            connection.close()
    p50, p99 = np.quantile(latencies, (0.5, 0.99))
    rate = latencies.size / seconds
    return Throughput(name, count, latencies.size, rate, float(p50), float(p99))


@contextmanager
def plain_server(bank: People) -> Iterator[str]:
    """The address of a PostgreSQL server that holds the bank as it is."""
    kinds = {"i": "bigint", "f": "double precision", "U": "text"}
    columns = bank.all_columns
    with numeric_server() as server:
        declared = ", ".join(f"{name} {kinds[v.dtype.kind]}" for name, v in columns.items())
        server.connection.execute(f"CREATE TABLE {TABLE} ({declared})".encode())
        with server.connection.cursor().copy(f"COPY {TABLE} FROM STDIN".encode()) as copy:
            for row in zip(*(values.tolist() for values in columns.values()), strict=True):
                copy.write_row(row)
        yield server.connection.info.dsn


def serve(
    queries: Annotated[int, typer.Option(help="Digit queries to ask of each.", min=1)] = 1000,
    connections: Annotated[str, typer.Option(help="Connections, a list like 1,4.")] = "1,4",
    json: options.Json = False,
) -> None:
    """Time digit queries through the server, in process, and on a plain PostgreSQL."""
    counts = [whole_from(part, "--connections") for part in connections.split(",")]
    with console.progress("serve") as report:
        rows = measure(queries, counts, report)
    if json:
        console.print_json({"rows": [asdict(row) for row in rows]})
        return
    console.print_table(
        [
            {
                "system": row.system,
                "connections": row.connections,
                "queries per second": f"{row.per_second:.0f}",
                "p50, ms": f"{1000 * row.p50:.2f}",
                "p99, ms": f"{1000 * row.p99:.2f}",
            }
            for row in rows
        ],
        f"{rows[0].queries} digit queries on 827 rows",
    )


if __name__ == "__main__":
    main("serve")
