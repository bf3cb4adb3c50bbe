"""The noisy aggregates of buckets: what was asked of each, from the contributions of its users."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from countleak.diffix.databases.database import Database
from countleak.diffix.flattening import NOTHING, TOPS, Contributions, Noisy, noisy_sum
from countleak.diffix.noise import Bucket, total
from countleak.diffix.order_statistics import Ranked, noisy_largest, noisy_median
from countleak.diffix.releases import Release
from countleak.diffix.sql.queries import REST, Asked, Key
from countleak.diffix.sql.statement import Aggregate, Kind, Table

# A whole number fits into the eight bytes that clients expect.
LARGEST_WHOLE = 2**63 - 1


@dataclass(frozen=True)
class Weighed:
    """A bucket with the seeds of its noise layers and the threshold they draw."""

    bucket: Bucket
    seeds: tuple[int, ...]
    threshold: int

    @property
    def passes(self) -> bool:
        """Whether enough users are in it to be shown."""
        return self.bucket.users >= self.threshold


@dataclass(frozen=True)
class Buckets:
    """The buckets of an answer in the order of their numbers; ``kept`` are the keys of groups.

    The last one is the rest, where there are groups.
    """

    weighed: Sequence[Weighed]
    kept: Sequence[Key]

    def number(self, place: int) -> int:
        """The number by which the database knows a bucket."""
        return REST if self.weighed[place].bucket.merged else place


class Aggregates:
    """Computes aggregates over buckets, each different one once."""

    def __init__(self, database: Database, release: Release, asked: Asked, buckets: Buckets):
        """Compute over ``buckets`` of what is asked."""
        self._database = database
        self._release = release
        self._asked = asked
        self._buckets = buckets
        self._sums: dict[Aggregate, list[Noisy]] = {}

    def values(self, aggregate: Aggregate) -> list[int | float | None]:
        """The noisy aggregate in each bucket, None where too few add to it."""
        function, _, of_noise = aggregate.function.partition("_")
        plain = replace(aggregate, function=function, label="")
        if of_noise:
            return [_coarse(one.sd) for one in self._noisy(plain)]
        if function == "count":
            return [self._count(one) for one in self._noisy(plain)]
        return [_shown(one.value, plain) for one in self._noisy(plain)]

    def _count(self, noisy: Noisy) -> int:
        """A count as it is released; where it was left out, the least there is."""
        return max(round(noisy.value or 0), self._release.least)

    def _noisy(self, aggregate: Aggregate) -> list[Noisy]:
        """An aggregate in each bucket, before it is rounded."""
        if aggregate not in self._sums:
            self._sums[aggregate] = self._computed(aggregate)
        return self._sums[aggregate]

    def _computed(self, aggregate: Aggregate) -> list[Noisy]:
        match aggregate.function:
            case "avg" | "stddev" | "variance":
                return self._per_row(aggregate)
            case "min" | "max" | "median":
                return self._ranked(aggregate)
        if counts_users(aggregate, self._asked.statement.table):
            count = self._users if aggregate.distinct else self._rows
            return [count(weighed) for weighed in self._buckets.weighed]
        return self._flattened(aggregate)

    def _per_row(self, aggregate: Aggregate) -> list[Noisy]:
        """An average, the average squared distance from it, or the root of that: sum by count."""
        squared = aggregate.function != "avg"
        if squared:
            # One noise for both: a variance is the square of the deviation.
            sums = self._flattened(replace(aggregate, function="stddev"))
        else:
            sums = self._noisy(replace(aggregate, function="sum"))
        counts = map(self._count, self._noisy(replace(aggregate, function="count")))
        found = []
        for one, count in zip(sums, counts, strict=True):
            if one.value is None or one.sd is None:
                found.append(NOTHING)
            elif aggregate.function == "variance":
                found.append(Noisy(max(one.value, 0.0) / max(count - 1, 1), one.sd / count))
            elif squared:
                root = math.sqrt(max(one.value, 0.0) / max(count - 1, 1))
                # What moves a square by s moves its root by s over twice the root.
                found.append(Noisy(root, one.sd / count / (2 * root) if root else 0.0))
            else:
                found.append(Noisy(one.value / count, one.sd / count))
        return found

    def _ranked(self, aggregate: Aggregate) -> list[Noisy]:
        """A minimum, maximum or median; a minimum is the maximum of the negative."""
        query = self._asked.ranked(aggregate, TOPS, self._buckets.kept)
        ranked = {
            int(row[0]): Ranked(int(row[1]), _numbers(row[2]))
            for row in self._database.rows(*query)
        }
        found = []
        for place, weighed in enumerate(self._buckets.weighed):
            one = ranked.get(self._buckets.number(place), Ranked())
            compute = noisy_median if aggregate.function == "median" else noisy_largest
            noisy = compute(one, weighed.seeds, aggregate.function)
            if aggregate.function == "min" and noisy.value is not None:
                noisy = replace(noisy, value=-noisy.value)
            found.append(noisy)
        return found

    def _users(self, weighed: Weighed) -> Noisy:
        sd = self._release.sd
        noisy = weighed.bucket.users + total(weighed.seeds, "count", sd)
        return Noisy(noisy, sd * math.sqrt(len(weighed.seeds)))

    def _rows(self, weighed: Weighed) -> Noisy:
        """The rows of a bucket in which everyone has one: counted as where somebody has more.

        Else one person with two rows would change how the rows of all others are counted.
        """
        users = weighed.bucket.users
        ones = Contributions(users, float(users), [1.0] * min(users, TOPS))
        sd = self._release.sd
        return noisy_sum((ones, Contributions()), weighed.seeds, "count", sd)

    def _flattened(self, aggregate: Aggregate) -> list[Noisy]:
        query = self._asked.contributions(aggregate, TOPS, self._buckets.kept)
        sides = {
            int(row[0]): (_side(row[1:4]), _side(row[4:7])) for row in self._database.rows(*query)
        }
        nobody = Contributions(), Contributions()
        return [
            noisy_sum(
                sides.get(self._buckets.number(place), nobody),
                weighed.seeds,
                aggregate.function,
                self._release.sd,
            )
            for place, weighed in enumerate(self._buckets.weighed)
        ]


def clamp_whole(value: int) -> int:
    """A whole number that fits into what clients expect."""
    return max(min(value, LARGEST_WHOLE), -LARGEST_WHOLE)


def counts_users(aggregate: Aggregate, table: Table) -> bool:
    """Whether an aggregate counts users, to which each adds one."""
    if aggregate.function != "count":
        return False
    if aggregate.column is None:
        return table.one_row_per_user
    # Rows without a user are left out, so nothing of the user column is NULL.
    return aggregate.column.name in table.users and (aggregate.distinct or table.one_row_per_user)


def _shown(value: float | None, aggregate: Aggregate) -> int | float | None:
    whole = aggregate.column is not None and aggregate.column.kind is Kind.WHOLE
    if value is None or aggregate.function != "sum" or not whole:
        return _rounded(value)
    return clamp_whole(round(value))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _coarse(sd: float | None) -> float | None:
    """The SD of noise as it is told: to the 1, 2 or 5 times a power of ten next to its 20th part.

    It is computed from what people add, without noise: with all its digits it would tell what one
    of them adds.
    """
    if sd is None or sd == 0:
        return sd
    power = 10.0 ** math.floor(math.log10(sd / 20))
    step = power * min((1, 2, 5, 10), key=lambda factor: abs(factor - sd / 20 / power))
    return round(round(sd / step) * step, 12)


def _side(row: Sequence[Any]) -> Contributions:
    users, added, largest = row
    return Contributions(int(users), float(added or 0), _numbers(largest))


def _numbers(values: Sequence[Any] | None) -> list[float]:
    return [float(value) for value in values or () if value is not None]
