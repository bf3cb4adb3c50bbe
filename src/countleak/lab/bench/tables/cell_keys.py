"""The averaging attack on cell keys (Asghar and Kaafar, arXiv 1902.06414), on the ONS's package.

A cell's noise is fixed by the sum of its people's record keys, so that asking again brings nothing
new. But the people of a cell, split in two by any other column, are two cells with noise of their
own, whose sum is the same count; and every way of splitting is another such sum. Their mean, in
whole people, is the count. Tables by job, each crossed with one random half of the towns, attack
all jobs at once, as those of an analyst do who defines groups of towns.
"""

import csv
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countleak.audit.scores import wilson
from countleak.audit.targets.program import Program
from countleak.errors import InputError
from countleak.progress import Progress, silent

PROGRAM = Path(__file__).with_name("cell_key_program.py")
JOBS, TOWNS, PEOPLE = 20, 16, 4000
KEYS, LARGEST_IN_TABLE = 256, 750
# The noise of TableBuilder is bounded; this is the range that the paper's experiments use.
REACH = 2
CHECKPOINTS = (1, 5, 10, 20, 50, 100, 200)
PATIENCE = 120.0


@dataclass(frozen=True)
class System:
    """How the package is set: its table of noise, and below what threshold nothing is shown.

    Its ``own`` table rounds to multiples of 5, and counts below 10 to 0.
    """

    name: str
    own: bool
    threshold: int


SYSTEMS = (
    System("noise from -2 to 2", False, 0),
    System("noise from -2 to 2, below 10 not shown", False, 10),
    System("its own table: rounded to 5, below 10 not shown", True, 10),
)


@dataclass(frozen=True)
class Row:
    """Of a system's ``cells``: how many counts the mean after so many ``tables`` has right.

    ``published`` of them the plain table by job already has right: what guessing gets.
    """

    system: str
    tables: int
    cells: int
    right: int
    share: float
    low: float
    high: float
    published: float


@dataclass(frozen=True)
class Needed:
    """The ``median`` number of tables from which on a count stays right; None: half never do."""

    system: str
    cells: int
    never: int
    median: int | None


@dataclass(frozen=True, eq=False)
class _Attack:
    """One world: the ``truth`` (k,), the plain answers, and the ``sums`` (tables, k) of halves.

    NaN stands for what is not shown.
    """

    truth: NDArray[np.int64]
    plain: NDArray[np.float64]
    sums: NDArray[np.float64]

    @property
    def guesses(self) -> NDArray[np.float64]:
        """The mean after each table (tables, k), in whole people; NaN as long as nothing shows."""
        shown = np.isfinite(self.sums)
        count = np.cumsum(shown, axis=0)
        total = np.cumsum(np.where(shown, self.sums, 0.0), axis=0)
        return np.where(count > 0, np.rint(total / np.maximum(count, 1)), np.nan)


def measure_cell_keys(
    engine: Path,
    worlds: int = 5,
    tables: int = CHECKPOINTS[-1],
    systems: Sequence[System] = SYSTEMS,
    progress: Progress = silent,
) -> tuple[list[Row], list[Needed]]:
    """So many generated populations per system; ``engine`` is the Python that has the package."""
    if not engine.exists():
        raise InputError(
            f"{engine}: there is no such Python; make the environment of adapters/cell_key_table, "
            "as docs/engines.md says"
        )
    rows, needed = [], []
    for at, system in enumerate(systems):
        attacks = []
        for world in range(worlds):
            progress(at * worlds + world, len(systems) * worlds)
            attacks.append(_attacked(engine, system, world, tables))
        rows += list(_rows(system, attacks, tables))
        needed.append(_needed(system, attacks))
    progress(len(systems) * worlds, len(systems) * worlds)
    return rows, needed


def population(rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each person's job and town: shares of jobs are Dirichlet(2), and so are those of towns."""
    job = rng.choice(JOBS, PEOPLE, p=rng.dirichlet(np.full(JOBS, 2.0)))
    town = rng.choice(TOWNS, PEOPLE, p=rng.dirichlet(np.full(TOWNS, 2.0)))
    return job, town


def noise_table() -> Iterator[tuple[int, int, int]]:
    """Count, cell key and what is added, as the package reads them.

    Every whole number from -2 to 2 is as likely, and from -1 to 1 at a count of 1, so that the mean
    is 0 and nothing falls below 0.
    """
    for count in range(1, LARGEST_IN_TABLE + 1):
        reach = min(REACH, count)
        for key in range(KEYS):
            yield count, key, key % (2 * reach + 1) - reach


def _attacked(engine: Path, system: System, world: int, tables: int) -> _Attack:
    rng = np.random.default_rng([8, world])
    job, town = population(rng)
    with tempfile.TemporaryDirectory(prefix="countleak-") as folder:
        people, ptable = Path(folder) / "people.csv", Path(folder) / "ptable.csv"
        _write(
            people, ("job", "town"), ((f"J{a}", f"T{b}") for a, b in zip(job, town, strict=True))
        )
        _write(ptable, ("pcv", "ckey", "pvalue"), noise_table())
        words = [people, "own" if system.own else ptable, system.threshold]
        program = Program([str(engine), str(PROGRAM), *map(str, words)])
        try:
            plain = _asked(program, np.arange(TOWNS))
            sums = np.array([_asked(program, half) for half in _halves(rng, tables)])
        finally:
            program.close()
    return _Attack(np.bincount(job, minlength=JOBS), plain, sums)


def _halves(rng: np.random.Generator, tables: int) -> Iterator[NDArray[np.int64]]:
    """Different ways of splitting the towns in two, drawn at random."""
    seen: set[int] = set()
    while len(seen) < tables:
        # The last town is always in the other half: a half and the rest split alike.
        drawn = int(rng.integers(1, 2 ** (TOWNS - 1)))
        if drawn not in seen:
            seen.add(drawn)
            yield np.flatnonzero([drawn >> town & 1 for town in range(TOWNS)])


def _asked(program: Program, towns: NDArray[np.int64]) -> NDArray[np.float64]:
    """The counts of all jobs, as the sum of the answers for these towns and for the others.

    For all towns, they are the plain answers.
    """
    values = [f"T{town}" for town in towns.tolist()]
    message = {"id": program.number(), "by": "job", "column": "town", "values": values}
    reply = program.exchange(message, PATIENCE)
    halves = ("in",) if len(values) == TOWNS else ("in", "out")
    sums = np.zeros(JOBS)
    for half in halves:
        shown = [reply[half].get(f"J{job}", 0) for job in range(JOBS)]
        sums += np.array([np.nan if count is None else count for count in shown], np.float64)
    return sums


def _rows(system: System, attacks: Sequence[_Attack], tables: int) -> Iterator[Row]:
    truth = np.concatenate([each.truth for each in attacks])
    plain = np.concatenate([each.plain for each in attacks])
    for after in (point for point in CHECKPOINTS if point <= tables):
        guess = np.concatenate([each.guesses[after - 1] for each in attacks])
        right = int((guess == truth).sum())
        interval = wilson(right, truth.size)
        published = float((plain == truth).mean())
        yield Row(system.name, after, truth.size, right, right / truth.size, *interval, published)


def _needed(system: System, attacks: Sequence[_Attack]) -> Needed:
    right = np.concatenate([each.guesses == each.truth for each in attacks], axis=1)
    wrong_last = right.shape[0] - np.argmax(~right[::-1], axis=0)
    needed = np.where(right.all(axis=0), 1, wrong_last + 1)
    never = int((~right[-1]).sum())
    median = int(np.median(needed))
    return Needed(
        system.name, right.shape[1], never, median if 2 * never < right.shape[1] else None
    )


def _write(path: Path, names: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
