"""The largest question that is read: every size is checked before any work is done on it."""

from collections.abc import Sized
from dataclasses import dataclass

from countleak.errors import Refused


@dataclass(frozen=True)
class Limits:
    """At most this many of each.

    ``digits`` are the characters of a number; ``expressions`` are selected, ``aggregates`` differ
    among them; ``elements`` stand in an IN list, and ``grouped_elements`` in all lists of a query
    with groups, because each is a noise layer of every group; ``terms`` are the columns, constants
    and functions of one expression, ``depth`` how deep they are nested, ``functions`` how many may
    be used together with constants; ``text`` characters has a text, and ``text_read`` are read of
    one row by the functions and patterns of a query, whose time would tell that it matches;
    ``rows`` has an answer; ``subqueries`` are nested; ``tables`` are joined.
    """

    characters: int = 200_000
    tokens: int = 20_000
    digits: int = 40
    expressions: int = 100
    aggregates: int = 20
    groups: int = 10
    conditions: int = 100
    elements: int = 2_000
    grouped_elements: int = 100
    terms: int = 100
    depth: int = 12
    functions: int = 5
    text: int = 1_000
    text_read: int = 10_000
    rows: int = 10_000
    subqueries: int = 3
    tables: int = 4

    def check(self, size: str, items: Sized | int) -> None:
        """Refuse more ``items`` than there may be of a ``size``."""
        most = getattr(self, size)
        count = items if isinstance(items, int) else len(items)
        if count > most:
            raise Refused(f"The query has {count} {NAMES[size]}; at most {most} are allowed.")


NAMES = {
    "characters": "characters",
    "tokens": "words and signs",
    "expressions": "selected expressions",
    "aggregates": "different aggregates",
    "groups": "GROUP BY expressions",
    "conditions": "conditions",
    "elements": "elements in an IN list",
    "grouped_elements": "elements in IN lists beside GROUP BY",
    "terms": "terms in one expression",
    "text_read": "characters for functions and patterns of texts to read in a row",
    "tables": "tables in FROM",
}
LIMITS = Limits()
