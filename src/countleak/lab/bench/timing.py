"""Whether the time of an answer tells a suppressed group from an empty set.

Pairs of questions that differ in an id are asked in a random order: of a person who is there, whose
group of one is suppressed, and of nobody. An AUC of .5 says that time tells them no better than a
coin.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from countleak.audit.people import People, generated_bank
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt
from countleak.diffix.server.background import TABLE
from countleak.lab.bench.serve import plain_server
from countleak.progress import Progress

SALT = Salt(b"the salt of a measurement")
QUESTIONS = (
    "SELECT count(*) FROM loans WHERE client_id = {}",
    "SELECT status, count(*) FROM loans WHERE client_id = {} GROUP BY status",
    "SELECT status, sum(amount) FROM loans WHERE client_id = {} GROUP BY status",
)
# Asked before the clock counts: the first questions prepare statements.
WARM_UP = 20
Seconds = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Distinction:
    """Medians in seconds of a question, and the AUC of time with its 95% interval."""

    database: str
    question: str
    pairs: int
    suppressed: float
    empty: float
    auc: float
    low: float
    high: float


def measure(pairs: int, seed: int, progress: Progress) -> list[Distinction]:
    """Each question so many times of somebody and of nobody, on DuckDB and on PostgreSQL."""
    bank = generated_bank(7)
    ids = bank.ids
    # As many as there are people, and the same for all questions: what is asked again is faster.
    free = np.setdiff1d(np.arange(ids.min(), ids.max()), ids)
    pools = ids, np.random.default_rng(seed).choice(free, ids.size, replace=False)
    found: list[Distinction] = []
    with ExitStack() as stack:
        engines = list(_engines(bank, stack))
        for database, engine in engines:
            for question in QUESTIONS:
                progress(len(found), len(engines) * len(QUESTIONS))
                rng = np.random.default_rng([seed, len(found)])
                times = _times(engine, question, pools, pairs, rng)
                medians = (float(np.median(times[0])), float(np.median(times[1])))
                found.append(Distinction(database, question, pairs, *medians, *auc(*times)))
        progress(len(found), len(found))
    return found


def auc(one: Seconds, other: Seconds) -> tuple[float, float, float]:
    """How often a time of ``one`` is above one of ``other``, and its interval (DeLong 1988)."""
    above, below = _placements(one, other), _placements(other, one)
    area = float(above.mean())
    half = 1.96 * float(np.sqrt(above.var() / one.size + below.var() / other.size))
    return area, area - half, area + half


def _placements(one: Seconds, other: Seconds) -> Seconds:
    """For each of ``one`` the share of ``other`` below it, equal ones counted by half."""
    other = np.sort(other)
    ranks = np.searchsorted(other, one, "left") + np.searchsorted(other, one, "right")
    return ranks / (2 * other.size)


def _engines(bank: People, stack: ExitStack) -> Iterator[tuple[str, Engine]]:
    # Loaded here: most of countleak needs no database.
    from countleak.diffix.databases.duck import Duck
    from countleak.diffix.databases.postgres import connect

    release, user = release_of("18.1"), bank.key[0]
    yield (
        "DuckDB",
        Engine(Duck.of_columns(bank.all_columns, SALT, table=TABLE, user=user), release, SALT),
    )
    url = stack.enter_context(plain_server(bank))
    database = stack.enter_context(connect(url, table=TABLE, user=user))
    yield "PostgreSQL", Engine(database, release, SALT)


def _times(
    engine: Engine, question: str, pools: Sequence[Ids], pairs: int, rng: np.random.Generator
) -> tuple[Seconds, Seconds]:
    """Seconds of a question about each of two pools of ids."""
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    for _ in range(WARM_UP + pairs):
        for side in rng.permutation(2).tolist():
            text = question.format(rng.choice(pools[side]))
            begin = perf_counter()
            engine.ask(text)
            times[side].append(perf_counter() - begin)
    suppressed, empty = (np.array(side[WARM_UP:]) for side in times)
    return suppressed, empty
