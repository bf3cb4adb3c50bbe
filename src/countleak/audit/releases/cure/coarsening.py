"""The cure by coarsening: two labels of a table become one, again and again."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.bounds import Bounder
from countleak.attack.noise import Range
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.axes import Axis, band_of, leaves_of
from countleak.audit.releases.cure import Task
from countleak.audit.releases.description import Described
from countleak.audit.releases.formats import Why
from countleak.audit.releases.model import Stated
from countleak.audit.releases.reading import Published, Release

EVERYONE = "Total"
# Of which table and dimension.
Label = tuple[str, str, str]


@dataclass(frozen=True)
class Pair:
    """Two labels of a dimension of a table, to be one."""

    table: str
    dimension: str
    labels: tuple[str, str]

    @property
    def label(self) -> str:
        """What both are called together: a band where they are neighbouring bands."""
        first, second = self.labels
        low, high = band_of(first), band_of(second)
        if low is None or high is None:
            return f"{first} or {second}"
        return f"{low.low}+" if high.high is None else f"{low.low}-{high.high}"


@dataclass(frozen=True)
class Coarsen:
    """Labels are merged, only neighbours if bands: those that proofs name most per number."""

    name: str = "coarsen"

    def changed(
        self, before: Described, described: Described, audit: TablesAudit
    ) -> Described | None:
        axes = audit.model.axes
        # What was rounded or noisy adds up to nothing that the rules can state.
        pairs = [p for stated in described.tables if stated.exact for p in _pairs(stated, axes)]
        if not pairs:
            return None
        named: Counter[Label] = Counter()
        for finding in audit.findings:
            for term in (*finding.at_most, *finding.at_least):
                number = term.number
                named.update((number.table, *labelled) for labelled in number.cell.items())
        values = _values(described)

        def worth(pair: Pair) -> tuple[float, float]:
            both = [values[pair.table, pair.dimension, label] for label in pair.labels]
            used = sum(named[pair.table, pair.dimension, label] for label in pair.labels)
            return used / min(map(len, both)), -sum(map(sum, both))

        found = merged(described, max(pairs, key=worth), audit)
        return found if all(each.release.numbers for each in found.tables) else None

    def pruned(self, before: Described, after: Described, task: Task) -> Described:
        # Labels are merged one pair at a time, and none without a finding.
        return after

    def changes(self, before: Described, after: Described) -> list[dict[str, Any]]:
        found = []
        for old, new in zip(before.tables, after.tables, strict=True):
            for at, name in enumerate(old.release.dimensions):
                kept = {number.labels[at] for number in new.release.numbers}
                gone = dict.fromkeys(number.labels[at] for number in old.release.numbers)
                lost = [label for label in gone if label not in kept]
                made = [label for label in sorted(kept) if label not in gone]
                if lost:
                    into = f" into {', '.join(made)}" if made else ""
                    change = f"merge {name} {', '.join(lost)} of {old.release.name}{into}"
                    found.append(
                        {"table": old.release.name, "dimension": name, "labels": lost,
                         "into": made, "change": change}
                    )  # fmt: skip
        return found


def merged(described: Described, pair: Pair, audit: TablesAudit) -> Described:
    """The tables, with two labels of one of them added up."""
    tables = tuple(
        replace(each, release=_merged(each.release, pair, _Sums(each, pair, audit)))
        if each.release.name == pair.table
        else each
        for each in described.tables
    )
    trees = dict(described.trees)
    if band_of(pair.label) is None:
        lists = trees.get(pair.dimension, ())
        parts = tuple(leaf for label in pair.labels for leaf in leaves_of(label, lists))
        made = {pair.label: parts}
        if not lists:
            # Where there are code lists, every label has to be in one.
            axis = next(axis for axis in audit.model.axes if axis.name == pair.dimension)
            made[EVERYONE] = axis.groups
        trees[pair.dimension] = (*lists, made)
    return Described(tables, trees)


class _Sums:
    """What two labels add up to, as far as it is known and nobody's secret."""

    def __init__(self, stated: Stated, pair: Pair, audit: TablesAudit):
        self._model, self._small = audit.model, audit.small
        self._suppressed = stated.rules.suppressed
        self._bounder = Bounder(audit.model.ledger)
        self._dimensions = stated.release.dimensions
        self._members = {axis.name: axis.members for axis in audit.model.axes}

    def of(self, rows: Sequence[Published]) -> float | None:
        """The count of some rows together; None where it stays hidden."""
        values = [row.value for row in rows if row.value is not None]
        if len(values) == len(rows):
            return None if self._hides(sum(values)) else sum(values)
        interval = self._bounder.interval(np.concatenate([self._cells(row) for row in rows]))
        safe = interval.low == 0 or interval.low > self._small
        return interval.low if interval.pinned and safe and not self._hides(interval.low) else None

    def _hides(self, count: float) -> bool:
        """Whether the rule of the table is not to show such a count."""
        rule = self._suppressed
        return isinstance(rule, Range) and rule.low <= count <= rule.high

    def _cells(self, row: Published) -> NDArray[np.int64]:
        named = zip(self._dimensions, row.labels, strict=True)
        return self._model.cells_of({name: self._members[name][label] for name, label in named})


def _merged(release: Release, pair: Pair, sums: _Sums) -> Release:
    at = release.dimensions.index(pair.dimension)
    rows: defaultdict[tuple[str, ...], list[Published]] = defaultdict(list)
    for number in release.numbers:
        label = pair.label if number.labels[at] in pair.labels else number.labels[at]
        labels = (*number.labels[:at], label, *number.labels[at + 1 :])
        rows[labels].append(number)
    numbers = []
    for labels, some in rows.items():
        if labels[at] != pair.label:
            numbers += some
        elif len(some) == 2:
            value = sums.of(some)
            numbers.append(Published(labels, value, why=None if value is not None else Why.UNKNOWN))
    return replace(release, numbers=tuple(numbers))


def _values(described: Described) -> Mapping[Label, list[float]]:
    """The counts under every label of every table; 0 for one that is hidden."""
    found: defaultdict[Label, list[float]] = defaultdict(list)
    for stated in described.tables:
        release = stated.release
        for number in release.numbers:
            for labelled in zip(release.dimensions, number.labels, strict=True):
                found[release.name, *labelled].append(number.value or 0)
    return found


def _pairs(stated: Stated, axes: tuple[Axis, ...]) -> list[Pair]:
    """The labels of a table that can be merged: of nobody in common, and neighbours if bands."""
    by_name = {axis.name: axis for axis in axes}
    found = []
    for at, name in enumerate(stated.release.dimensions):
        members = by_name[name].members
        labels = list(dict.fromkeys(number.labels[at] for number in stated.release.numbers))
        sets = {label: set(members[label]) for label in labels}
        finest = [a for a in labels if not any(sets[b] < sets[a] for b in labels)]
        bands = {label: band for label in finest if (band := band_of(label)) is not None}
        if len(bands) == len(finest):
            finest.sort(key=lambda label: bands[label].low)
            touching = (
                (a, b)
                for a, b in pairwise(finest)
                if (high := bands[a].high) is not None and high + 1 == bands[b].low
            )
            found += [Pair(stated.release.name, name, both) for both in touching]
        else:
            disjoint = ((a, b) for a, b in combinations(finest, 2) if not sets[a] & sets[b])
            found += [Pair(stated.release.name, name, both) for both in disjoint]
    return found
