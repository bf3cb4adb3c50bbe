"""What to change in published tables so that nothing is pinned: hide, coarsen or round numbers.

A remedy changes the numbers that the proofs of an audit need; what is left is audited again, until
nothing is found. Only that last audit says that a cure is one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Protocol

from countleak.audit.releases import TablesAudit, audit_tables
from countleak.audit.releases.description import Described
from countleak.audit.releases.formats import Why
from countleak.audit.releases.model import Number, Stated, ends_of
from countleak.audit.releases.reading import Published
from countleak.progress import Progress, silent

# Other than that the count itself is to be hidden.
OTHER_REASONS = (Why.SECONDARY, Why.UNKNOWN)
TIME_IS_UP = "time ran out before nothing was pinned; allow more"


@dataclass(frozen=True)
class Task:
    """What is to be cured: groups of up to ``small`` people, by ``deadline`` on the clock."""

    small: int
    deadline: float

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.deadline - monotonic())

    def audit(self, described: Described) -> TablesAudit:
        """What the tables give away."""
        return audit_tables(
            described.tables, described.trees, small=self.small, time_limit=self.left
        )


class Remedy(Protocol):
    """One way of changing tables; ``name`` is what is done to them."""

    @property
    def name(self) -> str: ...

    def changed(
        self, before: Described, described: Described, audit: TablesAudit
    ) -> Described | None:
        """The tables with less in them that the findings need; None where nothing is left to do.

        ``before`` are the tables that the cure began with, ``audit`` is that of ``described``.
        """
        ...

    def pruned(self, before: Described, after: Described, task: Task) -> Described:
        """The tables without changes that turned out not to be needed."""
        ...

    def changes(self, before: Described, after: Described) -> list[dict[str, Any]]:
        """What was done, number by number or table by table."""
        ...


@dataclass(frozen=True, eq=False)
class Cure:
    """Tables of which nothing is pinned any more, if ``failure`` is None; and what that costs.

    ``after`` is the audit of the tables as they are now: as a reader who can tell from what was
    hidden before what the cure hid, and as one who cannot.
    """

    remedy: str
    before: TablesAudit
    after: tuple[TablesAudit, ...]
    described: Described
    changes: tuple[Mapping[str, Any], ...]
    cost: Mapping[str, float]
    rounds: int
    failure: str | None

    @property
    def findings(self) -> int:
        """What is still pinned, with or without a proof."""
        return max(len(each.findings) + each.unproven for each in self.after)

    @property
    def contradicts(self) -> bool:
        """Whether the tables as they are now cannot all be true, so that nothing is known."""
        return any(each.contradicts for each in self.after)

    def __str__(self) -> str:
        cost = ", ".join(f"{number} {what}" for what, number in self.cost.items())
        if self.failure:
            left = "" if self.contradicts else f" {self.findings} are still pinned."
            return f"No cure by {self.remedy}: {self.failure}.{left}"
        if not self.changes:
            return "Nothing is pinned, so that nothing needs to be changed."
        lines = [f"Cure by {self.remedy}, rounds: {self.rounds}; {cost}."]
        lines += [f"  {each['change']}" for each in self.changes]
        lines.append("Audited again: 0 findings, 0 without a proof, every interval exact.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The cure as plain fields."""
        return {
            "remedy": self.remedy,
            "changes": [dict(each) for each in self.changes],
            "cost": dict(self.cost),
            "rounds": self.rounds,
            "findings_before": len(self.before.findings) + self.before.unproven,
            "findings_after": None if self.contradicts else self.findings,
            "exact_after": not self.contradicts and all(each.exact for each in self.after),
            "failure": self.failure,
        }


def cure(
    audit: TablesAudit,
    remedy: Remedy,
    *,
    time_limit: float = 600.0,
    progress: Progress = silent,
) -> Cure:
    """The audited tables, changed until nothing is pinned; or why that was not reached."""
    task = Task(audit.small, monotonic() + time_limit)
    before = described = Described(audit.stated, audit.trees)
    audits: tuple[TablesAudit, ...] = (audit,)
    rounds, failure = 0, None
    while not all(each.clean for each in audits):
        failure = _stuck(audits, task)
        if failure is None:
            worst = max(audits, key=lambda each: len(each.findings) + each.unproven)
            changed = remedy.changed(before, described, worst)
            failure = None if changed else "no published number is left to change"
        if failure is not None or changed is None:
            break
        described, rounds = changed, rounds + 1
        audits = tuple(task.audit(form) for form in forms(described))
        progress(rounds, rounds + 1)
    if failure is None and rounds:
        # The audit after it needs its time too.
        fewer = remedy.pruned(
            before, described, replace(task, deadline=monotonic() + task.left / 2)
        )
        again = tuple(task.audit(form) for form in forms(fewer))
        if all(each.clean for each in again):
            described, audits = fewer, again
    changes = tuple(remedy.changes(before, described))
    cost = cost_of(before, described)
    return Cure(remedy.name, audit, audits, described, changes, cost, rounds, failure)


def _stuck(audits: tuple[TablesAudit, ...], task: Task) -> str | None:
    """Why there is no use in going on; None where there is."""
    if any(each.contradicts for each in audits):
        return "the tables contradict each other"
    if task.left <= 0 or not all(each.exact for each in audits):
        return TIME_IS_UP
    if not any(each.findings or each.unproven for each in audits):
        # Then what is not clean was not looked at.
        return next(why for each in audits for why in each.not_looked_at)
    return None


def forms(described: Described) -> tuple[Described, ...]:
    """The tables for a reader who can tell all reasons to hide; and as their files show them.

    Where files show as much, those are the same.
    """
    written = as_written(described)
    return (described,) if _ends(written) == _ends(described) else (described, written)


def _ends(described: Described) -> list[tuple[float, float]]:
    """What the count behind every number can be."""
    return [ends_of(n, each) for each in described.tables for n in each.release.numbers]


def as_written(described: Described) -> Described:
    """The tables as files show them: one mark for all that is hidden, so that no rule says why."""
    return replace(described, tables=tuple(map(_as_written, described.tables)))


def _as_written(stated: Stated) -> Stated:
    numbers = tuple(
        replace(n, among=None if _not_shown(n) else n.among, why=None)
        for n in stated.release.numbers
    )
    rules = replace(stated.rules, suppressed=None) if _rule_goes(stated) else stated.rules
    return replace(stated, release=replace(stated.release, numbers=numbers), rules=rules)


def _rule_goes(stated: Stated) -> bool:
    """Whether something is hidden for another reason than the rule that was stated."""
    hidden = any(n.why in OTHER_REASONS or _not_shown(n) for n in stated.release.numbers)
    return hidden and stated.rules.suppressed is not None


def _not_shown(number: Published) -> bool:
    """Whether what a hidden number says of its count has no mark of ours: <5 is one."""
    return number.among is not None and number.among.low > 0


def hidden_numbers(before: Described, after: Described) -> list[Number]:
    """The numbers that only the tables ``before`` show."""
    found = []
    for old, new in zip(before.tables, after.tables, strict=True):
        shown = {n.labels for n in new.release.numbers if n.value is not None}
        for number in old.release.numbers:
            if number.value is not None and number.labels not in shown:
                cell = dict(zip(old.release.dimensions, number.labels, strict=True))
                found.append(Number(old.release.name, cell, number.value))
    return found


def cost_of(before: Described, after: Described) -> dict[str, float]:
    """Numbers that are no longer shown, the people in them, and numbers that are now rounded."""
    lost = hidden_numbers(before, after)
    rounded = sum(
        len(new.release.numbers)
        for old, new in zip(before.tables, after.tables, strict=True)
        if new.rules.base != old.rules.base
    )
    if rounded:
        return {"numbers rounded": rounded}
    return {"numbers hidden": len(lost), "people in them": sum(n.value or 0 for n in lost)}
