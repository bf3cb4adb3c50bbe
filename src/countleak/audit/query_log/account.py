"""The account of a sequence of exact counts: whom they pin, from which query on, and by what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.ledger.row_space import Bits, Pinned, RowSpace
from countleak.audit.query_log.members import Members, packed, unpacked
from countleak.audit.query_log.reading import Logged
from countleak.audit.query_log.table import WORD

# Elimination takes the cube of it in time, and the Gram matrix the square in memory.
MOST_CONDITIONS = 5000
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

    ``user`` is whose account it is of, None where all have one. ``names_secret`` says that the
    secret column tells the group from others. ``rows`` are the cells of the account it consists of.
    """

    by: Logged
    people: int
    terms: tuple[Term, ...]
    user: str | None = None
    names_secret: bool = False

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
            "names_secret": self.names_secret,
        }


@dataclass(frozen=True, eq=False)
class Account:
    """What one asker's counts pin.

    ``curve`` has the people pinned after each query that pins more, as (query, people). Of its
    ``conditions`` so many are independent (``rank``); ``left_out`` were beyond what is solved.
    """

    user: str | None
    alarms: tuple[Alarm, ...]
    unproven: int
    curve: tuple[tuple[int, int], ...]
    conditions: int
    rank: int
    left_out: int
    complete: bool

    @property
    def pinned(self) -> int:
        """The people pinned after the last query."""
        return self.curve[-1][1] if self.curve else 0


# Each count by its condition, in the order of the log.
Sequence_ = Sequence[tuple[Logged, int]]


def account_of(
    members: Members,
    sequence: Sequence_,
    small: int,
    user: str | None = None,
    secret: frozenset[int] = frozenset(),
) -> Account:
    """The account of counts in their order; ``secret`` are the conditions that name the secret."""
    first = _first_asked(members, sequence)
    kept = list(first)[:MOST_CONDITIONS]
    if not kept:
        return Account(user, (), 0, (), 0, 0, 0, True)
    rows, people = _coarsened(members.rows[kept], members.people)
    space = RowSpace(rows, people.size)
    alarms, unproven, curve = [], 0, []
    pinned = np.zeros(people.size, np.bool_)
    for pin in space.pinned(people, small):
        query = first[kept[pin.row]]
        pinned[list(pin.cells)] = True
        total = int(people[pinned].sum())
        if curve and curve[-1][0] == query.number:
            curve.pop()
        if not curve or curve[-1][1] != total:
            curve.append((query.number, total))
        if pin.terms:
            terms = _terms(members, pin, kept, first)
            named = any(kept[row] in secret for row, _ in pin.terms)
            size = int(people[list(pin.cells)].sum())
            alarms.append(Alarm(query, size, terms, user, named))
        else:
            unproven += 1
    return Account(
        user,
        tuple(alarms),
        unproven,
        tuple(curve),
        len(kept),
        space.rank,
        len(first) - len(kept),
        space.complete,
    )


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
    members: Members, pin: Pinned, kept: Sequence[int], first: Mapping[int, Logged]
) -> tuple[Term, ...]:
    """The terms of a proof, those that are added first, the latest of each first."""
    terms = [
        Term(
            first[kept[row]].number,
            members.names[kept[row]],
            int(members.counts[kept[row]]),
            times,
        )
        for row, times in pin.terms
    ]
    return tuple(sorted(terms, key=lambda term: (term.times < 0, -term.query)))
