"""Published tables as one system of equations over the finest groups that they tell apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from countleak.attack.ledger import Ledger
from countleak.attack.noise import Range
from countleak.attack.preimages import (
    counts_behind,
    counts_hidden,
    counts_kept_back,
    has_gaps,
)
from countleak.attack.rules import Rules
from countleak.audit.releases.axes import Axis, axis_of
from countleak.audit.releases.formats import Why
from countleak.audit.releases.reading import Published, Release
from countleak.errors import InputError

# So many of the finest groups are reckoned with.
MOST_CELLS = 5_000_000
Trees = Mapping[str, Sequence[Mapping[str, Sequence[str]]]]


@dataclass(frozen=True)
class Stated:
    """A release, and the ``rules`` by which its counts became what was published.

    ``inferred`` says in words what of them was read off the table itself, or is not certain. Where
    noise has no bound, ``within`` is how far numbers are from their counts, if that is so.
    """

    release: Release
    rules: Rules
    inferred: tuple[str, ...] = ()
    within: float | None = None

    @property
    def exact(self) -> bool:
        """Whether the numbers that are shown are the counts themselves."""
        limits = self.rules.limits()
        return limits is not None and limits.reach == 0


@dataclass(frozen=True)
class Number:
    """A published number: of which table, of which cell, and what was shown."""

    table: str
    cell: Mapping[str, str]
    value: float | None

    def __str__(self) -> str:
        where = ", ".join(self.cell.values()) or "all"
        shown = "" if self.value is None else f" ({self.value})"
        return f"{self.table}: {where}{shown}"


@dataclass(frozen=True, eq=False)
class Model:
    """(L) for some releases: the ``axes`` that span its cells, and the ``numbers`` of its rows.

    In the tables ``with_gaps`` some number excludes counts between those that it allows, which a
    row of (L) cannot say.
    """

    axes: tuple[Axis, ...]
    ledger: Ledger
    numbers: tuple[Number, ...]
    with_gaps: tuple[str, ...] = ()

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
    numbers: list[Number] = []
    ends: list[tuple[float, float]] = []
    with_gaps: dict[str, None] = {}
    for each in stated:
        dimensions = each.release.dimensions
        for number in each.release.numbers:
            cell = dict(zip(dimensions, number.labels, strict=True))
            numbers.append(Number(each.release.name, cell, number.value))
            ends.append(ends_of(number, each))
            if number.value is not None and has_gaps(each.rules, ends[-1]):
                with_gaps[each.release.name] = None
    A = csr_array(vstack([_sums(axes, each.release) for each in stated], format="csr"))
    low, high = np.array(ends).T
    ledger = Ledger(A, low.copy(), high.copy())
    return Model(tuple(axes), ledger, tuple(numbers), tuple(with_gaps))


def ends_of(number: Published, stated: Stated) -> tuple[float, float]:
    """What the count behind a published number can be, by the rules."""
    rules = stated.rules
    if number.value is not None:
        ends = counts_behind(rules, number.value, stated.within)
        if ends is None:
            named = ", ".join(number.labels) or "all"
            raise InputError(
                f"{stated.release.name}: {named} ({number.value}) is a number that no count gives, "
                f"if {' and '.join(rules.words)}; state other rules"
            )
        return ends
    if number.among is not None:
        return _marked(number.among, rules)
    match number.why:
        case Why.UNKNOWN:
            return 0.0, inf
        case Why.SECONDARY:
            return counts_kept_back(rules)
    return counts_hidden(rules, stated.within)


def _marked(among: Range, rules: Rules) -> tuple[float, float]:
    """What a mark like <5 says, and the rule with it: where zeros are shown, it is from 1."""
    low, high = float(among.low), float(among.high)
    hidden = counts_hidden(rules)
    both = max(low, hidden[0]), min(high, hidden[1])
    return both if both[0] <= both[1] else (low, high)


def _axes(releases: Sequence[Release], trees: Trees) -> list[Axis]:
    labels: dict[str, list[str]] = {}
    for release in releases:
        for at, name in enumerate(release.dimensions):
            labels.setdefault(name, []).extend(n.labels[at] for n in release.numbers)
    return [axis_of(name, found, trees.get(name, ())) for name, found in labels.items()]


def _sums(axes: Sequence[Axis], release: Release) -> csr_array:
    """A row per number of a release, of 1 at each of the cells that it adds up.

    All numbers are crossed with one axis after the other: a cell so far becomes as many as the
    number's label has groups of the axis.
    """
    count = len(release.numbers)
    cells, owner = np.zeros(count, np.int64), np.arange(count)
    for axis in axes:
        if axis.name in release.dimensions:
            at = release.dimensions.index(axis.name)
            labels = list(axis.members)
            place = {label: i for i, label in enumerate(labels)}
            chosen = np.array([place[number.labels[at]] for number in release.numbers], np.int64)
            groups = [np.array(axis.members[label], np.int64) for label in labels]
        else:
            chosen, groups = np.zeros(count, np.int64), [np.array(axis.everything, np.int64)]
        sizes = np.array([each.size for each in groups])
        flat, starts = np.concatenate(groups), np.cumsum(sizes) - sizes
        of = chosen[owner]
        repeats = sizes[of]
        nth = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        cells = (
            np.repeat(cells * len(axis.groups), repeats)
            + flat[np.repeat(starts[of], repeats) + nth]
        )
        owner = np.repeat(owner, repeats)
    indptr = np.searchsorted(owner, np.arange(count + 1))
    size = prod(len(axis.groups) for axis in axes)
    return csr_array((np.ones(cells.size), cells, indptr), shape=(count, size))


def _crossed(axes: Sequence[Axis], places: Mapping[str, Sequence[int]]) -> NDArray[np.int64]:
    cells = np.zeros(1, np.int64)
    for axis in axes:
        at = np.asarray(places.get(axis.name, axis.everything), np.int64)
        cells = (cells[:, None] * len(axis.groups) + at).ravel()
    return cells
