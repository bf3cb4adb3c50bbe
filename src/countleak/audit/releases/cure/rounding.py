"""The cure by rounding: the table that proofs need most gets a coarser base, again and again."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from countleak.audit.releases import TablesAudit
from countleak.audit.releases.cure import Task, forms
from countleak.audit.releases.description import Described
from countleak.audit.releases.model import Stated

BASES = (3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Round:
    """Counts of exact tables are rounded to the nearest multiple of one of the ``bases``."""

    bases: tuple[int, ...] = BASES
    name: str = "round"

    def changed(
        self, before: Described, described: Described, audit: TablesAudit
    ) -> Described | None:
        used: Counter[str] = Counter()
        for finding in audit.findings:
            used.update(term.number.table for term in (*finding.at_most, *finding.at_least))
        # Those that no proof names come last; what is pinned without a proof may need any.
        pairs = list(zip(before.tables, described.tables, strict=True))
        for old, new in sorted(pairs, key=lambda pair: -used[pair[0].release.name]):
            name, base = old.release.name, self._next(old, new)
            if base is not None and (used[name] or not audit.findings):
                return self._with(before, described, name, base)
        return None

    def pruned(self, before: Described, after: Described, task: Task) -> Described:
        for old, new in zip(before.tables, after.tables, strict=True):
            for base in (None, *self.bases):
                if task.left <= 0 or new.rules.base == old.rules.base or base == new.rules.base:
                    break
                tried = self._with(before, after, old.release.name, base)
                if all(task.audit(form).clean for form in forms(tried)):
                    after = tried
                    break
        return after

    def changes(self, before: Described, after: Described) -> list[dict[str, Any]]:
        return [
            {
                "table": new.release.name,
                "base": new.rules.base,
                "change": f"round {new.release.name} to the nearest {new.rules.base}",
            }
            for old, new in zip(before.tables, after.tables, strict=True)
            if new.rules.base != old.rules.base
        ]

    def _next(self, before: Stated, now: Stated) -> int | None:
        """The next coarser base of a table; None where there is none, or it is not ours to round.

        What was rounded or noisy before cannot be rounded in a way that the rules can state.
        """
        base = now.rules.base or 1
        return next((each for each in self.bases if each > base), None) if before.exact else None

    def _with(self, before: Described, after: Described, name: str, base: int | None) -> Described:
        """The tables ``after``, with the counts of one ``before`` rounded, or as they were."""

        def rounded(old: Stated, new: Stated) -> Stated:
            if old.release.name != name:
                return new
            if base is None:
                return old
            numbers = tuple(
                n if n.value is None else replace(n, value=nearest(n.value, base))
                for n in old.release.numbers
            )
            release = replace(old.release, numbers=numbers)
            return replace(old, release=release, rules=replace(old.rules, base=base))

        pairs = zip(before.tables, after.tables, strict=True)
        return replace(after, tables=tuple(rounded(old, new) for old, new in pairs))


def nearest(value: float, base: int) -> int:
    """The nearest multiple of a base; the upper one of two."""
    return int((2 * value + base) // (2 * base)) * base
