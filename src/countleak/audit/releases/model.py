"""Published tables as one system of equations over the finest groups that they tell apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.noise import Range
from countleak.attack.rules import Rules
from countleak.audit.releases.axes import Axis, axis_of
from countleak.audit.releases.reading import ANY, Published, Release
from countleak.errors import InputError

# So many of the finest groups are reckoned with.
MOST_CELLS = 5_000_000
Trees = Mapping[str, Sequence[Mapping[str, Sequence[str]]]]


@dataclass(frozen=True)
class Stated:
    """A release, and the ``rules`` by which its counts became what was published.

    ``inferred`` says in words what of them was read off the table itself.
    """

    release: Release
    rules: Rules
    inferred: tuple[str, ...] = ()


@dataclass(frozen=True)
class Number:
    """A published number: of which table, of which cell, and what was shown."""

    table: str
    cell: Mapping[str, str]
    value: int | None

    def __str__(self) -> str:
        where = ", ".join(self.cell.values()) or "all"
        shown = "" if self.value is None else f" ({self.value})"
        return f"{self.table}: {where}{shown}"


@dataclass(frozen=True, eq=False)
class Model:
    """(L) for some releases: the ``axes`` that span its cells, and the ``numbers`` of its rows."""

    axes: tuple[Axis, ...]
    ledger: Ledger
    numbers: tuple[Number, ...]

    def cells_of(self, labels: Mapping[str, Sequence[int]]) -> NDArray[np.int64]:
        """The cells where each axis named is in one of the groups given, by position."""
        return _crossed(self.axes, labels)

    def named(self, places: Mapping[str, int]) -> dict[str, str]:
        """The groups at some positions, by the name of their axis."""
        by_name = {axis.name: axis for axis in self.axes}
        return {name: by_name[name].groups[at] for name, at in places.items()}


def model_of(stated: Sequence[Stated], trees: Trees | None = None) -> Model:
    """All that was published, as one system."""
    if not stated:
        raise InputError("there is no table; name at least one file")
    axes = _axes([each.release for each in stated], trees or {})
    size = prod(len(axis.groups) for axis in axes)
    if size > MOST_CELLS:
        sizes = ", ".join(f"{axis.name} {len(axis.groups)}" for axis in axes)
        raise InputError(
            f"the tables tell {size:.2g} groups apart ({sizes}), more than {MOST_CELLS:.2g}; leave "
            "out tables or dimensions"
        )
    by_name = {axis.name: axis for axis in axes}
    members: list[NDArray[np.int64]] = []
    numbers: list[Number] = []
    ends: list[tuple[float, float]] = []
    for each in stated:
        for number in each.release.numbers:
            cell = dict(zip(each.release.dimensions, number.labels, strict=True))
            places = {name: by_name[name].members[label] for name, label in cell.items()}
            members.append(_crossed(axes, places))
            numbers.append(Number(each.release.name, cell, number.value))
            ends.append(ends_of(number, each.rules))
    indptr = np.cumsum([0, *(part.size for part in members)])
    cells = np.concatenate(members)
    A = csr_array((np.ones(cells.size), cells, indptr), shape=(len(members), size))
    low, high = np.array(ends).T
    return Model(tuple(axes), Ledger(A, low.copy(), high.copy()), tuple(numbers))


def ends_of(number: Published, rules: Rules) -> tuple[float, float]:
    """What the count behind a published number can be, by the rules."""
    hidden = rules.suppressed if isinstance(rules.suppressed, Range) else None
    if number.value is None:
        known = number.among or hidden
        if known is None or known == ANY:
            return 0.0, inf
        return float(known.low), float(known.high)
    limits = rules.limits()
    if limits is None or limits.reach is None:
        return 0.0, inf
    low = max(0.0, float(ceil(number.value - limits.reach)))
    high = float(floor(number.value + limits.reach))
    if hidden is not None and hidden.low <= low <= hidden.high:
        # A count that is suppressed was not shown.
        low = min(high, hidden.high + 1.0) if number.value > hidden.high else low
    return low, high


def _axes(releases: Sequence[Release], trees: Trees) -> list[Axis]:
    labels: dict[str, list[str]] = {}
    for release in releases:
        for at, name in enumerate(release.dimensions):
            labels.setdefault(name, []).extend(n.labels[at] for n in release.numbers)
    return [axis_of(name, found, trees.get(name, ())) for name, found in labels.items()]


def _crossed(axes: Sequence[Axis], places: Mapping[str, Sequence[int]]) -> NDArray[np.int64]:
    cells = np.zeros(1, np.int64)
    for axis in axes:
        at = np.asarray(places.get(axis.name, axis.everything), np.int64)
        cells = (cells[:, None] * len(axis.groups) + at).ravel()
    return cells
