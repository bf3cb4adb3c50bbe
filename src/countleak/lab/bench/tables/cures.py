"""What it costs to protect tables so that nothing is pinned: our cure beside pytauargus's optimum.

Both begin with the cells of one or two people hidden. pytauargus hides further cells of each table
alone, by its optimal choice; the cure hides further numbers of all tables together. The ledger then
audits both, and both readers know that a hidden number is hidden, and nothing of why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from countleak.attack.noise import Shape
from countleak.attack.rules import Rules
from countleak.audit.releases import TablesAudit, audit_tables
from countleak.audit.releases.cure import cure
from countleak.audit.releases.cure.suppress import Suppress
from countleak.audit.releases.model import Stated
from countleak.lab.bench.tables.argus import Protected, protect
from countleak.lab.bench.tables.residents import (
    FIVE_YEARS,
    OTHER_CUTS,
    cross_table,
    release,
    residents,
)
from countleak.progress import Progress, silent

TABLES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "one table": {"first": FIVE_YEARS},
    "two tables": {"first": FIVE_YEARS, "second": OTHER_CUTS},
}
TIME_LIMIT = 3600.0


@dataclass(frozen=True)
class Protection:
    """What a tool hid beyond the ``primary`` cells, and what the ledger still pins."""

    hidden: int
    people: int
    pinned: int
    seconds: float


@dataclass(frozen=True)
class Compared:
    """One world: the same tables protected by both; ``failure`` says why a cure was not one."""

    tables: str
    world: int
    numbers: int
    primary: int
    pinned_unprotected: int
    theirs: Protection
    ours: Protection
    failure: str | None


def measure_cures(
    worlds: int = 10, people: int = 150, regions: int = 2, progress: Progress = silent
) -> list[Compared]:
    """So many worlds of each kind of release."""
    kinds = [(name, number) for name in TABLES for number in range(worlds)]
    rows = []
    for done, (name, number) in enumerate(kinds):
        progress(done, len(kinds))
        rows.append(compared(name, number, people, regions))
    progress(len(kinds), len(kinds))
    return rows


def compared(name: str, number: int, people: int, regions: int) -> Compared:
    """A world's tables, as both protect them."""
    rng = np.random.default_rng([5, number, people, regions])
    everyone = residents(rng, people, regions)
    theirs: dict[str, Protected] = {}
    bare: list[Stated] = []
    argus: list[Stated] = []
    for table, bands in TABLES[name].items():
        columns = everyone.labels(bands)
        made = theirs[table] = protect(columns, np.ones(people, np.int64))
        counts = cross_table(columns)
        for stated, hidden in ((bare, made.primary), (argus, made.hidden)):
            shown = release(table, list(columns), counts, frozenset(hidden))
            stated.append(Stated(shown, Rules(Shape.EXACT)))
    before = audit_tables(bare, time_limit=TIME_LIMIT)
    begin = perf_counter()
    cured = cure(before, Suppress(), time_limit=TIME_LIMIT)
    seconds = perf_counter() - begin
    beyond = [made.value[cell] for made in theirs.values() for cell in made.secondary]
    alike = audit_tables(argus, time_limit=TIME_LIMIT)
    protect_seconds = sum(made.protect_seconds for made in theirs.values())
    cost = cured.cost
    return Compared(
        name,
        number,
        sum(len(each.release.numbers) for each in bare),
        sum(len(made.primary) for made in theirs.values()),
        _pinned(before),
        Protection(len(beyond), round(sum(beyond)), _pinned(alike), protect_seconds),
        Protection(
            round(cost["numbers hidden"]), round(cost["people in them"]), cured.findings, seconds
        ),
        cured.failure,
    )


def _pinned(audit: TablesAudit) -> int:
    return len(audit.findings) + audit.unproven
