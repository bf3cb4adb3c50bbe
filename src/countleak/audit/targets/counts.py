"""A query as the SQL that is sent: written once, for every system that takes SQL."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from countleak.attack.queries import Queries, count_statement
from countleak.audit.people import Condition
from countleak.diffix.sql.parser import PARTS, lift, split
from countleak.diffix.sql.statement import snap
from countleak.errors import InputError


@dataclass(frozen=True)
class System:
    """What a system makes of SQL: whether it snaps ranges, and as what it answers what it hides.

    Where ranges are snapped they also end before their upper bound.
    """

    name: str
    snaps: bool
    held_back: float | None


# A count that Diffix releases is at least 2, so 0 says that it was held back.
DIFFIX = System("diffix", snaps=True, held_back=0.0)
# A database counts: 0 is nobody, and BETWEEN holds both its bounds.
PLAIN = System("plain", snaps=False, held_back=None)
SYSTEMS = {system.name: system for system in (DIFFIX, PLAIN)}


@dataclass(frozen=True)
class Counts:
    """Counts of a table's users for whom a condition holds, within the ids that are asked about.

    Where a system snaps ranges, other people with ids in the snapped range are counted too, so
    attack them all.
    """

    table: str
    column: str
    condition: Condition | None = None
    system: System = DIFFIX

    def __post_init__(self) -> None:
        for name in (self.table, self.column):
            if not re.fullmatch(r"[^\W\d]\w*", name):
                raise InputError(f"{name!r} cannot stand in SQL as a name; rename it")

    def statement(self, queries: Queries, position: int) -> str:
        """The SQL of a query."""
        if not queries.where:
            raise InputError(
                f"{queries.family} queries have no SQL; ask digits, or subsets with an id column"
            )
        least, most = int(queries.ids.min()), int(queries.ids.max())
        if self.system.snaps:
            low, high = snap(Fraction(least), Fraction(most + 1))
            least, most = int(low), int(high)
        return count_statement(
            queries.where[position],
            table=self.table,
            column=self.column,
            condition=None if self.condition is None else str(self.condition),
            between=(least, most),
        )

    def harmless(self, queries: Queries, position: int) -> str:
        """The same, checked: a file of queries could hold any text."""
        statement = self.statement(queries, position)
        lifted = lift(statement)
        if not _only_counts(statement if lifted is None else lifted[0]):
            raise InputError(
                f"query {position} is no plain SELECT of a count and is not sent; write the "
                "queries with `countleak plan`"
            )
        return statement


@lru_cache(maxsize=200)
def _only_counts(statement: str) -> bool:
    """Whether a statement is one SELECT of columns, constants and functions that compute."""
    sources = split(statement)
    if len(sources) != 1:
        return False
    with sources[0].tree() as tree:
        return all(type(node) in PARTS for node in tree.walk())
