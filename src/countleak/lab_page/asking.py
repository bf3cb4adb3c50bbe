"""A question to Diffix by hand, and how its answer came about."""

from dataclasses import dataclass
from functools import cache

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.explanation import Explanation, explain
from countleak.diffix.releases import release_of
from countleak.errors import InputError
from countleak.lab_page.settings import LONGEST_QUESTION, RELEASES, SALT, among, bank

EXAMPLES = {
    "A plain count": "SELECT count(*) FROM loans WHERE status = 'C'",
    "A few people": (
        "SELECT count(*) FROM loans\nWHERE status = 'D' AND client_id BETWEEN 4000 AND 4500"
    ),
    "By group": "SELECT status, count(*) FROM loans\nWHERE duration = 12 GROUP BY status",
    "The attack": (
        "SELECT count(DISTINCT client_id) FROM loans\n"
        "WHERE floor(100 * pow(client_id * 2, 0.7) + 0.5)\n"
        "    = floor(100 * pow(client_id * 2, 0.7))\n"
        "  AND status = 'C'\n"
        "  AND client_id BETWEEN 2000 AND 3000"
    ),
    "Refused": "SELECT count(*) FROM loans WHERE status = 'A' OR status = 'B'",
}


@dataclass(frozen=True)
class Question:
    """A question in SQL, and the release of Diffix that it is put to."""

    text: str
    release: str = "18.1"

    def __post_init__(self) -> None:
        among("release", self.release, RELEASES)
        if len(self.text) > LONGEST_QUESTION:
            raise InputError(
                f"a question of {len(self.text)} characters; write at most {LONGEST_QUESTION}"
            )

    def answer(self) -> Explanation:
        """The answer and how it came about; ``Refused`` where there is none."""
        return explain(_engine(self.release), self.text)


@cache
def _engine(release: str) -> Engine:
    return Engine(_database(), release_of(release), SALT)


@cache
def _database() -> Duck:
    people = bank()
    return Duck.of_columns(people.all_columns, SALT, table=people.table, user=people.key[0])
