"""One table at a time: our intervals of suppressed cells beside those of pytauargus's own audit.

Its audit knows the published numbers, and that no cell is smaller than the smallest one or larger
than the largest, and solves two linear programs per cell. The ledger is told the same, and that
counts are whole; and then what else a reader of the table knows: that no empty cell is hidden, and
which cells broke the rule.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.bounds import Bounder, Interval
from countleak.attack.noise import Range, Shape
from countleak.attack.rules import Rules
from countleak.audit.releases.model import Stated, model_of
from countleak.audit.releases.reading import Published, Release
from countleak.lab.bench.tables.argus import EDGE, Audited, Cell, Protected, protect
from countleak.lab.bench.tables.residents import FIVE_YEARS, OTHER_CUTS, residents
from countleak.progress import Progress, silent

SMALL = 2
Columns = Mapping[str, NDArray[np.str_]]


@dataclass(frozen=True)
class Example:
    """A table to protect: by what columns, of which sums, and by which safety rule."""

    name: str
    columns: Columns
    weight: NDArray[np.int64]
    rule: str

    @property
    def counts(self) -> bool:
        """Whether it is a table of people, of whom a rule hides one or two."""
        return bool((self.weight == 1).all())


@dataclass(frozen=True)
class Row:
    """One table: how many intervals of its ``suppressed`` cells are equal, tighter or wider.

    ``pinned`` of them have one count left; ``pinned_not_empty`` if no empty cell is hidden, and
    ``pinned_marked`` if the table also shows which cells have one or two people. Those two are
    missing where the table does not count people.
    """

    table: str
    suppressed: int
    equal: int
    tighter: int
    wider: int
    pinned: int
    pinned_not_empty: int | None
    pinned_marked: int | None
    audit_seconds: float
    ledger_seconds: float


def measure_single(worlds: int = 10, progress: Progress = silent) -> list[Row]:
    """The package's own examples, and tables of so many worlds."""
    every = [*own_examples(), *(example for k in range(worlds) for example in generated(k))]
    # Compiled code is loaded before the clock counts.
    compared(every[0])
    rows = []
    for done, example in enumerate(every):
        progress(done, len(every))
        rows.append(compared(example))
    progress(len(every), len(every))
    return rows


def own_examples() -> Iterator[Example]:
    """The tables of pytauargus 0.6's README and of its tests, in whole units.

    Those that need the data files of its repository are not among them.
    """
    regions = np.repeat(["North", "South"], 6)
    sectors = np.tile(np.repeat(["Retail", "Services"], 3), 2)
    turnover = np.array([100, 5, 5, 10, 10, 10, 20, 20, 20, 30, 30, 30])
    columns = {"Region": regions, "Sector": sectors}
    yield Example("its README: region x sector", columns, turnover, "NK(2,75)")
    columns = {"Region": np.array(["Os", "Os", "Ws", "Ws"]), "Size": np.array(list("1212"))}
    yield Example("its tests: region x size", columns, np.array([10, 20, 30, 40]), "P(25,1000)")


def generated(number: int) -> Iterator[Example]:
    """Tables of generated residents: two dimensions, three, and three where whole numbers tell."""
    everyone = residents(np.random.default_rng([3, number]))
    ones = np.ones(everyone.age.size, np.int64)
    cuts = everyone.labels(OTHER_CUTS)
    flat = {"region": cuts["region"], "age": cuts["age"]}
    yield Example("region x age", flat, ones, "FREQ(3,30)")
    yield Example("region x sex x age", everyone.labels(FIVE_YEARS), ones, "FREQ(3,30)")
    rng = np.random.default_rng([4, number])
    cube = {name: rng.choice([f"{name}{k}" for k in range(5)], 300) for name in "xyz"}
    yield Example("5 x 5 x 5", cube, np.ones(300, np.int64), "FREQ(3,30)")


def compared(example: Example) -> Row:
    """The example's table, protected and audited by the package, and by the ledger."""
    table = protect(example.columns, example.weight, example.rule)
    ours, seconds = _intervals(example, table, lambda cell: _whole(table.audited[cell]))
    verdicts = [_verdict(ours[cell], theirs) for cell, theirs in table.audited.items()]
    not_empty = marked = None
    if example.counts:
        most = int(max(table.value.values()))
        not_empty = _pinned(example, table, lambda cell: Range(1, most))
        of = {True: Range(1, SMALL), False: Range(SMALL + 1, most)}
        marked = _pinned(example, table, lambda cell: of[cell in table.primary])
    return Row(
        example.name,
        len(ours),
        verdicts.count("equal"),
        verdicts.count("tighter"),
        verdicts.count("wider"),
        sum(each.pinned for each in ours.values()),
        not_empty,
        marked,
        table.audit_seconds,
        seconds,
    )


def _pinned(example: Example, table: Protected, among: Callable[[Cell], Range]) -> int:
    return sum(each.pinned for each in _intervals(example, table, among)[0].values())


def _intervals(
    example: Example, table: Protected, among: Callable[[Cell], Range]
) -> tuple[dict[Cell, Interval], float]:
    """Every suppressed cell's interval, if its count is known to be ``among`` some; seconds."""
    numbers = tuple(
        Published(cell, None, among(cell))
        if cell in table.hidden
        else Published(cell, round(value))
        for cell, value in table.value.items()
    )
    begin = perf_counter()
    published = Release(example.name, tuple(example.columns), "sum", numbers)
    ledger = model_of([Stated(published, Rules(Shape.EXACT))]).ledger
    bounder = Bounder(ledger)
    found = {
        number.labels: bounder.interval(ledger.members(row))
        for row, number in enumerate(numbers)
        if number.value is None
    }
    return found, perf_counter() - begin


def _whole(cell: Audited) -> Range:
    """What the audit grants beforehand, in whole numbers."""
    low, high = cell.beforehand
    return Range(ceil(low), floor(high))


def _verdict(ours: Interval, theirs: Audited) -> str:
    above, below = ours.low - theirs.low, theirs.high - ours.high
    if min(above, below) < -EDGE:
        return "wider"
    return "tighter" if max(above, below) > EDGE else "equal"
