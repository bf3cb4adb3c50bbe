"""A generated population, and conditions on it that are computed twice: as SQL and by numpy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.errors import InputError

REGIONS, TOWNS = 40, 1200
STATUS = ("A", "B", "C", "D")
SHARES = (0.62, 0.25, 0.1, 0.03)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Population:
    """Columns (n,) by name: town, region, sex, age, income and status."""

    columns: Mapping[str, NDArray[Any]]
    _known: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def holding(self, sql: str, mask: Callable[[], Mask]) -> "Condition":
        """The condition of a ``mask``, which is computed once."""
        if sql not in self._known:
            self._known[sql] = np.packbits(mask())
        return Condition(sql, self.size, self._known[sql])

    @property
    def size(self) -> int:
        """The number of people."""
        return int(self.columns["age"].size)

    def write(self, path: Path) -> None:
        """Write the people as a Parquet file."""
        import duckdb

        with duckdb.connect() as connection:
            held = {
                name: values.astype(object) if values.dtype.kind == "U" else values
                for name, values in self.columns.items()
            }
            connection.register("people", held)
            name = str(path).replace("'", "''")
            connection.execute(f"COPY (SELECT * FROM people) TO '{name}' (FORMAT parquet)")


def population(people: int, seed: int) -> Population:
    """So many people, drawn one by one.

    Towns have shares like 1/rank; a town is in one region. Sex is even, age is level up to 60 and
    falls linearly from there to 99. Income is log-normal around 30,000 in hundreds, and 0 below 16.
    The status has shares .62, .25, .10 and .03, independent of all else.
    """
    if people < 100:
        raise InputError(f"{people} people; the population needs at least 100")
    rng = np.random.default_rng([seed, people])
    weights = 1 / np.arange(1, TOWNS + 1)
    town = rng.choice(TOWNS, people, p=weights / weights.sum())
    region_of = rng.integers(0, REGIONS, TOWNS)
    falling = np.minimum(1.0, (100 - np.arange(100)) / 40)
    age = rng.choice(100, people, p=falling / falling.sum())
    income = np.round(rng.lognormal(10.3, 0.5, people), -2).astype(np.int64)
    return Population(
        {
            "town": town,
            "region": np.array([f"R{k:02d}" for k in range(REGIONS)])[region_of[town]],
            "sex": np.where(rng.random(people) < 0.5, "F", "M"),
            "age": age,
            "income": np.where(age < 16, 0, income),
            "status": rng.choice(STATUS, people, p=SHARES),
        }
    )


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition as SQL, and for whom of ``people`` it holds, eight to a byte."""

    sql: str
    people: int
    bits: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """For how many people it holds."""
        return int(np.bitwise_count(self.bits).sum())

    @property
    def mask(self) -> Mask:
        """For whom it holds (n,)."""
        return np.unpackbits(self.bits, count=self.people).astype(np.bool_)

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(f"{self.sql} AND {other.sql}", self.people, self.bits & other.bits)

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(f"({self.sql} OR {other.sql})", self.people, self.bits | other.bits)

    def __invert__(self) -> "Condition":
        everybody = np.packbits(np.ones(self.people, np.bool_))
        return Condition(f"NOT ({self.sql})", self.people, everybody & ~self.bits)


def equal(people: Population, column: str, value: Any) -> Condition:
    """Who has a value in a column."""
    written = f"'{value}'" if isinstance(value, str) else str(value)
    return people.holding(f"{column} = {written}", lambda: people.columns[column] == value)


def between(people: Population, column: str, low: int, high: int) -> Condition:
    """Who has one from low to high."""
    values = people.columns[column]
    return people.holding(
        f"{column} BETWEEN {low} AND {high}", lambda: (values >= low) & (values <= high)
    )


def all_of(parts: list[Condition]) -> Condition:
    """All of some conditions at once."""
    return reduce(lambda one, other: one & other, parts)


def question(people: Population, rng: np.random.Generator) -> Condition:
    """A condition as an analyst asks for it: one to four of region, sex, ages, income, status."""
    low, rich = 5 * int(rng.integers(0, 16)), 5000 * int(rng.integers(2, 12))
    parts = [
        equal(people, "region", f"R{int(rng.integers(0, REGIONS)):02d}"),
        equal(people, "sex", str(rng.choice(["F", "M"]))),
        between(people, "age", low, low + 5 * int(rng.integers(1, 8)) - 1),
        between(people, "income", rich, 10**9),
        equal(people, "status", str(rng.choice(STATUS))),
    ]
    chosen = rng.permutation(len(parts))[: int(rng.integers(1, 5))]
    return all_of([parts[at] for at in sorted(chosen.tolist())])
