"""The account of a sequence of exact counts: whom they pin, from which query on, and by what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.row_space import Bits, Pinned, RowSpace
from countleak.audit.query_log.logic import ANSWERS_ALONE, Logic
from countleak.audit.query_log.members import Members, packed, unpacked
from countleak.audit.query_log.reading import Logged
from countleak.audit.query_log.table import WORD

# Longer equations are cut short where they are shown.
MOST_TERMS = 6


@dataclass(frozen=True)
class Term:
    """A count in a proof, so many ``times``: the query that first asked for it, and its answer."""

    query: int
    condition: str
    count: int
    times: Fraction

    def record(self) -> dict[str, Any]:
        """The term as plain fields."""
        return {
            "query": self.query,
            "condition": self.condition,
            "count": self.count,
            "times": str(self.times),
        }


@dataclass(frozen=True)
class Alarm:
    """A group of a few people whose count is pinned from the query ``by`` on, and the proof.

    ``user`` is whose account it is of, None where all have one. It ``rests_on`` the answers alone,
    or on somebody not existing. ``names_secret``: the secret column tells the group from others.
    """

    by: Logged
    people: int
    terms: tuple[Term, ...]
    rests_on: str
    user: str | None = None
    names_secret: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether the answers prove it to somebody who knows nothing else."""
        return self.rests_on == ANSWERS_ALONE

    @property
    def equation(self) -> str:
        """The proof as a line that can be checked by hand."""
        shown = self.terms[:MOST_TERMS]
        text = ""
        for at, term in enumerate(shown):
            sign = ("" if at == 0 else " + ") if term.times > 0 else ("-" if at == 0 else " - ")
            times = abs(term.times)
            many = "" if times == 1 else f"{times} x "
            text += f"{sign}{many}query {term.query} [{term.condition}] ({term.count:,})"
        if len(self.terms) > len(shown):
            text += f" ... ({len(self.terms) - len(shown)} more terms)"
        return f"{text} = {self.people} {'person' if self.people == 1 else 'people'}"

    def record(self) -> dict[str, Any]:
        """The alarm as plain fields."""
        return {
            "query": self.by.number,
            "line": self.by.line,
            "time": self.by.time or None,
            "user": self.user if self.user is not None else self.by.user or None,
            "people": self.people,
            "earlier": sorted({t.query for t in self.terms} - {self.by.number}),
            "terms": [term.record() for term in self.terms],
            "equation": self.equation,
            "rests_on": self.rests_on,
            "names_secret": self.names_secret,
        }


@dataclass(frozen=True, eq=False)
class Account:
    """What one asker's counts pin.

    ``curve`` has the people pinned after each query that pins more, as (query, people). Of its
    ``conditions`` so many are independent (``rank``). Not all pairs were looked at unless it is
    ``complete``.
    """

    user: str | None
    alarms: tuple[Alarm, ...]
    unproven: int
    curve: tuple[tuple[int, int], ...]
    conditions: int
    rank: int
    complete: bool

    @property
    def pinned(self) -> int:
        """The people pinned after the last query."""
        return self.curve[-1][1] if self.curve else 0


# Each count by its condition, in the order of the log.
Sequence_ = Sequence[tuple[Logged, int]]


@dataclass(frozen=True)
class Accountant:
    """Makes accounts of conditions, of which some name the ``secret``."""

    members: Members
    logic: Logic
    small: int
    secret: frozenset[int] = frozenset()

    def account(self, sequence: Sequence_, user: str | None = None) -> Account:
        """The account of counts in their order."""
        first = _first_asked(self.members, sequence)
        kept = list(first)
        if not kept:
            return Account(user, (), 0, (), 0, 0, True)
        rows, people = _coarsened(self.members.rows[kept], self.members.people)
        numbers = np.array([first[condition].number for condition in kept])
        ends = np.searchsorted(numbers, numbers, side="right").astype(np.int64)
        space = RowSpace(rows, people.size, ends)
        pins = space.pinned(people, self.small)
        queries = [first[kept[pin.row]] for pin in pins]
        proven = [(pin, query) for pin, query in zip(pins, queries, strict=True) if pin.terms]
        alarms = [self._alarm(pin, query, kept, first, people, user) for pin, query in proven]
        return Account(
            user,
            tuple(alarms),
            len(pins) - len(alarms),
            _curve(pins, queries, people),
            len(kept),
            space.rank,
            space.complete,
        )

    def _alarm(
        self,
        pin: Pinned,
        query: Logged,
        kept: Sequence[int],
        first: Mapping[int, Logged],
        people: NDArray[np.int64],
        user: str | None,
    ) -> Alarm:
        terms = [(kept[row], times) for row, times in pin.terms]
        rests_on = self.logic.rests_on([(self.members.sql[at], times) for at, times in terms])
        shown = _terms(self.members, terms, first)
        named = any(at in self.secret for at, _ in terms)
        return Alarm(query, int(people[list(pin.cells)].sum()), shown, rests_on, user, named)


def _curve(
    pins: Sequence[Pinned], queries: Sequence[Logged], people: NDArray[np.int64]
) -> tuple[tuple[int, int], ...]:
    """The people pinned after each query that pins more."""
    pinned = np.zeros(people.size, np.bool_)
    curve: dict[int, int] = {}
    for pin, query in zip(pins, queries, strict=True):
        if not pinned[list(pin.cells)].all():
            pinned[list(pin.cells)] = True
            curve[query.number] = int(people[pinned].sum())
    return tuple(curve.items())


def _first_asked(members: Members, sequence: Sequence_) -> dict[int, Logged]:
    """The conditions that count different people, each with the query that first did so."""
    first: dict[int, Logged] = {}
    seen: set[bytes] = set()
    known: set[int] = set()
    for query, condition in sequence:
        if condition in known:
            continue
        known.add(condition)
        members_in = members.rows[condition].tobytes()
        if members.counts[condition] and members_in not in seen:
            seen.add(members_in)
            first[condition] = query
    return first


def _coarsened(rows: Bits, people: NDArray[np.int64]) -> tuple[Bits, NDArray[np.int64]]:
    """The rows over cells that only they tell apart, and the people in those."""
    from countleak.attack.ledger.bits import refine

    cells = people.size
    labels, first = np.zeros(cells, np.int32), np.zeros(min(1, cells), np.int32)
    for start in range(0, rows.shape[0], WORD):
        words = np.zeros(cells, np.uint64)
        for bit, row in enumerate(rows[start : start + WORD]):
            words |= unpacked(row, cells).astype(np.uint64) << np.uint64(bit)
        labels, first = refine(labels, words)
    if first.size == cells:
        return rows, people
    merged = np.zeros(first.size, np.int64)
    np.add.at(merged, labels, people)
    return np.stack([packed(unpacked(row, cells)[first]) for row in rows]), merged


def _terms(
    members: Members, terms: Sequence[tuple[int, Fraction]], first: Mapping[int, Logged]
) -> tuple[Term, ...]:
    """The terms of a proof, those that are added first, the latest of each first."""
    shown = [
        Term(first[at].number, members.names[at], int(members.counts[at]), times)
        for at, times in terms
    ]
    return tuple(sorted(shown, key=lambda term: (term.times < 0, -term.query)))
