"""Everything published about the same people, solved at once: what its numbers pin together.

Each table may be safe on its own. The finest groups that all of them tell apart are the unknowns of
one system; whoever holds the tables can bound every count in it, and so can their publisher.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from countleak.attack.ledger import rows_of
from countleak.attack.ledger.bounds import MEANS, Contradiction, Interval, ends_of
from countleak.audit.releases.contradiction import (
    Disagreement,
    disagreement_of,
    shown_differently,
)
from countleak.audit.releases.findings import (
    SAME_PEOPLE,
    Finding,
    Group,
    Witness,
    are_all_looked_at,
    groups_of,
    tells,
)
from countleak.audit.releases.model import Model, Stated, Trees, model_of
from countleak.progress import Progress, silent

SMALL = 2
SHOWN = 20
# Processes take a second to start.
WORTH_PROCESSES, ALL_CORES = 20_000, -1


@dataclass(frozen=True, eq=False)
class TablesAudit:
    """What some releases give away together.

    ``intervals`` are those of all groups that were not published openly and may be small;
    ``unproven`` counts what integer programs pin without a proof that can be printed.
    ``contradiction``: what was published cannot all be true; nothing else is said then.
    """

    model: Model
    groups: tuple[Group, ...]
    intervals: tuple[Interval, ...]
    findings: tuple[Finding, ...]
    unproven: int
    inferred: tuple[str, ...]
    settled_by: dict[str, int]
    contradiction: Disagreement | None = None
    stated: tuple[Stated, ...] = ()
    trees: Trees = field(default_factory=dict)
    small: int = SMALL

    @property
    def contradicts(self) -> bool:
        """Whether what was published cannot all be true."""
        return self.contradiction is not None

    @property
    def exact(self) -> bool:
        """Whether every interval is as narrow as can be: time did not run out."""
        return all(interval.exact for interval in self.intervals)

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """Why more may be pinned than was found."""
        why = []
        if not self.exact:
            why.append("time ran out: some intervals may be narrower, and more may be pinned")
        if self.model.with_gaps:
            tables = ", ".join(self.model.with_gaps)
            why.append(
                f"the rules of {tables} leave out counts between those that a number can stand "
                "for, which was not made use of: more may be pinned"
            )
        if not self.contradicts and not are_all_looked_at(self.model.axes):
            why.append("of so many groups only the finest were looked at, not what they add up to")
        return tuple(why)

    @property
    def clean(self) -> bool:
        """Whether nothing is pinned, for sure."""
        found = self.findings or self.unproven or self.contradicts
        return not found and not self.not_looked_at

    def witness(self) -> Witness:
        """What puts proofs into words, by what was inferred of each table."""
        return Witness(self.model, {each.release.name: each.inferred for each in self.stated})

    def __str__(self) -> str:
        numbers, cells = len(self.model.numbers), self.model.ledger.cells
        lines = [f"{numbers} published numbers about {cells} groups that they tell apart."]
        if self.contradiction is not None:
            return "\n".join([*lines, str(self.contradiction)])
        hidden = [i for g, i in zip(self.groups, self.intervals, strict=True) if g.stated]
        pinned = sum(interval.pinned for interval in hidden)
        lines.append(f"Suppressed: {len(hidden)} numbers, of which {pinned} can be worked out.")
        people = sum(each.low == each.high for each in self.findings)
        lines.append(f"Findings: {len(self.findings)}, of which {people} are one count only.")
        lines += [f"  {finding.equation}" for finding in self.findings[:SHOWN]]
        if len(self.findings) > SHOWN:
            lines.append(f"  ... and {len(self.findings) - SHOWN} more")
        if self.unproven:
            lines.append(f"{self.unproven} more follow from whole numbers, without a short proof.")
        lines += [f"{why[:1].upper()}{why[1:]}." for why in self.not_looked_at]
        lines += [f"Implied, if {each}." for each in self.inferred]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The audit as plain fields."""
        return {
            "numbers": len(self.model.numbers),
            "cells": self.model.ledger.cells,
            "findings": [finding.record() for finding in self.findings],
            "unproven": self.unproven,
            "inferred": list(self.inferred),
            "contradiction": self.contradiction and self.contradiction.record(),
            "exact": self.exact,
            "not_looked_at": list(self.not_looked_at),
            "settled_by": self.settled_by,
        }


def audit_tables(
    stated: Sequence[Stated],
    trees: Trees | None = None,
    *,
    small: int = SMALL,
    time_limit: float = 60.0,
    progress: Progress = silent,
) -> TablesAudit:
    """What the releases pin together: hidden counts, and groups of up to ``small`` people."""
    stated, trees = tuple(stated), trees or {}
    model = model_of(stated, trees)
    inferred = _inferred(stated)

    def contradicted(why: Disagreement) -> TablesAudit:
        return TablesAudit(model, (), (), (), 0, inferred, {}, why, stated, trees, small)

    differing = shown_differently(model, stated)
    if differing is not None:
        return contradicted(differing)
    try:
        groups, intervals, settled_by = _intervals(model, small, time_limit, progress)
    except Contradiction:
        return contradicted(disagreement_of(model, time_limit))
    witness = Witness(model, {each.release.name: each.inferred for each in stated})
    findings: list[Finding] = []
    unproven, told = 0, _Told()
    for group, interval in zip(groups, intervals, strict=True):
        if not tells(group, interval, small) or told.already(group, interval):
            continue
        finding = witness.finding(group, interval)
        if finding is None:
            unproven += 1
        elif not (group.joined and finding.adds_up):
            findings.append(finding)
    return TablesAudit(
        model,
        tuple(groups),
        tuple(intervals),
        tuple(sorted(findings, key=_by_how_easily_checked)),
        unproven,
        inferred,
        settled_by,
        stated=stated,
        trees=trees,
        small=small,
    )


def _intervals(
    model: Model, small: int, time_limit: float, progress: Progress
) -> tuple[list[Group], list[Interval], dict[str, int]]:
    """The groups that were hidden or may be small, their intervals, and what it took."""
    every = list(groups_of(model, small))
    most = np.array([small if group.stated is None else inf for group in every])
    ends = ends_of(
        model.ledger,
        rows_of([group.cells for group in every], model.ledger.cells),
        most,
        time_limit=time_limit,
        jobs=1 if model.ledger.cells < WORTH_PROCESSES else ALL_CORES,
        progress=progress,
    )
    kept = np.flatnonzero(~ends.large)
    settled_by = dict(zip(MEANS, np.bincount(ends.means[kept], minlength=3).tolist(), strict=True))
    return [every[i] for i in kept], [ends.interval(i) for i in kept.tolist()], settled_by


def _by_how_easily_checked(finding: Finding) -> tuple[int, int]:
    """One count before two, and then the shortest proofs first."""
    return finding.high - finding.low, len(finding.at_most) + len(finding.at_least)


class _Told:
    """Groups that were found, so that what contains one and nobody else is not told again."""

    def __init__(self) -> None:
        # By any one of its cells, which a group that contains it has, too.
        self._found: dict[int, list[tuple[frozenset[int], int]]] = {}

    def already(self, group: Group, interval: Interval) -> bool:
        """Whether a part of the group that has all of its people was found before."""
        cells = frozenset(group.cells.tolist())
        if group.stated is None and interval.pinned:
            parts = (part for cell in cells for part in self._found.get(cell, ()))
            if any(part < cells and count == interval.low for part, count in parts):
                return True
        if interval.pinned:
            self._found.setdefault(min(cells, default=-1), []).append((cells, interval.low))
        return False


def _inferred(stated: Sequence[Stated]) -> tuple[str, ...]:
    """What was read off the tables, and that they go together where there are several."""
    read = [f"{each.release.name}: {what}" for each in stated for what in each.inferred]
    return (*read, *((SAME_PEOPLE,) if len(stated) > 1 else ()))
