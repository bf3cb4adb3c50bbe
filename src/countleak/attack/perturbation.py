"""Cell keys: what a table of perturbations (a p-table) can add to a count.

Everyone has a key, and the keys of the people counted choose the perturbation, so that the same
people get the same number wherever they are counted; nobody is counted as nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from countleak.errors import InputError


@dataclass(frozen=True)
class Perturbation:
    """What can be added to a count: one of ``added[c]`` to c, and to counts beyond any of all."""

    added: tuple[frozenset[int], ...]

    @classmethod
    def within(cls, bound: int) -> "Perturbation":
        """Any perturbation up to ``bound`` that leaves no count below 0, and 0 as it is."""
        first = frozenset({0})
        others = (frozenset(range(-min(c, bound), bound + 1)) for c in range(1, bound + 1))
        return cls((first, *others))

    @classmethod
    def of_table(cls, rows: Iterable[tuple[int, int]]) -> "Perturbation":
        """That of a p-table: counts from 1, each with what can be added to it."""
        added: dict[int, set[int]] = {0: {0}}
        for count, value in rows:
            added.setdefault(count, set()).add(value)
        if sorted(added) != list(range(len(added))) or len(added) == 1:
            raise InputError("a p-table has a row for each count from 1 on; complete it")
        return cls(tuple(frozenset(added[count]) for count in range(len(added))))

    @cached_property
    def any(self) -> frozenset[int]:
        """All that can be added to one count or another."""
        return frozenset().union(*self.added)

    @property
    def bound(self) -> int:
        """The furthest that any number can be from its count."""
        return max(map(abs, self.any))

    @cached_property
    def has_gaps(self) -> bool:
        """Whether what can be added to a count skips some number."""
        return any(max(some) - min(some) >= len(some) for some in self.added)

    def counts_behind(self, value: float) -> tuple[float, float] | None:
        """The least and the greatest count that can be shown as ``value``; None where none can."""
        if value != int(value):
            return None
        shown = int(value)
        counts = [shown - added for added in self.any if added in self._added_to(shown - added)]
        return (float(min(counts)), float(max(counts))) if counts else None

    def most_below(self, value: float) -> float:
        """The greatest count that can become less than ``value``."""
        least = ceil(value) - 1
        counts = [least - added for added in self.any]
        tried = range(max(counts), -1, -1)
        return float(next((c for c in tried if c + min(self._added_to(c)) <= least), 0))

    def _added_to(self, count: int) -> frozenset[int]:
        """What can be added to a count; nothing where there is none."""
        if count < 0:
            return frozenset()
        return self.added[count] if count < len(self.added) else self.any
