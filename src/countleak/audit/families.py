"""Pools of questions by the name of their family, for people of whom some columns are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.digits import digit_queries, fits_digits
from countleak.attack.queries.groupings import RANGES, Grouping, groupings_of
from countleak.attack.queries.hashed import random_hashed
from countleak.attack.queries.ids import are_integers
from countleak.attack.queries.modular import fits_modular, modular_queries
from countleak.attack.queries.ranges import fits_ranges, range_queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.queries.tables import TABLE, table_queries, tables_of
from countleak.attack.transcript import Transcript
from countleak.audit.people import People
from countleak.errors import InputError

DEFAULT_QUERIES, DEFAULT_TABLES = 1000, 500
# What a plain database groups by; the others are of noisy fronts, to be found by asking.
PLAIN_GROUPINGS = ("", "floor", "substring", "date_trunc")
EVERY_GROUPING = ("", *RANGES, "substring", "date_trunc")
# Cells of so many people are not all suppressed by a system that hides the usual 5.
SMALLEST_CELL = 4.0
# Of more columns most cells hold nobody.
MOST_WAYS = 3


@dataclass(frozen=True)
class Known:
    """What is known of everyone besides who they are: ``columns``, and how they can be grouped.

    ``functions`` are those that the system groups by, of up to ``ways`` columns at once; tables are
    made of cells that hold ``smallest`` people or more on average. Some functions may be
    ``of_any_width``. With ``merged`` the system shows what it merges of a table, too.
    """

    columns: tuple[str, ...] = ()
    functions: tuple[str, ...] = PLAIN_GROUPINGS
    smallest: float = SMALLEST_CELL
    ways: int = MOST_WAYS
    merged: bool = False
    of_any_width: tuple[str, ...] = ()

    def of(self, people: People) -> dict[str, NDArray[Any]]:
        """The columns (n,) by name, and the id where it is a number."""
        known = {name: people.column(name) for name in self.columns}
        if len(people.key) == 1 and are_integers(people.ids):
            return {people.key[0]: people.ids, **known}
        return known

    def groupings(self, people: People) -> list[Grouping]:
        """The ways to group people by what is known; never by the ids themselves."""
        found: list[Grouping] = []
        for name, values in self.of(people).items():
            ways = [w for w in self.functions if w or name not in people.key]
            found += groupings_of(name, values, ways, self.of_any_width)
        return found


def families_for(people: People, known: Known) -> tuple[str, ...]:
    """The families whose questions can be asked of these people in SQL, cheapest first."""
    columns = known.of(people)
    fits: Mapping[str, bool] = {
        "modular": len(people.key) == 1 and fits_modular(people.ids),
        "subsets": True,
        "digits": len(people.key) == 1 and fits_digits(people.ids),
        "tables": bool(known.groupings(people)),
        "ranges": any(fits_ranges(values) for values in columns.values()),
    }
    return tuple(name for name, holds in fits.items() if holds)


def family_queries(
    family: str,
    people: People,
    m: int | None,
    rng: np.random.Generator,
    known: Known | None = None,
) -> Queries:
    """``m`` questions of a family about everyone, or as many as it has by default.

    Of tables, ``m`` is their number: a statement each.
    """
    known = known or Known()
    if m is not None and m < 1:
        raise InputError(f"{m} queries; ask at least one")
    match family:
        case "digits":
            pool = digit_queries(people.ids)
            if m is None:
                return pool
            return pool.take(np.sort(rng.choice(len(pool), size=min(m, len(pool)), replace=False)))
        case "modular":
            return modular_queries(people.ids, m or DEFAULT_QUERIES, rng)
        case "hashed":
            return random_hashed(people.ids, m or DEFAULT_QUERIES, rng)
        case "ranges":
            return range_queries(people.ids, known.of(people), m or DEFAULT_QUERIES, rng)
        case "signs":
            return random_signs(people.ids, m or DEFAULT_QUERIES, rng)
        case "tables":
            return _tables(people, m or DEFAULT_TABLES, rng, known)
    return random_subsets(people.ids, m or DEFAULT_QUERIES, rng)


def _tables(people: People, count: int, rng: np.random.Generator, known: Known) -> Queries:
    groupings = known.groupings(people)
    columns = known.of(people)
    tables = tables_of(columns, groupings, count, rng, ways=known.ways, smallest=known.smallest)
    if not tables:
        raise InputError(
            "what is known of the people makes no table with more than one cell; name known "
            "columns of which several people share a value"
        )
    return table_queries(people.ids, columns, tables, merged=known.merged)


def statements(asked: Queries | Transcript, *, by_table: bool = True) -> int:
    """How many statements it takes, or took, to ask.

    All cells of a table come in one, unless the system is not asked ``by_table``.
    """
    if isinstance(asked, Transcript):
        queries, about = asked.queries, asked.about
    else:
        queries, about = asked, np.zeros(len(asked), np.int64)
    if queries.family.name != "tables" or not by_table:
        return len(queries)
    return len(np.unique(np.column_stack([about, queries.parameters[TABLE]]), axis=0))
