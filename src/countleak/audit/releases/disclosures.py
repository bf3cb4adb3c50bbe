"""Groups whose members all share one value: to know that someone is in one is to know theirs.

No count needs to be small for it. A group discloses a value where somebody is in it for sure, and
nobody with any other value can be; both sides have a proof from published numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.bounds import Bounder, Interval
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.axes import Axis
from countleak.audit.releases.findings import Finding, Group
from countleak.errors import InputError


@dataclass(frozen=True)
class Disclosure:
    """A group of ``low`` to ``high`` people, one or more, who all have the ``value``.

    ``others`` proves that nobody in it has another value, ``members`` that somebody is in it.
    """

    cell: Mapping[str, str]
    secret: str
    value: str
    low: int
    high: float
    others: Finding
    members: Finding

    @property
    def sentence(self) -> str:
        """What is disclosed, and why."""
        who = ", ".join(self.cell.values()) or "all"
        return (
            f"{who}: all have {self.secret} {self.value}; {self.others.equation}; "
            f"{self.members.equation}"
        )

    def record(self) -> dict[str, Any]:
        """The disclosure as plain fields."""
        return {
            "cell": dict(self.cell),
            "secret": self.secret,
            "value": self.value,
            "low": self.low,
            "high": self.high if np.isfinite(self.high) else None,
            "others": self.others.record(),
            "members": self.members.record(),
        }


@dataclass(frozen=True)
class Disclosures:
    """All groups that disclose a ``secret``, but for those inside another one.

    ``unproven`` counts what only whole numbers show; ``exact`` says whether time sufficed.
    """

    secret: str
    found: tuple[Disclosure, ...]
    unproven: int
    exact: bool

    def __str__(self) -> str:
        lines = [f"Groups whose members all have one {self.secret}: {len(self.found)}."]
        lines += [f"  {each.sentence}" for each in self.found]
        if self.unproven:
            lines.append(f"{self.unproven} more follow from whole numbers, without a short proof.")
        if not self.exact:
            lines.append("Time ran out: there may be more.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The disclosures as plain fields."""
        return {
            "secret": self.secret,
            "found": [each.record() for each in self.found],
            "unproven": self.unproven,
            "exact": self.exact,
        }


def disclosures(audit: TablesAudit, secret: str, *, time_limit: float = 60.0) -> Disclosures:
    """The groups of the other dimensions in which everyone has the same ``secret``."""
    axis = axis_named(audit.model.axes, secret)
    if len(axis.groups) < 2:
        raise InputError(f"all tables have one value of {secret!r}; name another dimension")
    bounder = Bounder(audit.model.ledger, time_limit)
    possible, exact = possible_cells(bounder, audit.model.ledger.cells)
    others = [each for each in audit.model.axes if each is not axis]
    witness = audit.witness()
    found: list[Disclosure] = []
    unproven, told = 0, _Told()
    for group in groups_by(audit, others):
        values = np.unique(places_on(audit, axis, group.cells[possible[group.cells]]))
        if values.size != 1:
            continue
        interval = bounder.interval(group.cells)
        exact &= interval.exact
        value = axis.groups[int(values[0])]
        if interval.low < 1 or told.already(group.cell, value):
            continue
        rest = group.cells[~np.isin(places_on(audit, axis, group.cells), values)]
        nobody = Group({**group.cell, secret: f"not {value}"}, rest)
        proofs = (
            witness.finding(nobody, Interval(0, 0, True)),
            witness.finding(Group(group.cell or {"": "all"}, group.cells), interval)
            if np.isfinite(interval.high)
            else None,
        )
        if proofs[0] is None or proofs[1] is None:
            unproven += 1
            continue
        ends = interval.low, interval.high
        found.append(Disclosure(group.cell, secret, value, *ends, proofs[0], proofs[1]))
    return Disclosures(secret, tuple(found), unproven, exact)


def axis_named(axes: Sequence[Axis], name: str) -> Axis:
    """The dimension of that name."""
    for axis in axes:
        if axis.name == name:
            return axis
    there = ", ".join(axis.name for axis in axes)
    raise InputError(f"no table has a dimension {name!r}; there are {there}")


def possible_cells(bounder: Bounder, cells: int) -> tuple[NDArray[np.bool_], bool]:
    """Which cells (n,) can have anybody in them, and whether the rest certainly cannot.

    A cell of which time was too short to tell counts as possible.
    """
    possible = bounder.limits.high > 0
    exact = True
    for cell in np.flatnonzero(possible).tolist():
        one = np.array([cell])
        if not bounder.may_exceed(one, 0):
            interval = bounder.interval(one)
            possible[cell] = interval.high > 0
            exact &= interval.exact or interval.high == 0
    return possible[:cells], exact


def groups_by(audit: TablesAudit, axes: Sequence[Axis]) -> Iterator[Group]:
    """Every group by some of the axes, those by the fewest first."""
    for size in range(len(axes) + 1):
        for some in combinations(axes, size):
            for places in product(*(range(len(axis.groups)) for axis in some)):
                named = {axis.name: at for axis, at in zip(some, places, strict=True)}
                cells = audit.model.cells_of({name: (at,) for name, at in named.items()})
                yield Group(audit.model.named(named), cells)


def places_on(audit: TablesAudit, axis: Axis, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """In which group of the axis each cell is."""
    shape = tuple(len(each.groups) for each in audit.model.axes)
    at = [each.name for each in audit.model.axes].index(axis.name)
    return np.asarray(np.unravel_index(cells, shape)[at], np.int64)


class _Told:
    """Groups that were found, so that what is inside one is not told again."""

    def __init__(self) -> None:
        self._found: set[tuple[frozenset[tuple[str, str]], str]] = set()

    def already(self, cell: Mapping[str, str], value: str) -> bool:
        """Whether the group is inside one that has the same value; it is kept if not."""
        labels = list(cell.items())
        for size in range(len(labels) + 1):
            for some in combinations(labels, size):
                if (frozenset(some), value) in self._found:
                    return True
        self._found.add((frozenset(labels), value))
        return False
