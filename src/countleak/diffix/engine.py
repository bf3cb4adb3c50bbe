"""The query system: a question in SQL in, noisy rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from countleak.diffix.databases.database import Database
from countleak.diffix.flatten import TOPS, Contributions, flatten
from countleak.diffix.layers import STAR, Bucket, materials, seeds
from countleak.diffix.noise import total
from countleak.diffix.releases import Release
from countleak.diffix.salt import MASK, Salt
from countleak.diffix.sql.align import align
from countleak.diffix.sql.parse import parse
from countleak.diffix.sql.render import buckets_query, contributions_query
from countleak.diffix.sql.statement import (
    Aggregate,
    Column,
    Expression,
    Kind,
    Range,
    Statement,
    Table,
)

T = TypeVar("T")
Key = tuple[object, ...]


@dataclass(frozen=True)
class Row:
    """A row of an answer: what was selected, in that order; None where it is held back."""

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

    def ask(self, text: str) -> Answer:
        """The answer to a question; ``Refused`` where there is none."""
        statement, notices = self.understand(text)
        columns = (*statement.labels, *(aggregate.label for aggregate in statement.aggregates))
        buckets = self._buckets(statement)
        if not statement.groups:
            rows = [self._global_row(statement, buckets[0])]
        else:
            rows = self._group_rows(statement, buckets)
        return Answer(
            _chosen(columns, statement.shown),
            tuple(replace(row, values=_chosen(row.values, statement.shown)) for row in rows),
            notices,
        )

    def understand(self, text: str) -> tuple[Statement, tuple[str, ...]]:
        """The statement that will be run, its ranges aligned, and notices of what was changed."""
        statement = parse(text, self.database.table)
        self.release.check(statement)
        conditions, notices = [], []
        for condition in statement.conditions:
            if isinstance(condition, Range):
                condition, notice = align(condition)
                notices += [notice] if notice else []
            conditions.append(condition)
        return replace(statement, conditions=tuple(conditions)), tuple(notices)

    def seeds(self, statement: Statement, bucket: Bucket) -> tuple[int, ...]:
        """The seeds of the noise layers of a bucket."""
        return seeds(self.release.layering, statement, self.salt, bucket)

    def _buckets(self, statement: Statement, without: Sequence[Key] | None = None) -> list[Bucket]:
        """Every group, or, ``without`` those, the rest merged into one."""
        values = materials(self.release.layering, statement, self.salt)
        dialect = self.database.dialect(self.salt)
        rows = self.database.rows(*buckets_query(statement, values, dialect, without))
        keys = 0 if without is not None else len(statement.groups)
        return [
            Bucket(
                tuple(row[:keys]),
                int(row[keys]),
                (row[keys + 1] or 0) & MASK,
                {
                    column.name: (found or 0) & MASK
                    for column, found in zip(values, row[keys + 2 :], strict=True)
                },
                merged=without is not None,
            )
            for row in rows
        ]

    def _weighed(self, statement: Statement, bucket: Bucket) -> "_Weighed":
        layers = self.seeds(statement, bucket)
        return _Weighed(bucket, layers, self.release.threshold.draw(layers))

    def _global_row(self, statement: Statement, bucket: Bucket) -> Row:
        weighed = self._weighed(statement, bucket)
        if not weighed.passes:
            # The system answered a suppressed count 0; a sum of nobody has no value.
            zeros = (0 if a.function == "count" else None for a in statement.aggregates)
            return Row(tuple(zeros), released=False)
        return Row(self._aggregates(statement, [weighed])[0], released=True)

    def _group_rows(self, statement: Statement, buckets: list[Bucket]) -> list[Row]:
        every = [self._weighed(statement, bucket) for bucket in buckets]
        kept = [weighed for weighed in every if weighed.passes]
        kept.sort(key=lambda weighed: tuple((v is None, str(v)) for v in weighed.bucket.key))
        rows = [
            Row((*_shown(statement, weighed.bucket), *found), released=True)
            for weighed, found in zip(kept, self._aggregates(statement, kept), strict=True)
        ]
        if len(kept) == len(every):
            return rows
        kept_keys = [weighed.bucket.key for weighed in kept]
        merged = self._weighed(statement, self._buckets(statement, kept_keys)[0])
        if merged.passes:
            found = self._aggregates(statement, [merged], kept_keys)[0]
            rows.append(Row((*[STAR] * len(statement.groups), *found), released=True))
        return rows

    def _aggregates(
        self, statement: Statement, buckets: list["_Weighed"], without: Sequence[Key] | None = None
    ) -> list[tuple[Any, ...]]:
        """The noisy aggregates of each bucket."""
        columns = []
        for aggregate in statement.aggregates:
            if aggregate.function == "avg":
                sums, counts = (
                    self._noisy(statement, replace(aggregate, function=part), buckets, without)
                    for part in ("sum", "count")
                )
                columns.append([_quotient(s, c) for s, c in zip(sums, counts, strict=True)])
            else:
                columns.append(self._noisy(statement, aggregate, buckets, without))
        return list(zip(*columns, strict=True))

    def _noisy(
        self,
        statement: Statement,
        aggregate: Aggregate,
        buckets: list["_Weighed"],
        without: Sequence[Key] | None,
    ) -> list[int | float | None]:
        """A count or a sum in each bucket, with its noise; None where too few add to a sum."""
        if _counts_users(aggregate, statement.table):
            return [
                self._released(weighed.bucket.users + weighed.noise("count", self.release.sd))
                for weighed in buckets
            ]
        dialect = self.database.dialect(self.salt)
        rows = self.database.rows(
            *contributions_query(statement, aggregate, TOPS, dialect, without)
        )
        keys = 0 if without is not None else len(statement.groups)
        sides = {tuple(row[:keys]): (_side(row[keys:]), _side(row[keys + 3 :])) for row in rows}
        return [self._flat(aggregate, weighed, *sides[weighed.bucket.key]) for weighed in buckets]

    def _flat(
        self, aggregate: Aggregate, weighed: "_Weighed", plus: Contributions, minus: Contributions
    ) -> int | float | None:
        """An aggregate from what users add and subtract, flattened, with its noise."""
        if plus.users + minus.users < weighed.threshold:
            return 0 if aggregate.function == "count" else None
        above, below = flatten(plus, weighed.layers), flatten(minus, weighed.layers)
        noise = weighed.noise(aggregate.function, self.release.sd * max(above.scale, below.scale))
        noisy = above.sum - below.sum + noise
        if aggregate.function == "count":
            return self._released(noisy)
        whole = aggregate.column is not None and aggregate.column.kind is Kind.WHOLE
        return round(noisy) if whole else round(noisy, 3)

    def _released(self, noisy: float) -> int:
        return max(round(noisy), self.release.least)


def _chosen(items: tuple[T, ...], positions: tuple[int, ...]) -> tuple[T, ...]:
    return tuple(items[at] for at in positions)


@dataclass(frozen=True)
class _Weighed:
    """A bucket with its noise layers and the threshold they draw."""

    bucket: Bucket
    layers: tuple[int, ...]
    threshold: int

    @property
    def passes(self) -> bool:
        return self.bucket.users >= self.threshold

    def noise(self, purpose: str, sd: float) -> float:
        return total(self.layers, purpose, sd)


def _counts_users(aggregate: Aggregate, table: Table) -> bool:
    """Whether an aggregate counts users, to which each adds one."""
    if aggregate.function != "count":
        return False
    if aggregate.column is None:
        return table.one_row_a_user
    # Rows without a user are left out, so nothing of the user column is NULL.
    return aggregate.column.name == table.user and (aggregate.distinct or table.one_row_a_user)


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
