"""Generated residents, and tables of them as an office would publish them, margins included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from countleak.audit.releases.axes import band_of
from countleak.audit.releases.reading import Published, Release

TOTAL = "Total"
OLDEST = 99
FIVE_YEARS = (*(f"{low}-{low + 4}" for low in range(0, 85, 5)), "85+")
# Whoever asked for the second table thinks of school, work and pension.
OTHER_CUTS = ("0-3", "4-6", "7-11", "12-15", "16-17", "18-20", "21-24", "25-31", "32-38", "39-46",
              "47-54", "55-61", "62-66", "67-74", "75-82", "83+")  # fmt: skip
# People per year of age, up to a factor: level until 55, then falling; women live longer.
LEVEL_UNTIL = 55
FALL = {"F": 19.0, "M": 16.0}


@dataclass(frozen=True, eq=False)
class Residents:
    """People with what tables count them by: ``region`` and ``sex`` as names, ``age`` in years."""

    region: NDArray[np.str_]
    sex: NDArray[np.str_]
    age: NDArray[np.int64]

    def labels(self, bands: Sequence[str]) -> dict[str, NDArray[np.str_]]:
        """What a table with these bands of ages says of each: region, sex and age."""
        return {"region": self.region, "sex": self.sex, "age": in_bands(self.age, bands)}


def residents(rng: np.random.Generator, people: int = 3000, regions: int = 20) -> Residents:
    """People drawn one by one: a region, a sex, and an age by that sex, independently.

    Regions differ in size: their shares are Dirichlet with parameter 8, so that the largest of 20
    has about twice the mean. Ages 0 to 99 are equally likely up to 55; from then on their shares
    fall like exp(-(t / s)^2 / 2), t years after 55, with s = 19 for women and 16 for men.
    """
    shares = rng.dirichlet(np.full(regions, 8.0))
    names = np.array([f"R{k + 1:02d}" for k in range(regions)])
    region = names[rng.choice(regions, people, p=shares)]
    sex = np.where(rng.random(people) < 0.5, "F", "M")
    years = np.arange(OLDEST + 1)
    age = np.zeros(people, np.int64)
    for name, fall in FALL.items():
        weight = np.exp(-((np.maximum(years - LEVEL_UNTIL, 0) / fall) ** 2) / 2)
        mine = sex == name
        age[mine] = rng.choice(years, int(mine.sum()), p=weight / weight.sum())
    return Residents(region, sex, age)


def in_bands(ages: NDArray[np.int64], bands: Sequence[str]) -> NDArray[np.str_]:
    """The band that each age falls into."""
    by_low = sorted((band.low, name) for name in bands if (band := band_of(name)) is not None)
    starts = np.array([low for low, _ in by_low])
    names = np.array([name for _, name in by_low])
    found: NDArray[np.str_] = names[np.searchsorted(starts, ages, side="right") - 1]
    return found


Counts = dict[tuple[str, ...], int]


def cross_table(people: Mapping[str, NDArray[np.str_]]) -> Counts:
    """The people in every cell of a table by some columns, its margins and empty cells included."""
    names = {name: np.unique(column).tolist() for name, column in people.items()}
    counts = np.zeros([len(labels) + 1 for labels in names.values()], np.int64)
    places = tuple(np.searchsorted(names[name], column) for name, column in people.items())
    np.add.at(counts, places, 1)
    for axis in range(counts.ndim):
        inner = np.delete(counts, -1, axis=axis)
        counts[(slice(None),) * axis + (-1,)] = inner.sum(axis=axis)
    cells = product(*([*labels, TOTAL] for labels in names.values()))
    return dict(zip(cells, counts.ravel().tolist(), strict=True))


def release(name: str, dimensions: Sequence[str], counts: Mapping[tuple[str, ...], int | None],
            hidden: frozenset[tuple[str, ...]] = frozenset()) -> Release:  # fmt: skip
    """The counts as they are published: those ``hidden`` are not shown."""
    numbers = tuple(
        Published(cell, None if cell in hidden else count) for cell, count in counts.items()
    )
    return Release(name, tuple(dimensions), "people", numbers)
