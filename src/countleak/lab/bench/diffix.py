"""How long the rebuilt system takes: the paper's attack on a bank, and questions on many rows."""

import resource
import sys
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from countleak.attack.queries.digits import digit_queries
from countleak.audit.people import generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.diffix import Diffix
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from countleak.diffix.salt import Salt
from countleak.progress import Progress, silent

SALT = Salt(b"the salt of a measurement")


@dataclass(frozen=True)
class Timing:
    """A question, over how many rows, how often it was asked, and seconds each."""

    rows: int
    question: str
    times: int
    seconds_each: float
    peak_gib: float


def measure_attack(primes: int = 25) -> Timing:
    """The digit queries of so many primes on the generated bank, release 18.1."""
    bank = generated_bank(7)
    queries = digit_queries(bank.between(2000, 2999).ids, primes=primes)
    system = Diffix(bank, "status = 'C'", "18.1", SALT)
    begin = perf_counter()
    ask(queries, system)
    seconds = (perf_counter() - begin) / len(queries)
    return Timing(len(bank), "digit queries of the attack", len(queries), seconds, _peak())


def measure_many(rows: int, threads: int = 2, progress: Progress = silent) -> list[Timing]:
    """Questions over a table of ``rows`` invented people, each asked three times, the median."""
    rng = np.random.default_rng(rows)
    columns = {
        "client_id": np.arange(rows),
        "kind": rng.integers(0, 4, size=rows),
        "amount": rng.integers(0, 1_000_000, size=rows),
    }
    begin = perf_counter()
    # Loaded here: most of countleak needs no database.
    from countleak.diffix.databases.duck import Duck

    database = Duck.of_columns(columns, SALT, table="loans", user="client_id", threads=threads)
    loaded = perf_counter() - begin
    engine = Engine(database, release_of("18.1"), SALT)
    timings = [Timing(rows, "loading, with all hashes", 1, loaded, _peak())]
    digits = "floor(10 * pow((client_id * 2),0.7) + 0.5) = floor(10 * pow((client_id * 2), 0.7))"
    questions = [
        f"SELECT count(DISTINCT client_id) FROM loans WHERE {digits} AND kind = 2 "
        f"AND client_id BETWEEN 0 and {rows}",
        "SELECT count(*) FROM loans WHERE kind = 2",
        "SELECT count(*) FROM loans WHERE amount BETWEEN 200000 AND 400000",
        "SELECT kind, count(*) FROM loans GROUP BY kind",
    ]
    for at, question in enumerate(questions):
        progress(at, len(questions))
        seconds = []
        for _ in range(3):
            begin = perf_counter()
            engine.ask(question)
            seconds.append(perf_counter() - begin)
        timings.append(Timing(rows, question, 3, float(np.median(seconds)), _peak()))
    progress(len(questions), len(questions))
    return timings


def _peak() -> float:
    """The most memory this process ever had, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
