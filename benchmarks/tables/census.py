"""A generated census in the schema of the US Summary File 1 of 2010, block by block.

Of the tables that it has for every block, those of people by sex, age, race and Hispanic origin:

    P1    total                        P10       race, from 18 years on
    P3    race                         P11       Hispanic or not by race, from 18 years on
    P4    Hispanic or not              P12       sex by 23 bands of ages
    P5    Hispanic or not by race      P12A-P12I the same: by race, Hispanic, White not Hispanic
    P14   sex by single years of age, under 20

with 7 races (six alone, and two or more). P6 to P9, which tell the races of those with two or more,
and the tables of households are left out. Every count is exact, as in 2010, after swapping.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import process_time

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.variability import reconstructed, variability
from countleak.audit.scores import wilson
from countleak.progress import Progress, silent

# First years of the bands of P12.
BANDS = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
ADULT, SINGLE_UNTIL, OLDEST = 18, 20, 99
# First years of the finest ages: single years under 20, and then the bands.
AGES = np.array([*range(SINGLE_UNTIL), *(band for band in BANDS if band >= SINGLE_UNTIL)])
SEXES, RACES = 2, 7
SHAPE = (SEXES, AGES.size, RACES, 2)
# White, Black, American Indian, Asian, Pacific, other, two or more: shares of 2010, rounded, and of
# each the part that is Hispanic.
RACE_SHARES = np.array([0.724, 0.126, 0.009, 0.048, 0.002, 0.062, 0.029])
HISPANIC = np.array([0.12, 0.03, 0.23, 0.014, 0.11, 0.97, 0.28])
# People per occupied block are lognormal: median 27, and the mean is about that of 2010, 50.
MEDIAN, SPREAD, LARGEST = 27.0, 1.1, 2_000
# How alike neighbours are: the Dirichlet parameters of a block's races add up to this.
ALIKE = 2.0
OCCUPIED_BLOCKS = 6_200_000
# The published reconstruction of all blocks with Gurobi: nodes, and days.
PUBLISHED = (30, 3)
BATCH = 50


@dataclass(frozen=True)
class Block:
    """What a block's tables leave open.

    Two data sets that fit are ``shown`` people apart, and none are further apart than ``most``.
    ``right`` people of the data set that was reconstructed are in the true one, and ``guessed`` of
    those whose sexes and ages P12 and P14 say, if everyone has the commonest race and origin of P5.
    ``fits`` is whether the true counts solve the system. Seconds are of one core.
    """

    people: int
    cells: int
    shown: int
    most: float
    right: int
    guessed: int
    fits: bool
    reconstruct_seconds: float
    variability_seconds: float


def population(rng: np.random.Generator) -> NDArray[np.int64]:
    """A block's people, by sex, finest age, race and Hispanic origin.

    Their number is lognormal. A block has shares of races of its own, Dirichlet around those of the
    country; each person's sex, age, race and origin are then drawn one by one, origin by race. Ages
    are equally likely up to 55; from then on their shares fall like exp(-(t / 17)^2 / 2), t years
    after 55.
    """
    count = int(np.clip(np.rint(rng.lognormal(np.log(MEDIAN), SPREAD)), 1, LARGEST))
    races = rng.dirichlet(ALIKE * RACE_SHARES)
    race = rng.choice(RACES, count, p=races)
    hispanic = (rng.random(count) < HISPANIC[race]).astype(np.int64)
    sex, age = rng.integers(0, SEXES, count), rng.choice(OLDEST + 1, count, p=_by_age())
    finest = np.searchsorted(AGES, age, side="right") - 1
    counts = np.zeros(SHAPE, np.int64)
    np.add.at(counts, (sex, finest, race, hispanic), 1)
    return counts.ravel()


@cache
def _by_age() -> NDArray[np.float64]:
    weight = np.exp(-((np.maximum(np.arange(OLDEST + 1) - 55, 0) / 17.0) ** 2) / 2)
    return np.asarray(weight / weight.sum(), np.float64)


@cache
def schema() -> csr_array:
    """A row for every number that is published of a block, of the finest groups it adds up."""
    sex, age, race, origin = (axis.ravel() for axis in np.indices(SHAPE))
    band = np.searchsorted(np.array(BANDS), AGES[age], side="right") - 1
    year = np.where(AGES[age] < SINGLE_UNTIL, AGES[age], -1)
    everyone, adult = np.ones(sex.size, np.bool_), AGES[age] >= ADULT
    tables = [
        (everyone, ()),
        (everyone, (race,)),
        (everyone, (origin,)),
        (everyone, (origin, race)),
        (adult, (race,)),
        (adult, (origin, race)),
        (everyone, (sex, band)),
        (everyone, (race, sex, band)),
        (origin == 1, (sex, band)),
        ((origin == 0) & (race == 0), (sex, band)),
        (year >= 0, (sex, year)),
    ]
    return csr_array(np.vstack([_rows(who, by) for who, by in tables]))


def _rows(who: NDArray[np.bool_], by: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
    """The numbers of a table of those meant by some columns."""
    keys = np.stack([np.zeros(who.size, np.int64), *by], axis=1)
    of = np.unique(keys[who], axis=0)
    return np.asarray(who & (keys[None] == of[:, None]).all(axis=2), np.float64)


def published(truth: NDArray[np.int64]) -> tuple[Ledger, NDArray[np.int64]]:
    """The tables of a block as a system over the cells (k,) that no published 0 rules out."""
    A = schema()
    sums = np.asarray(A @ truth, np.float64)
    cells = np.flatnonzero(np.asarray(A.T @ (sums == 0)) == 0).astype(np.int64)
    rows = np.flatnonzero(sums > 0)
    return Ledger(csr_array(A[rows][:, cells]), sums[rows], sums[rows]), cells


def measure_census(
    blocks: int = 1000, time_limit: float = 10.0, jobs: int = 2, seed: int = 0,
    progress: Progress = silent,
) -> list[Block]:  # fmt: skip
    """So many blocks, each reconstructed, and how far its solutions can be apart."""
    numbers = [range(at, min(at + BATCH, blocks)) for at in range(0, blocks, BATCH)]
    work = Parallel(n_jobs=jobs, return_as="generator")
    found: list[Block] = []
    for some in work(delayed(_blocks)(seed, each, time_limit) for each in numbers):
        found += some
        progress(len(found), blocks)
    return found


def _blocks(seed: int, numbers: range, time_limit: float) -> list[Block]:
    # What is compiled is loaded before the clock counts.
    list(_measured(seed, [0], time_limit))
    return list(_measured(seed, numbers, time_limit))


def _measured(seed: int, numbers: range | list[int], time_limit: float) -> Iterator[Block]:
    for number in numbers:
        truth = population(np.random.default_rng([6, seed, number]))
        begin = process_time()
        ledger, cells = published(truth)
        x = reconstructed(ledger)
        done = process_time()
        apart = variability(ledger, time_limit)
        end = process_time()
        mine = truth[cells]
        yield Block(
            people=int(truth.sum()),
            cells=cells.size,
            shown=apart.at_least,
            most=apart.at_most,
            right=int(np.minimum(x, mine).sum()),
            guessed=int(truth.reshape(SHAPE).sum(axis=(0, 1)).max()),
            fits=ledger.holds(mine.astype(np.float64)) and int(mine.sum()) == int(truth.sum()),
            reconstruct_seconds=done - begin,
            variability_seconds=end - done,
        )


@dataclass(frozen=True)
class Bill:
    """All blocks in a few numbers, and what all occupied blocks of the country would take.

    ``right``, ``guessed``, ``shown`` and ``most`` are shares of the people, ``right`` with its 95%
    interval by blocks; ``unique`` blocks have one data set that fits, ``settled`` ones a proven
    distance; the interval of ``unique`` is Wilson's.
    """

    blocks: int
    people: int
    right: float
    right_low: float
    right_high: float
    guessed: float
    shown: float
    most: float
    unique: int
    unique_low: float
    unique_high: float
    settled: int
    wrong: int
    reconstructed_per_second: float
    bounded_per_second: float
    core_hours_to_reconstruct: float
    core_hours_to_bound: float


def bill(blocks: Sequence[Block]) -> Bill:
    """What the blocks say together."""
    people = np.array([block.people for block in blocks], np.float64)
    right = np.array([block.right for block in blocks], np.float64)
    share = float(right.sum() / people.sum())
    half = 1.96 * float(np.sqrt(((right - share * people) ** 2).sum()) / people.sum())
    unique = sum(block.most == 0 for block in blocks)
    first = sum(block.reconstruct_seconds for block in blocks)
    both = first + sum(block.variability_seconds for block in blocks)
    hours = OCCUPIED_BLOCKS / len(blocks) / 3600
    return Bill(
        blocks=len(blocks),
        people=int(people.sum()),
        right=share,
        right_low=max(0.0, share - half),
        right_high=min(1.0, share + half),
        guessed=sum(block.guessed for block in blocks) / float(people.sum()),
        shown=sum(block.shown for block in blocks) / float(people.sum()),
        most=sum(block.most for block in blocks) / float(people.sum()),
        unique=unique,
        unique_low=wilson(unique, len(blocks))[0],
        unique_high=wilson(unique, len(blocks))[1],
        settled=sum(block.shown == block.most for block in blocks),
        wrong=sum(not block.fits or block.people - block.right > block.most for block in blocks),
        reconstructed_per_second=len(blocks) / first,
        bounded_per_second=len(blocks) / both,
        core_hours_to_reconstruct=hours * first,
        core_hours_to_bound=hours * both,
    )
