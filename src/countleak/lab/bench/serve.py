"""Digit queries a second through the server, beside the same queries to a plain PostgreSQL."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from countleak.attack.queries.arithmetic import numeric_server
from countleak.attack.queries.digits import digit_queries
from countleak.audit.people import Condition, People, generated_bank
from countleak.audit.targets.counts import Counts
from countleak.audit.targets.diffix import Diffix
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.several import Line
from countleak.diffix.salt import Salt
from countleak.diffix.server.background import DATABASE, TABLE, serve_columns
from countleak.progress import Progress

SALT = Salt(b"the salt of a measurement")
RELEASE = "18.1"
# Asked before the clock starts: the first questions prepare statements.
WARM_UP = 20


@dataclass(frozen=True)
class Throughput:
    """Queries a second of a system over so many connections, and latency of each, in seconds."""

    system: str
    connections: int
    queries: int
    a_second: float
    p50: float
    p99: float


def measure(queries: int, connections: Sequence[int], progress: Progress) -> list[Throughput]:
    """The attack's first ``queries``, put to each system over each number of connections."""
    bank, condition = generated_bank(7), Condition("status", "=", "C")
    people = bank.between(2000, 2999)
    every = digit_queries(people.ids)
    # From all exponents alike, for large ones take longer in numeric arithmetic.
    chosen = np.linspace(0, len(every) - 1, min(queries, len(every))).astype(np.int64)
    planned = every.take(chosen)
    counts = Counts(TABLE, bank.id_column, condition)
    statements = [counts.statement(planned, at) for at in range(len(planned))]
    found: list[Throughput] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countleak-")))
        columns = {bank.id_column: bank.ids, **bank.columns}
        served = stack.enter_context(serve_columns(columns, bank.id_column, folder, SALT, RELEASE))
        plain = stack.enter_context(_plain_server(bank))
        diffix = Diffix(bank, condition, RELEASE, SALT)
        systems: list[tuple[str, Callable[[], Line], Sequence[int]]] = [
            ("Diffix in process", lambda: _InProcess(diffix), (1,)),
            ("Diffix over PostgreSQL's protocol", PostgresTarget(served.postgres, counts).line, ()),
            ("Diffix over REST", RestTarget(served.rest, DATABASE, counts).line, ()),
            ("plain PostgreSQL", PostgresTarget(plain, counts).line, ()),
        ]
        runs = [(name, line, k) for name, line, only in systems for k in only or connections]
        for done, (name, line, k) in enumerate(runs):
            progress(done, len(runs))
            found.append(_throughput(name, line, k, statements))
        progress(len(runs), len(runs))
    return found


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
    name: str, open_line: Callable[[], Line], connections: int, statements: Sequence[str]
) -> Throughput:
    lines = [open_line() for _ in range(connections)]

    def work(number: int, some: Sequence[str]) -> list[float]:
        seconds = []
        for statement in some:
            begin = perf_counter()
            lines[number].ask(statement)
            seconds.append(perf_counter() - begin)
        return seconds

    shares = [statements[k::connections] for k in range(connections)]
    try:
        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(work, range(connections), [s[:WARM_UP] for s in shares]))
            begin = perf_counter()
            every = np.concatenate(list(pool.map(work, range(connections), shares)))
            seconds = perf_counter() - begin
    finally:
        for line in lines:
            line.close()
    p50, p99 = np.quantile(every, (0.5, 0.99))
    return Throughput(name, connections, len(every), len(every) / seconds, float(p50), float(p99))


@contextmanager
def _plain_server(bank: People) -> Iterator[str]:
    """The address of a PostgreSQL server that holds the bank as it is."""
    kinds = {"i": "bigint", "f": "double precision", "U": "text"}
    columns = {bank.id_column: bank.ids, **bank.columns}
    with numeric_server() as server:
        declared = ", ".join(f"{name} {kinds[v.dtype.kind]}" for name, v in columns.items())
        server.connection.execute(f"CREATE TABLE {TABLE} ({declared})".encode())
        with server.connection.cursor().copy(f"COPY {TABLE} FROM STDIN".encode()) as copy:
            for row in zip(*(values.tolist() for values in columns.values()), strict=True):
                copy.write_row(row)
        yield server.connection.info.dsn
