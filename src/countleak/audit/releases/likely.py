"""How likely each count of a group is where several fit: likely, not proven.

The prior is that people fall into groups independently of each other, by shares that multiply over
the dimensions; those are fitted to the published numbers. Where people are not like that, neither
are the probabilities.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.bounds import Bounder, taken_apart
from countleak.attack.ledger.component import Clock
from countleak.attack.ledger.posterior import Draws, draws_of
from countleak.audit.releases import SHOWN, TablesAudit
from countleak.audit.releases.disclosures import axis_named, groups_by, places_on
from countleak.audit.releases.model import Model

PRIOR = (
    "people fall into groups independently, by shares of each dimension fitted to what was "
    "published"
)
SURE = 0.95
FITTING_STEPS = 100


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


class Posterior:
    """What is likely of any group by (B); a component is drawn when it is first needed."""

    def __init__(self, model: Model, *, time_limit: float = 60.0, seed: int = 0):
        self._rng, self._rate = np.random.default_rng(seed), fitted_rates(model)
        self._limits, parts = taken_apart(model.ledger, Clock(monotonic() + time_limit))
        self._parts = list(parts)
        self._part = np.full(model.ledger.cells, -1)
        self._place = np.zeros(model.ledger.cells, np.int64)
        for number, (_, cells) in enumerate(self._parts):
            self._part[cells], self._place[cells] = number, np.arange(cells.size)
        self._drawn: dict[int, Draws | str] = {}

    def counts(self, cells: NDArray[np.int64]) -> "Counts | str":
        """How likely each sum of some cells is; or in words why none can be given."""
        inside, limits = self._part[cells], self._limits
        if not limits.fixed[cells[inside < 0]].all():
            return "a count has no upper limit"
        probability = np.append(np.zeros(int(limits.low[cells[inside < 0]].sum())), 1.0)
        enumerated = True
        for number in np.unique(inside[inside >= 0]).tolist():
            draws, part = self._draws(number), self._place[cells[inside == number]]
            if isinstance(draws, str):
                return draws
            if not draws.agree(part):
                return "chains that start far apart do not agree on them"
            # Components are independent.
            probability = np.convolve(probability, draws.counts(part))
            enumerated &= draws.enumerated
        return Counts(probability / probability.sum(), enumerated)

    def _draws(self, number: int) -> Draws | str:
        if number not in self._drawn:
            part, cells = self._parts[number]
            left = part.clock.left > 0
            self._drawn[number] = (
                draws_of(part, self._rate[cells], self._rng) if left else "time ran out"
            )
        return self._drawn[number]


@dataclass(frozen=True, eq=False)
class Counts:
    """How likely 0, 1, 2, ... are; ``enumerated`` if everything that fits was weighed."""

    probability: NDArray[np.float64]
    enumerated: bool


def likely_counts(audit: TablesAudit, posterior: Posterior) -> Beliefs:
    """How likely the counts of all groups are that the audit bounds but does not pin."""
    beliefs: list[Belief] = []
    withdrawn: Counter[str] = Counter()
    for group, interval in zip(audit.groups, audit.intervals, strict=True):
        if interval.pinned:
            continue
        found = posterior.counts(group.cells)
        if isinstance(found, str):
            withdrawn[found] += 1
        else:
            chances = tuple(found.probability.tolist())
            beliefs.append(Belief(group.cell, chances, found.enumerated))
    return Beliefs(tuple(beliefs), withdrawn, audit.small)


@dataclass(frozen=True)
class LikelyDisclosures:
    """Groups that somebody is in for certain, and who all have one value at 95% or more.

    ``found`` has their cells, that value and how likely it is; those that are proven are left out.
    """

    secret: str
    found: tuple[tuple[Mapping[str, str], str, float], ...]

    def __str__(self) -> str:
        lines = [f"Likely, not proven: {len(self.found)} groups whose members all have one value."]
        for cell, value, chance in self.found[:SHOWN]:
            who = ", ".join(cell.values()) or "all"
            lines.append(f"  {who}: all have {self.secret} {value} at {chance:.1%}")
        if len(self.found) > SHOWN:
            lines.append(f"  ... and {len(self.found) - SHOWN} more")
        return "\n".join(lines)

    def record(self) -> list[dict[str, Any]]:
        """The groups as plain fields."""
        return [
            {"cell": dict(cell), "value": value, "probability": round(chance, 4)}
            for cell, value, chance in self.found
        ]


def likely_disclosures(
    audit: TablesAudit, secret: str, posterior: Posterior, *, time_limit: float = 60.0
) -> LikelyDisclosures:
    """The groups of the other dimensions that likely, but not provably, share one value."""
    axis = axis_named(audit.model.axes, secret)
    bounder = Bounder(audit.model.ledger, time_limit)
    found = []
    for group in groups_by(audit, [each for each in audit.model.axes if each is not axis]):
        if bounder.interval(group.cells).low < 1:
            continue
        places = places_on(audit, axis, group.cells)
        for at, value in enumerate(axis.groups):
            others = posterior.counts(group.cells[places != at])
            if isinstance(others, str) or others.probability.size == 1:
                continue
            if others.probability[0] >= SURE:
                found.append((group.cell, value, float(others.probability[0])))
    return LikelyDisclosures(secret, tuple(sorted(found, key=lambda each: -each[2])))


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
