"""The query system: a question in SQL in, noisy rows out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from countleak.diffix.aggregates import Aggregates, Buckets, Weighed, clamp_whole
from countleak.diffix.databases.database import Database
from countleak.diffix.finishing import Row, chosen, finish
from countleak.diffix.noise import STAR, Bucket, Layers
from countleak.diffix.releases import Release
from countleak.diffix.salt import MASK, Salt
from countleak.diffix.sql.dates import date_of
from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.parser import parse, read_statement
from countleak.diffix.sql.queries import Asked, Key
from countleak.diffix.sql.render import Sql
from countleak.diffix.sql.statement import Column, Expression, Kind, Statement, snap_ranges
from countleak.errors import Refused

# The hash of an empty set of users.
NOBODY = 1
# At least as many groups are weighed beside those that are shown.
WEIGHED = 8


@dataclass(frozen=True)
class Answer:
    """The rows of an answer under their column names, and what the system wants noticed."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Engine:
    """A release of the system over a database, with its secret salt."""

    database: Database
    release: Release
    salt: Salt

    @property
    def reader(self) -> Reader:
        """Reads expressions over the columns of the tables, as the release allows them."""
        first, *others = self.database.tables
        return Reader(first, self.release.generalises, others=tuple(others))

    def read(self, question: str | exp.Expr) -> Statement:
        """The statement that will be run for a text or its parsed tree; ``Refused`` if none is."""
        if isinstance(question, str):
            statement = parse(question, self.reader)
        else:
            statement = read_statement(question, self.reader)
        if self.release.check is not None:
            self.release.check(statement)
        return snap_ranges(statement)

    def ask(self, question: str | Statement) -> Answer:
        """The answer to a question; ``Refused`` where there is none."""
        statement = self.read(question) if isinstance(question, str) else question
        columns = (*statement.labels, *(aggregate.label for aggregate in statement.aggregates))
        rows = finish(statement, _Question(self, statement).rows())
        return Answer(chosen(columns, statement.shown), rows, statement.notices)

    def layers(self, statement: Statement) -> Layers:
        """The noise layers of a statement."""
        return Layers(self.release.layering, statement, self.salt)

    def seeds(self, statement: Statement, bucket: Bucket) -> tuple[int, ...]:
        """The seeds of the noise layers of a bucket."""
        return self.layers(statement).seeds(bucket)

    def weighed(self, statement: Statement) -> list[Weighed]:
        """The buckets of a statement before noise, suppressed ones too: for those who may see."""
        return _Question(self, statement).weighed()


class _Question:
    """A statement as it is answered.

    What it does depends on the statement, and on what is released, but not on what is suppressed:
    the rest is always computed, and whatever is computed of a bucket that passes is computed of one
    that does not.
    """

    def __init__(self, engine: Engine, statement: Statement):
        self._database = engine.database
        self._release = engine.release
        self._statement = statement
        self._layers = engine.layers(statement)
        dialect = engine.database.dialect(engine.salt)
        self._asked = Asked(statement, self._layers.materials, dialect)

    def rows(self) -> list[Row]:
        """The rows of all groups and aggregates, shown or not."""
        groups = self._statement.groups
        every = self.weighed()
        kept = every
        if groups:
            kept = [weighed for weighed in every if weighed.passes]
            # Nobody never passes.
            kept += [w for w in self._nobody(len(every) - len(kept)) if w.passes]
            kept.sort(key=lambda weighed: tuple((v is None, str(v)) for v in weighed.bucket.key))
            _check_rows(kept)
        keys = [weighed.bucket.key for weighed in kept]
        rest = self._weighed(self._asked.rest(keys), merged=True) if groups else []
        buckets = Buckets([*kept, *rest], keys)
        aggregates = Aggregates(self._database, self._release, self._asked, buckets)
        columns = [aggregates.values(aggregate) for aggregate in self._statement.aggregates]
        values = list(zip(*columns, strict=True)) or [()] * len(buckets.weighed)
        if not groups:
            return [self._global_row(buckets.weighed[0], values[0])]
        return [
            Row((*self._key(weighed.bucket), *row), released=True)
            for weighed, row in zip(buckets.weighed, values, strict=True)
            if weighed.passes
        ]

    def weighed(self) -> list[Weighed]:
        """The buckets that the conditions leave, one without groups."""
        return self._weighed(self._asked.buckets(self._release.threshold.least))

    def _weighed(self, query: Sql, *, merged: bool = False) -> list[Weighed]:
        """The buckets that a query finds, with their seeds and thresholds."""
        keys = 0 if merged else len(self._statement.groups)
        return [
            self._weigh(tuple(row[:keys]), int(row[keys]), row[keys + 1 :], merged)
            for row in self._database.rows(*query)
        ]

    def _weigh(self, key: Key, users: int, found: Sequence[int | None], merged: bool) -> Weighed:
        """A bucket of the hashes of its users and of the values of each material."""
        hashes = [(value or 0) & MASK for value in found]
        by_column = {
            column.name: value
            for column, value in zip(self._layers.materials, hashes[1:], strict=True)
        }
        # Nobody has a hash, too: else their layers were equal, and fewer draws took less time.
        bucket = Bucket(key, users, hashes[0] or NOBODY, by_column, merged)
        seeds = self._layers.seeds(bucket)
        return Weighed(bucket, seeds, self._release.threshold.draw(seeds))

    def _nobody(self, suppressed: int) -> list[Weighed]:
        """Groups of nobody, for those that are missing where few are suppressed.

        Else time told whether two people are in one group, which is weighed, or each in one of
        their own, which the database leaves out.
        """
        key = tuple("" if g.kind is Kind.TEXT else 0.0 for g in self._statement.groups)
        found = [0] * (1 + len(self._layers.materials))
        return [self._weigh(key, 0, found, merged=False) for _ in range(suppressed, WEIGHED)]

    def _global_row(self, weighed: Weighed, values: tuple[Any, ...]) -> Row:
        if weighed.passes:
            return Row(values, released=True)
        # The system answered a suppressed count 0; a sum of nobody has no value.
        zeros = (0 if a.function == "count" else None for a in self._statement.aggregates)
        return Row(tuple(zeros), released=False)

    def _key(self, bucket: Bucket) -> Key:
        """The values of a group; whole numbers as such, but for columns of other numbers."""
        if bucket.merged:
            return (STAR,) * len(self._statement.groups)
        pairs = zip(self._statement.groups, bucket.key, strict=True)
        return tuple(_shown(group, value) for group, value in pairs)


def _check_rows(kept: list[Weighed]) -> None:
    if len(kept) > LIMITS.rows:
        raise Refused(f"The answer has more than {LIMITS.rows} rows; group more coarsely.")


def _shown(group: Expression, value: object) -> object:
    is_column = isinstance(group, Column)
    if group.kind is Kind.DATE and isinstance(value, float):
        return date_of(value)
    if not isinstance(value, float) or not value.is_integer():
        return value
    if is_column and group.kind is Kind.NUMBER:
        return value
    return clamp_whole(int(value)) if is_column else int(value)
