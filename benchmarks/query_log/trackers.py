"""Logs of counts with trackers planted in them: sequences that single out one or two people.

No tracker asks for its target: every count of it is of more people than a limit on small counts
would stop, as in Denning, Denning and Schwartz (ACM TODS 4(1), 1979).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.query_log.population import (
    Condition,
    Population,
    all_of,
    between,
    equal,
    question,
)
from countleak.errors import InputError

# A background question about fewer people than this is drawn again, like a tracker's.
LEAST = 20
TRIES = 2000


@dataclass(frozen=True, eq=False)
class Tracker:
    """Conditions that together single out the ``target`` (n,), and the kind of tracker."""

    kind: str
    conditions: tuple[Condition, ...]
    target: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Log:
    """Statements in order, the condition of each, and the last query (from 1) of each tracker."""

    statements: tuple[str, ...]
    asked: tuple[Condition, ...]
    trackers: tuple[Tracker, ...]
    last: tuple[int, ...]

    @property
    def distinct(self) -> int:
        """How many different conditions are asked for."""
        return len({condition.sql for condition in self.asked})


def _difference(people: Population, target: Condition, rng: np.random.Generator) -> list[Condition]:
    """Everybody of some kind, and all of those but the target."""
    around = _around(people, target, rng)
    return [around, around & ~target]


def _general(people: Population, target: Condition, rng: np.random.Generator) -> list[Condition]:
    """Denning's general tracker: the target added to a large set, and to all others."""
    pad = question(people, rng)
    return [target | pad, target | ~pad, pad, ~pad]


def _parts(people: Population, target: Condition, rng: np.random.Generator) -> list[Condition]:
    """All of a kind, and the parts that are left of it without the target."""
    around, low = _around(people, target, rng), int(rng.integers(20, 70))
    young = between(people, "age", 0, low)
    women = equal(people, "sex", "F")
    inner = [young & women, young & ~women, ~young & women, ~young & ~women]
    return [around, *(around & part & ~target for part in inner)]


def _steps(people: Population, target: Condition, rng: np.random.Generator) -> list[Condition]:
    """A chain: two overlapping kinds, what they share, and their union without the target."""
    one, other = _around(people, target, rng), question(people, rng)
    return [one, other, one & other, (one | other) & ~target]


KINDS: dict[str, Callable[[Population, Condition, np.random.Generator], list[Condition]]] = {
    "difference": _difference,
    "general tracker": _general,
    "all but its parts": _parts,
    "union and overlap": _steps,
}


def _around(people: Population, target: Condition, rng: np.random.Generator) -> Condition:
    """A larger group that holds the target: its region or its ages, and perhaps more."""
    one = int(np.flatnonzero(target.mask)[0])
    held = {name: values[one].item() for name, values in people.columns.items()}
    low = int(held["age"]) // 10 * 10
    some = [equal(people, "region", held["region"]), between(people, "age", low, low + 9)]
    if target.size == 1 and rng.random() < 0.5:
        some.append(equal(people, "sex", held["sex"]))
    around = all_of(some)
    # Two people may be of different regions.
    whole = (target & around).size == target.size
    return around if whole else between(people, "age", 0, 99)


def _target(people: Population, rng: np.random.Generator, size: int) -> Condition:
    """A condition by town, age and sex that one person satisfies, or two."""
    for _ in range(TRIES):
        one = int(rng.integers(people.size))
        parts = [
            equal(people, name, people.columns[name][one].item()) for name in ("town", "age", "sex")
        ]
        found = all_of(parts)
        if found.size == size:
            return found
        narrower = found & equal(people, "income", people.columns["income"][one].item())
        if narrower.size == size:
            return narrower
    raise InputError(f"nobody is alone enough among {people.size} people; take more rows")


def plant(people: Population, number: int, rng: np.random.Generator) -> Tracker:
    """A tracker of the kind whose turn it is, of one person, or each third time of two."""
    kind = list(KINDS)[number % len(KINDS)]
    for _ in range(TRIES):
        target = _target(people, rng, 2 if number % 3 == 2 else 1)
        conditions = KINDS[kind](people, target, rng)
        if min(each.size for each in conditions) >= LEAST:
            return Tracker(kind, tuple(conditions), target.mask)
    raise InputError(f"no tracker fits {people.size} people; take more rows")


def log_of(people: Population, statements: int, conditions: int, trackers: int, seed: int) -> Log:
    """So many statements of at most so many conditions, some of which are those of trackers.

    Every condition is asked once at a random place, and asked again as often as the log is long,
    some far more often than others. A tenth of the statements carry a comment of their own.
    """
    rng = np.random.default_rng([seed, statements, conditions])
    planted = tuple(plant(people, number, rng) for number in range(trackers))
    own = [condition for tracker in planted for condition in tracker.conditions]
    background: dict[str, Condition] = {}
    wanted, tries = conditions - len({condition.sql for condition in own}), 0
    while len(background) < wanted and tries < TRIES * conditions:
        tries += 1
        found = question(people, rng)
        if found.size >= LEAST:
            background[found.sql] = found
    pool = [*own, *background.values()]
    if len(pool) > statements:
        raise InputError(f"{len(pool)} conditions do not fit into {statements} statements")
    weights = 1 / (1 + rng.permutation(len(pool)))
    again = rng.choice(len(pool), statements - len(pool), p=weights / weights.sum())
    order = rng.permutation(np.concatenate([np.arange(len(pool)), again])).tolist()
    asked = tuple(pool[at] for at in order)
    first: dict[str, int] = {}
    for number, condition in enumerate(asked, 1):
        first.setdefault(condition.sql, number)
    texts = tuple(
        f"SELECT count(*) FROM people WHERE {condition.sql}"
        + (f" /* request {number} */" if number % 10 == 0 else "")
        for number, condition in enumerate(asked, 1)
    )
    last = tuple(max(first[each.sql] for each in tracker.conditions) for tracker in planted)
    return Log(texts, asked, planted, last)


def kinds_in_order(trackers: Sequence[Tracker]) -> list[str]:
    """The kinds that there are."""
    return [kind for kind in KINDS if any(tracker.kind == kind for tracker in trackers)]
