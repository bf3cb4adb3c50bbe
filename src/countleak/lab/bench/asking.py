"""What countleak costs beside the questions themselves: the same 3500, asked by a plain loop.

Both sides ask one PostgreSQL over one connection, one question after the other, in turns. The loop
has its statements ready and keeps its counts in memory; countleak plans, renders, reads and keeps
each answer in its journal before it asks on.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import psycopg
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Journal
from countleak.audit.families import family_queries
from countleak.audit.people import generated_bank
from countleak.audit.run import ask_into
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rendering import Statements
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.diffix.server.background import TABLE
from countleak.lab.bench.serve import plain_server
from countleak.progress import Progress

SECRET = Bit("status = 'C'")
LOOP, ALL = "a plain psycopg loop", "countleak: plan, render, ask, keep"


@dataclass(frozen=True)
class Cost:
    """Medians of the seconds that something took, by the clock and of this process's own time."""

    what: str
    seconds: float
    own_seconds: float


@dataclass(frozen=True)
class Overhead:
    """The costs of both sides, and of countleak's parts alone, over so many questions and turns.

    ``share`` is what countleak takes of its own time beyond the loop's, against all the time that
    the loop takes; ``share_by_clock`` the same of both by the clock.
    """

    questions: int
    turns: int
    costs: tuple[Cost, ...]

    @property
    def share(self) -> float:
        """Own time beyond the loop's."""
        loop, whole = (self._cost(what) for what in (LOOP, ALL))
        return (whole.own_seconds - loop.own_seconds) / loop.seconds

    @property
    def share_by_clock(self) -> float:
        """Time beyond the loop's."""
        loop, whole = (self._cost(what) for what in (LOOP, ALL))
        return (whole.seconds - loop.seconds) / loop.seconds

    def _cost(self, what: str) -> Cost:
        return next(cost for cost in self.costs if cost.what == what)


@dataclass
class _Stopwatch:
    taken: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @contextmanager
    def timing(self, what: str) -> Iterator[None]:
        begin, own = perf_counter(), process_time()
        yield
        seconds = (perf_counter() - begin, process_time() - own)
        self.taken.setdefault(what, []).append(seconds)

    def costs(self) -> Iterator[Cost]:
        for what, times in self.taken.items():
            clock, own = zip(*times, strict=True)
            yield Cost(what, median(clock), median(own))


def measure_asking(family: str, count: int, turns: int, progress: Progress) -> Overhead:
    """Both sides in turns, about so many questions of a family."""
    bank = generated_bank(7)
    people = bank.between(2000, 2999)
    watch = _Stopwatch()
    questions = SqlQuestions(TABLE, bank.key, SECRET, PLAIN)

    def plan() -> Queries:
        return family_queries(family, people, count, np.random.default_rng(1))

    pool = plan()
    statements = _rendered(questions, pool)
    with (
        tempfile.TemporaryDirectory(prefix="countleak-") as folder,
        plain_server(bank) as address,
    ):
        target = PostgresTarget(address, questions)
        for turn in range(turns + 1):
            progress(turn, turns + 1)
            # The first turn is not counted: the server reads its table, and modules are imported.
            watch = _Stopwatch() if turn <= 1 else watch
            with watch.timing(LOOP):
                counts = _ask(address, statements)
            with watch.timing(ALL):
                found = ask_into(_journal(Path(folder) / f"{turn}.jsonl", plan()), target)
            assert np.array_equal(found.values, counts)
            with watch.timing("of that, plan"):
                plan()
            with watch.timing("of that, render"):
                _rendered(questions, pool)
            with watch.timing("of that, keep"):
                _keep(_journal(Path(folder) / f"{turn}-kept.jsonl", pool), counts)
        progress(turns + 1, turns + 1)
    return Overhead(len(pool), turns, tuple(watch.costs()))


def _ask(address: str, statements: list[str]) -> NDArray[np.float64]:
    with psycopg.connect(address, autocommit=True) as connection:
        return np.array(
            [connection.execute(statement.encode()).fetchall()[0][0] for statement in statements],
            dtype=np.float64,
        )


def _rendered(questions: SqlQuestions, pool: Queries) -> list[str]:
    statements = Statements(questions, pool)
    return [statements.at(position) for position in range(len(pool))]


def _journal(path: Path, queries: Queries) -> Journal:
    return Journal(path, queries, SECRET, "a plain PostgreSQL")


def _keep(journal: Journal, counts: NDArray[np.float64]) -> None:
    with journal.writing():
        for position, count in enumerate(counts.tolist()):
            one = np.array([count])
            journal.append(Answers(np.array([position]), one, np.array([True])))
