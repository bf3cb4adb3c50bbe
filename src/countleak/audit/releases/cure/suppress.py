"""The cure by suppression: the fewest, smallest numbers that all proofs need are hidden."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from countleak.attack.ledger.bounds import Interval
from countleak.attack.ledger.component import Clock
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.cure import Task, hidden_numbers
from countleak.audit.releases.cure.freeing import Freeing
from countleak.audit.releases.cure.pruning import Opening
from countleak.audit.releases.description import Described
from countleak.audit.releases.findings import Finding, Group, tells
from countleak.audit.releases.formats import Why
from countleak.audit.releases.model import Model, Number, Stated, model_of

# Of which table, and its labels.
Key = tuple[str, tuple[str, ...]]
# So many times as much as the largest number does a zero cost.
DEARER = 2.0


@dataclass(frozen=True)
class Suppress:
    """Numbers are hidden: those that together let every group that was found have other counts.

    ``by_people`` weighs a number by its count, so that small ones go first; else all weigh the
    same. Zeros are the dearest: many readers know them anyway. Where programs in fractions see
    nothing to hide, the numbers that occur in the most and the shortest proofs are.
    """

    by_people: bool = True
    name: str = "suppress"

    def changed(
        self, before: Described, described: Described, audit: TablesAudit
    ) -> Described | None:
        chosen = self._freeing(audit)
        if not chosen:
            needed = [_open(finding) for finding in audit.findings]
            if not audit.findings:
                needed = [_around(audit.model, group) for group, _ in pinned_groups(audit)]
            chosen = self._hitting([numbers for numbers in needed if numbers])
        return hide(described, chosen) if chosen else None

    def pruned(self, before: Described, after: Described, task: Task) -> Described:
        lost = hidden_numbers(before, after)
        model, shown_before = (model_of(each.tables, each.trees) for each in (after, before))
        opening = Opening(model, task.small, Clock(task.deadline))
        ledger = shown_before.ledger
        every = zip(shown_before.numbers, ledger.low.tolist(), ledger.high.tolist(), strict=True)
        ends = {_key(number): (low, high) for number, low, high in every}
        rows = {_key(number): row for row, number in enumerate(model.numbers)}
        shown = []
        for number in sorted(lost, key=lambda number: -(number.value or 0)):
            if task.left <= 0:
                break
            if opening.show(rows[_key(number)], *ends[_key(number)]):
                shown.append(_key(number))
        return show(before, after, shown)

    def changes(self, before: Described, after: Described) -> list[dict[str, Any]]:
        return [
            {"table": n.table, "cell": dict(n.cell), "value": n.value, "change": f"hide {n}"}
            for n in hidden_numbers(before, after)
        ]

    def _freeing(self, audit: TablesAudit) -> list[Key]:
        """Numbers that together let all groups that are given away have other counts."""
        numbers = audit.model.numbers
        shown = np.array([number.value is not None for number in numbers])
        weight = np.array([float(self._cost(number)) for number in numbers])
        zero = np.array([number.value == 0 for number in numbers])
        weight[zero] = DEARER * weight.max()
        freeing = Freeing(audit.model.ledger, shown, weight)
        for group, interval in pinned_groups(audit):
            freeing.free(group.cells, interval.low, int(interval.high))
        return [_key(numbers[row]) for row in freeing.hides]

    def _hitting(self, needed: Sequence[Sequence[Number]]) -> list[Key]:
        """Numbers of which every proof needs at least one, the cheapest first."""
        left = {at: {_key(n): self._cost(n) for n in some} for at, some in enumerate(needed)}
        chosen = []
        while left:
            score: Counter[Key] = Counter()
            for numbers in left.values():
                for key, cost in numbers.items():
                    score[key] += 1 / (len(numbers) * cost)  # type: ignore[assignment]
            best = max(sorted(score), key=lambda key: score[key])
            chosen.append(best)
            left = {at: numbers for at, numbers in left.items() if best not in numbers}
        return chosen

    def _cost(self, number: Number) -> float:
        return max(1, number.value or 0) if self.by_people else 1


def pinned_groups(audit: TablesAudit) -> list[tuple[Group, Interval]]:
    """The groups that are given away, whether a proof can be printed or not."""
    pairs = zip(audit.groups, audit.intervals, strict=True)
    return [(group, interval) for group, interval in pairs if tells(group, interval, audit.small)]


def _open(finding: Finding) -> list[Number]:
    """The numbers of a proof that are shown; zeros only where there are no others."""
    terms = {str(t.number): t.number for t in (*finding.at_most, *finding.at_least)}
    return _without_zeros([number for number in terms.values() if number.value is not None])


def _around(model: Model, group: Group) -> list[Number]:
    """The smallest shown numbers that count someone of the group."""
    by_cell = model.ledger.A.T.tocsr()
    rows = np.unique(by_cell[group.cells].indices).tolist()
    return _without_zeros([n for n in map(model.numbers.__getitem__, rows) if n.value is not None])


def _without_zeros(numbers: list[Number]) -> list[Number]:
    return [number for number in numbers if number.value] or numbers


def _key(number: Number) -> Key:
    return number.table, tuple(number.cell.values())


def hide(described: Described, keys: Iterable[Key]) -> Described:
    """The tables without some numbers."""
    gone = set(keys)

    def less(stated: Stated) -> Stated:
        name, release = stated.release.name, stated.release
        numbers = tuple(
            replace(n, value=None, why=Why.UNKNOWN) if (name, n.labels) in gone else n
            for n in release.numbers
        )
        return replace(stated, release=replace(release, numbers=numbers))

    return replace(described, tables=tuple(map(less, described.tables)))


def show(before: Described, after: Described, keys: Iterable[Key]) -> Described:
    """The tables ``after``, with some numbers as they were ``before``."""
    again = set(keys)

    def more(old: Stated, new: Stated) -> Stated:
        name = old.release.name
        numbers = tuple(
            a if (name, a.labels) in again else b
            for a, b in zip(old.release.numbers, new.release.numbers, strict=True)
        )
        return replace(new, release=replace(new.release, numbers=numbers))

    pairs = zip(before.tables, after.tables, strict=True)
    return replace(after, tables=tuple(more(old, new) for old, new in pairs))
