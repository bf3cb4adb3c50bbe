"""The query system: a question in SQL in, noisy rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

from countleak.diffix.databases.database import Database
from countleak.diffix.flattening import TOPS, Contributions, flatten
from countleak.diffix.noise import STAR, Bucket, Layers, total
from countleak.diffix.releases import Release
from countleak.diffix.salt import MASK, Salt
from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.parser import parse, read_statement
from countleak.diffix.sql.render import buckets_query, contributions_query
from countleak.diffix.sql.statement import (
    Aggregate,
    Column,
    Expression,
    Kind,
    Statement,
    Table,
    snap_ranges,
)

T = TypeVar("T")
Key = tuple[object, ...]


@dataclass(frozen=True)
class Row:
    """A row of an answer: what was selected, in that order; None where it is suppressed."""

    values: tuple[Any, ...]
    released: bool


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
        """Reads expressions over the columns of the table, as the release allows them."""
        return Reader(self.database.table, self.release.generalises)

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
        rows = _Question(self, statement).rows()
        return Answer(
            _chosen(columns, statement.shown),
            tuple(replace(row, values=_chosen(row.values, statement.shown)) for row in rows),
            statement.notices,
        )

    def seeds(self, statement: Statement, bucket: Bucket) -> tuple[int, ...]:
        """The seeds of the noise layers of a bucket."""
        return Layers(self.release.layering, statement, self.salt).seeds(bucket)


class _Question:
    """A statement as it is answered."""

    def __init__(self, engine: Engine, statement: Statement):
        self._database = engine.database
        self._release = engine.release
        self._dialect = engine.database.dialect(engine.salt)
        self._statement = statement
        self._layers = Layers(engine.release.layering, statement, engine.salt)

    def rows(self) -> list[Row]:
        """The rows of all groups and aggregates, shown or not."""
        buckets = self._buckets()
        if not self._statement.groups:
            return [self._global_row(buckets[0])]
        return self._group_rows(buckets)

    def _buckets(self, without: Sequence[Key] | None = None) -> list["_Weighed"]:
        """Every group, or, ``without`` those, the rest merged into one."""
        materials = self._layers.materials
        query = buckets_query(self._statement, materials, self._dialect, without)
        keys = 0 if without is not None else len(self._statement.groups)
        buckets = []
        for row in self._database.rows(*query):
            hashes = [(value or 0) & MASK for value in row[keys + 1 :]]
            by_column = {
                column.name: value for column, value in zip(materials, hashes[1:], strict=True)
            }
            bucket = Bucket(
                tuple(row[:keys]), int(row[keys]), hashes[0], by_column, without is not None
            )
            seeds = self._layers.seeds(bucket)
            buckets.append(_Weighed(bucket, seeds, self._release.threshold.draw(seeds)))
        return buckets

    def _global_row(self, weighed: "_Weighed") -> Row:
        if not weighed.passes:
            # The system answered a suppressed count 0; a sum of nobody has no value.
            zeros = (0 if a.function == "count" else None for a in self._statement.aggregates)
            return Row(tuple(zeros), released=False)
        return Row(self._aggregates([weighed])[0], released=True)

    def _group_rows(self, every: list["_Weighed"]) -> list[Row]:
        kept = [weighed for weighed in every if weighed.passes]
        kept.sort(key=lambda weighed: tuple((v is None, str(v)) for v in weighed.bucket.key))
        rows = [
            Row((*_shown(self._statement, weighed.bucket), *values), released=True)
            for weighed, values in zip(kept, self._aggregates(kept), strict=True)
        ]
        if len(kept) == len(every):
            return rows
        kept_keys = [weighed.bucket.key for weighed in kept]
        merged = self._buckets(kept_keys)[0]
        if merged.passes:
            values = self._aggregates([merged], kept_keys)[0]
            rows.append(Row((*[STAR] * len(self._statement.groups), *values), released=True))
        return rows

    def _aggregates(
        self, buckets: list["_Weighed"], without: Sequence[Key] | None = None
    ) -> list[tuple[Any, ...]]:
        """The noisy aggregates of each bucket."""
        columns = []
        for aggregate in self._statement.aggregates:
            if aggregate.function == "avg":
                sums, counts = (
                    self._noisy(replace(aggregate, function=part), buckets, without)
                    for part in ("sum", "count")
                )
                columns.append([_quotient(s, c) for s, c in zip(sums, counts, strict=True)])
            else:
                columns.append(self._noisy(aggregate, buckets, without))
        return list(zip(*columns, strict=True))

    def _noisy(
        self, aggregate: Aggregate, buckets: list["_Weighed"], without: Sequence[Key] | None
    ) -> list[int | float | None]:
        """A count or a sum in each bucket, with its noise; None where too few add to a sum."""
        if _counts_users(aggregate, self._statement.table):
            sd = self._release.sd
            return [
                self._released(weighed.bucket.users + total(weighed.seeds, "count", sd))
                for weighed in buckets
            ]
        query = contributions_query(self._statement, aggregate, TOPS, self._dialect, without)
        keys = 0 if without is not None else len(self._statement.groups)
        sides = {
            tuple(row[:keys]): (_side(row[keys:]), _side(row[keys + 3 :]))
            for row in self._database.rows(*query)
        }
        return [self._flat(aggregate, weighed, *sides[weighed.bucket.key]) for weighed in buckets]

    def _flat(
        self, aggregate: Aggregate, weighed: "_Weighed", plus: Contributions, minus: Contributions
    ) -> int | float | None:
        """An aggregate from what users add and subtract, flattened, with its noise."""
        if plus.users + minus.users < weighed.threshold:
            return 0 if aggregate.function == "count" else None
        above, below = flatten(plus, weighed.seeds), flatten(minus, weighed.seeds)
        sd = self._release.sd * max(above.scale, below.scale)
        noisy = above.sum - below.sum + total(weighed.seeds, aggregate.function, sd)
        if aggregate.function == "count":
            return self._released(noisy)
        whole = aggregate.column is not None and aggregate.column.kind is Kind.WHOLE
        return round(noisy) if whole else round(noisy, 3)

    def _released(self, noisy: float) -> int:
        return max(round(noisy), self._release.least)


@dataclass(frozen=True)
class _Weighed:
    """A bucket with the seeds of its noise layers and the threshold they draw."""

    bucket: Bucket
    seeds: tuple[int, ...]
    threshold: int

    @property
    def passes(self) -> bool:
        return self.bucket.users >= self.threshold


def _chosen(items: tuple[T, ...], positions: tuple[int, ...]) -> tuple[T, ...]:
    return tuple(items[at] for at in positions)


def _counts_users(aggregate: Aggregate, table: Table) -> bool:
    """Whether an aggregate counts users, to which each adds one."""
    if aggregate.function != "count":
        return False
    if aggregate.column is None:
        return table.one_row_per_user
    # Rows without a user are left out, so nothing of the user column is NULL.
    return aggregate.column.name == table.user and (aggregate.distinct or table.one_row_per_user)


def _quotient(noisy_sum: float | None, noisy_count: float | None) -> float | None:
    return round(noisy_sum / noisy_count, 3) if noisy_sum is not None and noisy_count else None


def _shown(statement: Statement, bucket: Bucket) -> Key:
    """The values of a group; whole numbers as such, but for columns of other numbers."""
    return tuple(
        int(value)
        if isinstance(value, float) and group is not Kind.NUMBER and value.is_integer()
        else value
        for group, value in zip(map(_kind, statement.groups), bucket.key, strict=True)
    )


def _kind(group: Expression) -> Kind:
    return group.kind if isinstance(group, Column) else Kind.WHOLE


def _side(row: Sequence[Any]) -> Contributions:
    users, added, largest = row[:3]
    return Contributions(
        int(users), float(added or 0), [float(v) for v in largest or () if v is not None]
    )
