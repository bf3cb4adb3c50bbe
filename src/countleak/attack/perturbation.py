"""Cell keys: what a table of perturbations (a p-table) can add to a count.

Everyone has a key, and the keys of the people counted choose the perturbation, so that the same
people get the same number wherever they are counted; nobody is counted as nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor

from countleak.errors import InputError

# Numbers that are nearer to a whole one than this may be that one.
EDGE = 1e-6


@dataclass(frozen=True)
class Perturbation:
    """What can be added to a count: from ``least[c]`` to ``most[c]`` to c.

    Of counts beyond the last, whatever can be added to any.
    """

    least: tuple[int, ...]
    most: tuple[int, ...]

    @classmethod
    def within(cls, bound: int) -> "Perturbation":
        """Any perturbation up to ``bound`` that leaves no count below 0, and 0 as it is."""
        counts = range(bound + 1)
        most = (0, *(bound for _ in counts[1:]))
        return cls((*(-count for count in counts[:-1]), -bound), most)

    @classmethod
    def of_table(cls, added: Iterable[tuple[int, int]]) -> "Perturbation":
        """That of a p-table: counts from 1, each with what can be added to it."""
        ends: dict[int, tuple[int, int]] = {0: (0, 0)}
        for count, value in added:
            low, high = ends.get(count, (value, value))
            ends[count] = min(low, value), max(high, value)
        if sorted(ends) != list(range(len(ends))) or len(ends) == 1:
            raise InputError("a p-table has a row for each count from 1 on; complete it")
        ordered = [ends[count] for count in range(len(ends))]
        return cls(tuple(low for low, _ in ordered), tuple(high for _, high in ordered))

    @property
    def bound(self) -> int:
        """The furthest that any number can be from its count."""
        return max(-min(self.least), max(self.most))

    def counts_behind(self, value: float) -> tuple[float, float] | None:
        """The least and the greatest count that can be shown as ``value``; None where none can."""
        return self._counts(value, value)

    def counts_below(self, value: float) -> tuple[float, float] | None:
        """The least and the greatest count that can become less than ``value``."""
        return self._counts(0.0, ceil(value - EDGE) - 1.0)

    def _counts(self, low: float, high: float) -> tuple[float, float] | None:
        ends = enumerate(zip(self.least, self.most, strict=True))
        counts = [
            count
            for count, (least, most) in ends
            if count + least <= high + EDGE and count + most >= low - EDGE
        ]
        beyond = len(self.least), floor(high + EDGE) - min(self.least)
        if beyond[0] <= beyond[1]:
            first = max(beyond[0], ceil(low - EDGE) - max(self.most))
            counts += [first, beyond[1]]
        return (float(min(counts)), float(max(counts))) if counts else None
