"""How likely each count of a group is where several fit: likely, not proven.

The prior is that people fall into groups independently of each other, by shares that multiply over
the dimensions; those are fitted to the published numbers. Where people are not like that, neither
are the probabilities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.pieces import taken_apart
from countleak.attack.ledger.posterior import Draws, draws_of
from countleak.audit.releases import TablesAudit
from countleak.audit.releases.findings import Group
from countleak.audit.releases.model import Model

PRIOR = (
    "people fall into groups independently, by shares of each dimension fitted to what was "
    "published"
)
SURE = 0.95
FITTING_STEPS = 100
SHOWN = 20


@dataclass(frozen=True)
class Belief:
    """A group of which several counts fit: how likely each is, from 0 up.

    ``enumerated`` if all that fits was weighed; otherwise chains drew it.
    """

    cell: Mapping[str, str]
    probability: tuple[float, ...]
    enumerated: bool

    @property
    def likeliest(self) -> int:
        """The count that is likeliest."""
        return int(np.argmax(self.probability))

    def few(self, small: int) -> float:
        """How likely the group has 1 to ``small`` people."""
        return float(sum(self.probability[1 : small + 1]))

    def record(self, small: int) -> dict[str, Any]:
        """The belief as plain fields."""
        shown = {str(k): round(p, 4) for k, p in enumerate(self.probability) if p > 1e-4}
        return {
            "cell": dict(self.cell),
            "probability": shown,
            "few": round(self.few(small), 4),
            "by": "enumeration" if self.enumerated else "chains",
        }


@dataclass(frozen=True)
class Beliefs:
    """What is likely of all groups that are not pinned; ``withdrawn`` counts those by reason."""

    beliefs: tuple[Belief, ...]
    withdrawn: Mapping[str, int]
    small: int

    @property
    def likely(self) -> list[Belief]:
        """Groups that have few people at 95% or more, the surest first."""
        sure = [each for each in self.beliefs if each.few(self.small) >= SURE]
        return sorted(sure, key=lambda each: -each.few(self.small))

    def __str__(self) -> str:
        groups = len(self.beliefs) + sum(self.withdrawn.values())
        few = f"1 to {self.small} people" if self.small > 1 else "1 person"
        lines = [
            f"Likely, not proven: {len(self.likely)} of {groups} groups that are not pinned have "
            f"{few} at {SURE:.0%} or more, if {PRIOR}."
        ]
        for each in self.likely[:SHOWN]:
            best = each.likeliest
            name = ", ".join(each.cell.values())
            lines.append(
                f"  {name}: {few} at {each.few(self.small):.1%}; {best} at "
                f"{each.probability[best]:.1%}"
            )
        if len(self.likely) > SHOWN:
            lines.append(f"  ... and {len(self.likely) - SHOWN} more")
        lines += [f"Withdrawn for {n} groups: {why}." for why, n in self.withdrawn.items()]
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The beliefs as plain fields."""
        return {
            "prior": PRIOR,
            "groups": [each.record(self.small) for each in self.beliefs],
            "withdrawn": dict(self.withdrawn),
        }


def likely_counts(audit: TablesAudit, *, time_limit: float = 60.0, seed: int = 0) -> Beliefs:
    """How likely the counts of all groups are that the audit bounds but does not pin."""
    deadline, rng = monotonic() + time_limit, np.random.default_rng(seed)
    apart = taken_apart(audit.model.ledger)
    rate = fitted_rates(audit.model)
    pairs = zip(audit.groups, audit.intervals, strict=True)
    open_groups = [group for group, interval in pairs if not interval.pinned]
    piece_of = np.full(audit.model.ledger.cells, -1)
    place = np.zeros(audit.model.ledger.cells, np.int64)
    for number, piece in enumerate(apart.pieces):
        piece_of[piece.cells], place[piece.cells] = number, np.arange(piece.cells.size)
    free = ~apart.limits.fixed & (piece_of < 0)
    drawn: dict[int, Draws | str] = {}
    beliefs, withdrawn = [], dict[str, int]()
    for group in open_groups:
        touched = np.unique(piece_of[group.cells])
        for number in touched[touched >= 0].tolist():
            if number not in drawn:
                left = deadline - monotonic()
                piece = apart.pieces[number]
                drawn[number] = (
                    draws_of(piece, rate[piece.cells], rng, left) if left > 0 else "time ran out"
                )
        settled = int(apart.limits.low[group.cells[piece_of[group.cells] < 0]].sum())
        parts = {k: drawn[k] for k in touched[touched >= 0].tolist()}
        found: Belief | str = "a count has no upper limit"
        if not free[group.cells].any():
            found = _belief(group, settled, parts, piece_of, place)
        if isinstance(found, str):
            withdrawn[found] = withdrawn.get(found, 0) + 1
        else:
            beliefs.append(found)
    return Beliefs(tuple(beliefs), withdrawn, audit.small)


def _belief(
    group: Group,
    settled: int,
    parts: Mapping[int, Draws | str],
    piece_of: NDArray[np.int64],
    place: NDArray[np.int64],
) -> Belief | str:
    """What the draws of its pieces say of a group, which add up independently; or why nothing."""
    probability = np.append(np.zeros(settled), 1.0)
    for number, draws in parts.items():
        if isinstance(draws, str):
            return draws
        cells = place[group.cells[piece_of[group.cells] == number]]
        if not draws.agree(cells):
            return "chains that start far apart do not agree on them"
        probability = np.convolve(probability, draws.counts(cells))
    whole = all(isinstance(draws, Draws) and draws.enumerated for draws in parts.values())
    return Belief(group.cell, tuple((probability / probability.sum()).tolist()), whole)


def fitted_rates(model: Model) -> NDArray[np.float64]:
    """Expected counts (n,): products of shares by dimension, fitted to the published numbers.

    Each step shares every number out over its groups, and counts anew (expectation maximisation).
    """
    ledger, shape = model.ledger, tuple(len(axis.groups) for axis in model.axes)
    known = np.isfinite(ledger.high)
    A, middle = ledger.A[known], (ledger.low[known] + ledger.high[known]) / 2
    rows_of_cell = np.maximum(np.asarray(A.sum(axis=0)).ravel(), 1.0)
    counted = np.asarray(A.sum(axis=0)).ravel() > 0
    rate = np.full(ledger.cells, max(middle.max(initial=1.0), 1.0) / max(ledger.cells, 1))
    for _ in range(FITTING_STEPS):
        ratio = middle / np.maximum(np.asarray(A @ rate), 1e-12)
        shared = np.where(counted, rate * np.asarray(A.T @ ratio) / rows_of_cell, rate)
        table = shared.reshape(shape) if shape else shared.reshape(())
        total = max(float(table.sum()), 1e-12)
        product = np.full(shape, total)
        for at in range(len(shape)):
            others = tuple(k for k in range(len(shape)) if k != at)
            share = table.sum(axis=others) / total
            product = product * share.reshape([-1 if k == at else 1 for k in range(len(shape))])
        rate = np.maximum(product.ravel(), 1e-9)
    return rate
