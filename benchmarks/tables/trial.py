"""Two tables of the same people, each protected by pytauargus: what both together give away.

Each world has people of its own. Region x sex x age is published twice, with five-year bands and
with other cuts, all margins included; cells of one or two people are suppressed, and further cells
by pytauargus. It audits each table alone, as offices do; the ledger holds one, the other, and both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.tables.argus import Protected, protect
from benchmarks.tables.residents import (
    FIVE_YEARS,
    OTHER_CUTS,
    Residents,
    cross_table,
    in_bands,
    release,
    residents,
)
from countleak.attack.ledger import Ledger
from countleak.attack.ledger.bounds import Bounder, Interval
from countleak.attack.noise import Shape
from countleak.attack.rules import Rules
from countleak.audit.releases.findings import Group
from countleak.audit.releases.model import Model, Stated, model_of
from countleak.audit.scores import wilson
from countleak.progress import Progress, silent

SMALL = 2
TABLES = {"first": FIVE_YEARS, "second": OTHER_CUTS}


@dataclass(frozen=True)
class Pinned:
    """How many groups have one count left by the first table, by the second, and by both."""

    groups: int
    by_first: int
    by_second: int
    by_both: int


@dataclass(frozen=True)
class World:
    """One pair of tables: what pytauargus's audit says of it, and what the ledger pins.

    ``flagged`` of the ``suppressed`` cells have too narrow an interval by its audit. ``hidden`` are
    the cells of one or two people that the tables suppress, ``finest`` the groups of so many that
    the tables tell apart together. ``wrong`` intervals do not hold the true count: none may be.
    """

    world: int
    suppressed: int
    flagged: int
    hidden: Pinned
    finest: Pinned
    wrong: int
    protect_seconds: float
    audit_seconds: float
    alone_seconds: float
    both_seconds: float


def measure_trial(
    worlds: int = 10, people: int = 3000, regions: int = 20, progress: Progress = silent
) -> list[World]:
    """So many worlds, one after the other."""
    found = []
    for number in range(worlds):
        progress(number, worlds)
        found.append(trial(number, people, regions))
    progress(worlds, worlds)
    return found


def trial(number: int, people: int = 3000, regions: int = 20) -> World:
    """World ``number``, which is the same whenever it is asked for."""
    everyone = residents(np.random.default_rng([number, people, regions]), people, regions)
    ones = np.ones(people, np.int64)
    tables = {name: protect(everyone.labels(bands), ones) for name, bands in TABLES.items()}
    model = model_of([_published(everyone, name, table) for name, table in tables.items()])
    truth = _truth(model, everyone)
    hidden = [
        Group(n.cell, model.ledger.members(row), (0.0, np.inf))
        for row, n in enumerate(model.numbers)
        if tuple(n.cell.values()) in tables[n.table].primary
    ]
    small = np.flatnonzero((truth > 0) & (truth <= SMALL))
    finest = [Group({}, np.array([cell])) for cell in small.tolist()]
    held = [_pinned(part, [*hidden, *finest], truth) for part in _parts(model)]
    counts = np.array([[pinned[: len(hidden)].sum(), pinned.sum()] for pinned, _, _ in held])
    return World(
        number,
        sum(len(table.hidden) for table in tables.values()),
        sum(cell.flagged for table in tables.values() for cell in table.audited.values()),
        Pinned(len(hidden), *counts[:, 0].tolist()),
        Pinned(len(finest), *(counts[:, 1] - counts[:, 0]).tolist()),
        sum(wrong for _, wrong, _ in held),
        sum(table.protect_seconds for table in tables.values()),
        sum(table.audit_seconds for table in tables.values()),
        held[0][2] + held[1][2],
        held[2][2],
    )


def _published(everyone: Residents, name: str, table: Protected) -> Stated:
    columns = everyone.labels(TABLES[name])
    counts = cross_table(columns)
    return Stated(release(name, list(columns), counts, table.hidden), Rules(Shape.EXACT))


def _truth(model: Model, everyone: Residents) -> NDArray[np.int64]:
    """The people in each of the finest groups."""
    columns = everyone.labels(FIVE_YEARS)
    places = []
    for axis in model.axes:
        labels = in_bands(everyone.age, axis.groups) if axis.name == "age" else columns[axis.name]
        where = {name: at for at, name in enumerate(axis.groups)}
        places.append(np.array([where[label] for label in labels.tolist()]))
    shape = tuple(len(axis.groups) for axis in model.axes)
    cells = np.ravel_multi_index(tuple(places), shape)
    return np.bincount(cells, minlength=model.ledger.cells)


def _parts(model: Model) -> Iterator[Ledger]:
    """What the first table says of the finest groups, what the second does, and both."""
    ledger = model.ledger
    of = np.array([number.table for number in model.numbers])
    for name in TABLES:
        rows = np.flatnonzero(of == name)
        yield Ledger(csr_array(ledger.A[rows]), ledger.low[rows], ledger.high[rows])
    yield ledger


def _pinned(
    ledger: Ledger, groups: Sequence[Group], truth: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], int, float]:
    """Which groups have one count left, how many of those a wrong one, and the seconds it took."""
    begin = perf_counter()
    bounder = Bounder(ledger)
    intervals = [_interval(bounder, group, SMALL) for group in groups]
    seconds = perf_counter() - begin
    pinned = np.array([each is not None and each.pinned for each in intervals], np.bool_)
    wrong = sum(
        each is not None and not each.low <= truth[group.cells].sum() <= each.high
        for group, each in zip(groups, intervals, strict=True)
    )
    return pinned, wrong, seconds


def _interval(bounder: Bounder, group: Group, small: int) -> Interval | None:
    """What the group's count can be; None where it is no secret, being large or already known."""
    if group.stated is None and bounder.may_exceed(group.cells, small):
        return None
    return bounder.interval(group.cells)


@dataclass(frozen=True)
class Share:
    """Of all worlds' groups of a kind: how many each holder pins, and Wilson's interval."""

    groups: str
    held: str
    pinned: int
    of: int
    share: float
    low: float
    high: float


def shares(worlds: Sequence[World]) -> list[Share]:
    """The share pinned by each holder, of hidden cells and of the finest groups."""
    rows = []
    for kind, name in (("hidden", "suppressed cells"), ("finest", "groups told apart")):
        for field in fields(Pinned)[1:]:
            counts = [getattr(world, kind) for world in worlds]
            pinned = sum(getattr(each, field.name) for each in counts)
            total = sum(each.groups for each in counts)
            held = field.name.removeprefix("by_")
            rows.append(Share(name, held, pinned, total, pinned / total, *wilson(pinned, total)))
    return rows
