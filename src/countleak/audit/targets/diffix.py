"""The rebuilt Diffix as a target: every query becomes the SQL that the paper sent."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.tables import Tables
from countleak.attack.secrets import Secret
from countleak.attack.transcript import Answers
from countleak.audit.people import People
from countleak.audit.targets.sql import SqlQuestions
from countleak.diffix.databases.database import Database
from countleak.diffix.engine import Answer, Engine
from countleak.diffix.releases import Release, release_of
from countleak.diffix.salt import Salt, salt_file
from countleak.errors import InputError

# Small enough that little is lost when a run is stopped.
BATCH = 100


class Diffix:
    """A release of Diffix over people in a database, counting those for whom a condition holds.

    Queries are asked within the range of the grid that holds all ids they are about, as the paper
    asked them; other people with ids in that range are counted too, so attack them all.
    """

    def __init__(
        self,
        data: People | Database,
        count: str | Secret | None = None,
        release: str | Release = "18.1",
        salt: Salt | Path | None = None,
    ):
        """Ask a database, or people, who are loaded into a DuckDB under their table's name.

        ``salt`` is a secret or the file that keeps it; without one it is random, and forgotten.
        """
        secret_salt = salt_file(salt) if isinstance(salt, Path) else salt or Salt.random()
        if isinstance(count, str):
            from countleak.attack.secrets import parse_secret

            count = data.named(count) if isinstance(data, People) else parse_secret(count)
        self.secret = count
        if isinstance(data, People):
            if self.secret is not None:
                # It raises for a condition that holds for nobody, before anything is asked.
                data.truth(self.secret)
            if len(data.key) > 1:
                raise InputError("Diffix knows people by one column, not by a composite key")
            # Loaded here: most of countleak needs no database.
            from countleak.diffix.databases.duck import Duck

            data = Duck.of_columns(
                data.all_columns, secret_salt, table=data.table, user=data.key[0]
            )
        self.engine = Engine(
            data, release_of(release) if isinstance(release, str) else release, secret_salt
        )
        table = self.engine.database.tables[0]
        self.questions = SqlQuestions(table.name, (table.user,), self.secret)

    def __str__(self) -> str:
        return f"Diffix {self.engine.release.name} over {self.questions.table}"

    def ask(self, statement: str) -> Answer:
        """The answer to a question of one's own, in SQL."""
        return self.engine.ask(statement)

    def answer(self, queries: Queries, positions: NDArray[np.int64]) -> Iterator[Answers]:
        """Ask the queries one by one; a suppressed count is one that is not released.

        Cells are asked for table by table.
        """
        if isinstance(queries.family, Tables):
            for table, statement in self.questions.by_tables(queries, positions):
                yield self.questions.counted(
                    table, (row.values for row in self.ask(statement).rows)
                )
            return
        for start in range(0, positions.size, BATCH):
            batch = positions[start : start + BATCH]
            rows = [self.ask(self.statement(queries, at)).rows[0] for at in batch.tolist()]
            released = np.array([row.released for row in rows])
            values = np.array([row.values[0] for row in rows], dtype=np.float64)
            yield Answers(batch, np.where(released, values, np.nan), released)

    def statement(self, queries: Queries, position: int) -> str:
        """The SQL of the question at a position."""
        return self.questions.statement(queries, position)
