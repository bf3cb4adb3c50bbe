"""The safety map: what all margins of some variables give away although every count is rounded.

A population has k variables of two or three values each. Every table by any of them is published,
from the total to the table by all k, with each count rounded to a multiple of a base: to the
nearest, or up or down by chance so that the mean is kept. The reader knows the base and the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, floor

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array, eye_array, kron

from countleak.attack.ledger import Ledger
from countleak.attack.ledger.bounds import ends_of
from countleak.attack.noise import Shape
from countleak.attack.rules import Rules
from countleak.audit.scores import wilson
from countleak.errors import InputError
from countleak.progress import Progress, silent

VARIABLES = (3, 4, 5, 6)
# Of three values each, so many cells are as large as six variables of two.
VARIABLES_OF_THREE = (3, 4)
BASES = (3, 5, 10)
PEOPLE = (100, 500, 2000)
ROUNDINGS = ("nearest", "random")
SMALL = 2
# Each of the two kinds of people has shares of its own.
KINDS = 2


@dataclass(frozen=True)
class Setting:
    """``variables`` of ``values`` each, of so many people, rounded to a base in one of the ways."""

    variables: int
    values: int
    base: int
    rounding: str
    people: int


@dataclass(frozen=True)
class Row:
    """Of a setting's worlds: how many cells of how many have one count left.

    ``share`` is the mean over the worlds, ``low`` to ``high`` its 95% interval by Student's t.
    ``small`` cells have one or two people. ``worlds_pinned`` have some pinned cell with people in
    it; ``wrong`` intervals do not hold the true count, and ``open`` ones may be wider than need be.
    """

    setting: Setting
    worlds: int
    cells: int
    pinned: int
    share: float
    low: float
    high: float
    small: int
    small_pinned: int
    worlds_pinned: int
    wrong: int
    open: int


def settings() -> list[Setting]:
    """All that the map shows."""
    sizes = [(k, 2) for k in VARIABLES] + [(k, 3) for k in VARIABLES_OF_THREE]
    return [
        Setting(k, values, base, rounding, n)
        for (k, values), base, rounding, n in product(sizes, BASES, ROUNDINGS, PEOPLE)
    ]


def measure_map(
    worlds: int = 5, jobs: int = 2, chosen: Sequence[Setting] | None = None,
    progress: Progress = silent,
) -> list[Row]:  # fmt: skip
    """Every setting, in so many worlds; world ``w`` of a setting is always the same."""
    if worlds < 2:
        raise InputError("one world has no interval; measure 2 or more per setting")
    every = settings() if chosen is None else list(chosen)
    # The smallest first, so that the time that is left can be seen.
    tasks = [(setting, world) for setting in every for world in range(worlds)]
    found: dict[Setting, list[_World]] = {setting: [] for setting in every}
    work = Parallel(n_jobs=jobs, return_as="generator")
    results = work(delayed(_world)(setting, world) for setting, world in tasks)
    for done, ((setting, _), result) in enumerate(zip(tasks, results, strict=True), 1):
        found[setting].append(result)
        progress(done, len(tasks))
    return [_row(setting, mine) for setting, mine in found.items()]


@dataclass(frozen=True)
class _World:
    cells: int
    pinned: int
    small: int
    small_pinned: int
    wrong: int
    open: int


def margins(variables: int, values: int) -> csr_array:
    """A row for every number in any table by some of the variables, of the cells it adds up."""
    of_one = np.vstack([np.eye(values), np.ones(values)])
    return csr_array(reduce(lambda a, b: kron(a, b, format="csr"), [csr_array(of_one)] * variables))


def population(rng: np.random.Generator, setting: Setting) -> NDArray[np.int64]:
    """The people in each cell, drawn one by one.

    A person is of either of two kinds with the chance 1/2; by kind, the values of each variable
    have shares that are Dirichlet with parameter 2, drawn once per world, independently.
    """
    shares = rng.dirichlet(np.full(setting.values, 2.0), (KINDS, setting.variables))
    by_kind = [reduce(np.multiply.outer, kind).ravel() for kind in shares]
    return rng.multinomial(setting.people, np.mean(by_kind, axis=0)).astype(np.int64)


def rounded(
    rng: np.random.Generator, counts: NDArray[np.float64], base: int, rounding: str
) -> NDArray[np.float64]:
    """The counts as they are published."""
    if rounding == "nearest":
        return np.asarray(base * np.floor(counts / base + 0.5), np.float64)
    down = base * np.floor(counts / base)
    return np.asarray(down + base * (rng.random(counts.size) < (counts - down) / base), np.float64)


def _world(setting: Setting, world: int) -> _World:
    rng = np.random.default_rng([5, setting.variables, setting.values, setting.people, world])
    truth = population(rng, setting)
    A = margins(setting.variables, setting.values)
    shown = rounded(rng, np.asarray(A @ truth, np.float64), setting.base, setting.rounding)
    random = setting.rounding == "random"
    limits = Rules(Shape.EXACT, base=setting.base, random_rounding=random).limits()
    reach = 0.0 if limits is None or limits.reach is None else limits.reach
    low = np.array([max(0.0, float(ceil(value - reach))) for value in shown])
    high = np.array([float(floor(value + reach)) for value in shown])
    cells = csr_array(eye_array(truth.size))
    ends = ends_of(Ledger(A, low, high), cells, time_limit=np.inf)
    pinned, small = ends.low == ends.high, (truth > 0) & (truth <= SMALL)
    return _World(
        truth.size,
        int(pinned.sum()),
        int(small.sum()),
        int((pinned & small).sum()),
        int(((ends.low > truth) | (ends.high < truth)).sum()),
        int((~ends.exact).sum()),
    )


def _row(setting: Setting, worlds: Sequence[_World]) -> Row:
    shares = np.array([each.pinned / each.cells for each in worlds])
    half = stats.t.ppf(0.975, len(worlds) - 1) * shares.std(ddof=1) / np.sqrt(len(worlds))
    mean = float(shares.mean())
    return Row(
        setting,
        len(worlds),
        sum(each.cells for each in worlds),
        sum(each.pinned for each in worlds),
        mean,
        max(0.0, mean - float(half)),
        min(1.0, mean + float(half)),
        sum(each.small for each in worlds),
        sum(each.small_pinned for each in worlds),
        sum(each.pinned > 0 for each in worlds),
        sum(each.wrong for each in worlds),
        sum(each.open for each in worlds),
    )


@dataclass(frozen=True)
class Claim:
    """Of the claim that rounding to the nearest 5 protects: in how many worlds it did not."""

    variables: int
    values: int
    worlds: int
    pinned: int
    share: float
    low: float
    high: float


def nearest_five(rows: Sequence[Row]) -> list[Claim]:
    """The worlds rounded to the nearest 5 in which any cell's count is known, of any size."""
    mine = [row for row in rows if (row.setting.base, row.setting.rounding) == (5, "nearest")]
    claims = []
    for shape in dict.fromkeys((row.setting.variables, row.setting.values) for row in mine):
        some = [row for row in mine if (row.setting.variables, row.setting.values) == shape]
        worlds, pinned = sum(r.worlds for r in some), sum(r.worlds_pinned for r in some)
        claims.append(Claim(*shape, worlds, pinned, pinned / worlds, *wilson(pinned, worlds)))
    return claims
