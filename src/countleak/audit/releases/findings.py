"""What published tables give away, each with the published numbers that give it away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.bounds import Interval
from countleak.attack.ledger.proofs import Proof, Prover
from countleak.audit.releases.axes import Axis
from countleak.audit.releases.model import Model, Number

# Of more groups than this, only the finest are looked at, not what they add up to or are part of.
MOST_GROUPS = 200_000
# Labels are looked at where that does not take more steps, or more cells in all.
MOST_STEPS = 10_000_000
EXACT = "its counts are exact"
SAME_PEOPLE = "the tables cover the same people"


@dataclass(frozen=True, eq=False)
class Group:
    """People to be told apart: the ``cell`` in words, and the ``cells`` that it adds up.

    ``stated`` is what was published of a group that was not shown; None: nothing was. A group is
    ``joined`` if it is a part of an axis that is neither one of its finest groups nor all of it.
    """

    cell: Mapping[str, str]
    cells: NDArray[np.int64]
    stated: tuple[float, float] | None = None
    joined: bool = False


@dataclass(frozen=True)
class Term:
    """A published number in a proof, so many ``times``; from ``low`` to ``high`` if a range."""

    number: Number
    times: Fraction
    low: float
    high: float

    @property
    def shown(self) -> str:
        """The number as it stands in an equation, without its sign."""
        times = abs(self.times)
        many = "" if times == 1 else f"{times} x "
        if self.low == self.high:
            return f"{many}{self.number}"
        most = f"{self.high:g}" if isfinite(self.high) else "more"
        return f"{many}{self.number} [{self.low:g} to {most}]"

    def record(self) -> dict[str, Any]:
        """The term as plain fields."""
        return {
            "table": self.number.table,
            "cell": dict(self.number.cell),
            "value": self.number.value,
            "sign": 1 if self.times > 0 else -1,
            "times": str(abs(self.times)),
            "between": [self.low, self.high if isfinite(self.high) else None],
        }


@dataclass(frozen=True)
class Finding:
    """A group whose count is known, and the published numbers that prove it.

    ``at_most`` and ``at_least`` are the sides of the proof; they are the same where the numbers
    add up to just the group.
    """

    cell: Mapping[str, str]
    low: int
    high: int
    at_most: tuple[Term, ...]
    at_least: tuple[Term, ...]
    rests_on: str

    @property
    def name(self) -> str:
        """The group in words."""
        return ", ".join(self.cell.values())

    @property
    def adds_up(self) -> bool:
        """Whether it only adds up numbers that were shown as they are."""
        terms = self.at_most if self.at_most == self.at_least else ()
        return bool(terms) and all(t.times > 0 and t.low == t.high for t in terms)

    @property
    def equation(self) -> str:
        """The proof as a line that can be checked by hand."""
        if self.at_most == self.at_least:
            return f"{self.name} = {_summed(self.at_most)} = {self.low}"
        sides = []
        if self.at_most:
            sides.append(f"{self.name} <= {_summed(self.at_most)}, so at most {self.high}")
        if self.at_least:
            sides.append(f"{self.name} >= {_summed(self.at_least)}, so at least {self.low}")
        return "; ".join(sides)

    def record(self) -> dict[str, Any]:
        """The finding as plain fields."""
        same = self.at_most == self.at_least
        return {
            "cell": dict(self.cell),
            "low": self.low,
            "high": self.high,
            "terms": [term.record() for term in self.at_most],
            "terms_at_least": None if same else [term.record() for term in self.at_least],
            "equation": self.equation,
            "rests_on": self.rests_on,
        }


def groups_of(model: Model, largest: int) -> Iterator[Group]:
    """Every group that was published but not shown, and then every other that tables imply.

    Those are the published ones of which the number alone does not tell the count, the finest, with
    what they add up to over any of the axes, and what labels stand for, alone and less each other.
    """
    low, high = model.ledger.low.tolist(), model.ledger.high.tolist()
    told = set()
    for row, number in enumerate(model.numbers):
        alone = low[row] == high[row] or (low[row] > 0 and high[row] <= largest)
        if number.value is None or alone:
            cells = model.ledger.members(row)
            told.add(cells.tobytes())
            if number.value is None:
                yield Group(number.cell, cells, (low[row], high[row]))
    for row, number in enumerate(model.numbers):
        cells = model.ledger.members(row)
        if cells.tobytes() not in told:
            told.add(cells.tobytes())
            yield Group(number.cell, cells)
    for some in _crossings(model.axes):
        for parts in product(*(each.items() for each in some.values())):
            places = {name: at for name, (at, _) in zip(some, parts, strict=True)}
            cells = model.cells_of(places)
            if cells.tobytes() not in told:
                told.add(cells.tobytes())
                named = {name: part for name, (_, part) in zip(some, parts, strict=True)}
                yield Group(named, cells, joined=any(len(at) > 1 for at in places.values()))


# Groups of an axis by position, and how they are called together.
Parts = Mapping[tuple[int, ...], str]


def _crossings(axes: Sequence[Axis]) -> Iterator[Mapping[str, Parts]]:
    """The parts of axes that groups can be given by, the finest of all axes first.

    As many as there may be: the finest, what they add up to over axes, and what labels stand for.
    """
    finest: dict[str, Parts] = {
        axis.name: {(at,): group for at, group in enumerate(axis.groups)} for axis in axes
    }
    if not _fits(finest):
        yield finest
        return
    yield from _margins(finest)
    coarser = {axis.name: parts_of(axis) for axis in axes}
    if _fits(coarser) and _is_light(coarser):
        yield from _margins(coarser)
        return
    for name, parts in coarser.items():
        some: dict[str, Parts] = {**finest, name: parts}
        if _fits(some) and _is_light(some):
            yield from _margins(some)


def are_all_looked_at(axes: Sequence[Axis]) -> bool:
    """Whether groups that the finest add up to are looked at, too."""
    return prod(len(axis.groups) + 1 for axis in axes) <= MOST_GROUPS


def _fits(parts: Mapping[str, Parts]) -> bool:
    return prod(len(each) + 1 for each in parts.values()) <= MOST_GROUPS


def _is_light(parts: Mapping[str, Parts]) -> bool:
    """Whether all these groups together have so few cells that they can be held."""
    return prod(2 * sum(map(len, each)) for each in parts.values()) <= MOST_STEPS


def _margins(parts: Mapping[str, Parts]) -> Iterator[Mapping[str, Parts]]:
    """The parts of all axes, and of ever fewer of them."""
    for size in range(len(parts), 0, -1):
        for names in combinations(parts, size):
            yield {name: parts[name] for name in names}


def parts_of(axis: Axis) -> dict[tuple[int, ...], str]:
    """What tables tell apart on an axis: its groups, its labels, and a label less one within it.

    Tables with other labels cut these into groups of which nothing may be known alone.
    """
    found: dict[tuple[int, ...], str] = {(at,): group for at, group in enumerate(axis.groups)}
    labels = {places: label for label, places in axis.members.items()}
    labels.pop(axis.everything, None)
    for places, label in labels.items():
        found.setdefault(places, label)
    outer = [(axis.everything, "all but")]
    outer += [(places, f"{label} but not") for places, label in labels.items() if len(places) > 1]
    if len(outer) * len(labels) * len(axis.groups) > MOST_STEPS:
        return found
    for (whole, beside), (part, other) in product(outer, labels.items()):
        if set(part) < set(whole):
            rest = tuple(sorted(set(whole) - set(part)))
            found.setdefault(rest, f"{beside} {other}")
    return found


def tells(group: Group, interval: Interval, small: int) -> bool:
    """Whether an interval gives a group away: what was hidden is known, or few are pinned."""
    if not isfinite(interval.high):
        return False
    width = interval.high - interval.low
    if group.stated is not None:
        narrower = width < group.stated[1] - group.stated[0]
        return narrower and (width == 0 or (width == 1 and interval.low > 0))
    return interval.low > 0 and interval.high <= small and width <= 1


class Witness:
    """Findings in words, each with its proof from published numbers."""

    def __init__(self, model: Model, inferred: Mapping[str, tuple[str, ...]]):
        """``inferred`` says of each table what of its rules was read off it."""
        self._model = model
        self._inferred = inferred
        self._prover = Prover(model.ledger)

    def finding(self, group: Group, interval: Interval) -> Finding | None:
        """The finding, if its proof can be given."""
        proofs = self._prover.prove(group.cells, interval.low, int(interval.high))
        if proofs is None:
            return None
        most = terms_of(self._model, proofs.at_most)
        if proofs.at_least == proofs.at_most:
            return self._finding(group, interval, most, most)
        return self._finding(group, interval, most, terms_of(self._model, proofs.at_least, -1))

    def _finding(
        self, group: Group, interval: Interval, most: tuple[Term, ...], least: tuple[Term, ...]
    ) -> Finding:
        tables = dict.fromkeys(term.number.table for term in (*most, *least))
        rests_on = rests_on_in_words(
            {table: self._inferred[table] for table in tables}, several=len(self._inferred) > 1
        )
        low, high = interval.low, int(interval.high)
        return Finding(dict(group.cell), low, high, most, least, rests_on)


def terms_of(model: Model, proof: Proof, sign: int = 1) -> tuple[Term, ...]:
    """The published numbers of a proof, those that are added first."""
    ledger, terms = model.ledger, []
    for row, times in proof.terms:
        ends = float(ledger.low[row]), float(ledger.high[row])
        terms.append(Term(model.numbers[row], sign * times, *ends))
    return tuple(sorted(terms, key=lambda term: term.times < 0))


def rests_on_in_words(inferred: Mapping[str, tuple[str, ...]], several: bool) -> str:
    """What a finding rests on, by what was inferred of its tables, and if there are others."""
    beyond = [f"{table}: {what}" for table, read in inferred.items() for what in read]
    if not beyond:
        return "the rules stated" + (f", and that {SAME_PEOPLE}" if several else "")
    if all(set(read) <= {EXACT} for read in inferred.values()):
        return "implied, if the tables are exact and cover the same people"
    return f"implied, if {'; '.join(beyond)}; and {SAME_PEOPLE}"


def _summed(terms: Sequence[Term]) -> str:
    text = ""
    for at, term in enumerate(terms):
        sign = ("" if at == 0 else " + ") if term.times > 0 else ("-" if at == 0 else " - ")
        text += f"{sign}{term.shown}"
    return text
