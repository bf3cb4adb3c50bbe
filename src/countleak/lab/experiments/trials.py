"""One simulated attack as data: a trial, grids of them, and the key each is stored under.

A trial's randomness comes from its own fields and the seed, whatever machine runs it and in which
order. Trials that differ only in how they decode see the same answers.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from countleak.audit.targets.recorded import people_files
from countleak.audit.targets.simulated import LARGEST
from countleak.errors import InputError
from countleak.lab.experiments.names import CANDIDATES, CENSUS, NAMES, OWN, own_class

# Raised when a change makes trials come out differently, so that stored ones are not mixed in.
RESULTS = 1
# More queries than that are no experiment but a slip, and would fill the memory.
MOST_QUERIES = 10**6


@dataclass(frozen=True)
class Trial:
    """One attack: n people, so many queries of a family, a noise, a decoder, and its number.

    ``sigma`` is the noise's standard deviation in people (`uniform`: its bound, `round`: the base).
    ``sign_noise`` says how ±1 queries are answered: `direct` with SD sigma, as `two-subsets`, or
    `double` with SD 2 sigma. ``multiplier`` is DiNi's B. ``world`` `presence` asks who of 101
    candidates is there at all.
    """

    n: int = 100
    queries: int = 2550
    sigma: float = 4.0
    family: str = "digits"
    mechanism: str = "diffix"
    suppression: bool = True
    sign_noise: str = "direct"
    decoder: str = "dmt"
    multiplier: float = 0.0
    world: str = "census"
    number: int = 0

    def __post_init__(self) -> None:
        for field, allowed in NAMES.items():
            name = getattr(self, field)
            if field in OWN and ":" in name:
                own_class(field, name)
            elif name not in allowed:
                own = ", or module:Class of your own" if field in OWN else ""
                raise InputError(f"there is no {field} {name!r}; choose {', '.join(allowed)}{own}")
        if not 2 <= self.n <= CENSUS or not 1 <= self.queries <= MOST_QUERIES:
            raise InputError(
                f"n is {self.n} and queries {self.queries}; n must lie in 2-{CENSUS}, queries in "
                f"1-{MOST_QUERIES}"
            )
        if self.world == "presence" and self.n != CANDIDATES.size:
            raise InputError(f"n is {self.n}; `presence` has {CANDIDATES.size} candidates")
        if self.mechanism in ("uniform", "round") and not self.sigma.is_integer():
            raise InputError(f"sigma is {self.sigma:g}; {self.mechanism} takes a whole number")
        halves = self.family == "signs" and self.sign_noise == "two-subsets"
        if self.decoder == "bounded" and (halves or self.mechanism not in ("uniform", "round")):
            raise InputError(
                "bounded needs one answer whose noise has a bound; choose mechanism uniform or "
                "round"
            )
        dini = self.decoder.startswith("dini-")
        if self.family == "signs" and self.sign_noise != "direct" and dini:
            raise InputError(
                "DiNi's bound is in sigmas of a direct answer; leave sign_noise direct"
            )
        if not 0 < self.sigma <= LARGEST or not 0 <= self.multiplier < inf:
            raise InputError(
                f"sigma {self.sigma:g} must be above 0 and at most {LARGEST:g}, "
                f"B {self.multiplier:g} not below 0 and finite"
            )

    @property
    def key(self) -> str:
        """A short name of the trial, equal for equal fields."""
        return digest(asdict(self))

    @property
    def query_fields(self) -> tuple[Any, ...]:
        """What decides the queries; random families draw new ones for every number."""
        drawn = None if self.family == "digits" else self.number
        return self.world, self.family, self.n, self.queries, drawn

    @property
    def answer_fields(self) -> dict[str, Any]:
        """What decides the answers: everything but how they are decoded."""
        return {k: v for k, v in asdict(self).items() if k not in ("decoder", "multiplier")}


def grid(**values: Any) -> list[Trial]:
    """Every combination of the fields given as sequences; single values stay fixed."""
    known = {field.name for field in fields(Trial)}
    if unknown := set(values) - known:
        raise InputError(
            f"there is no field {sorted(unknown)[0]!r}; the fields are {sorted(known)}"
        )
    lists = [v if isinstance(v, list | tuple | range) else [v] for v in values.values()]
    return [Trial(**dict(zip(values, combination, strict=True))) for combination in product(*lists)]


@dataclass(frozen=True)
class Setting:
    """What all trials of a run share: the seed, and the authors' data folder if there is one."""

    seed: int = 0
    data: str | None = None


def batches(trials: Iterable[Trial], largest: int = 120) -> list[list[Trial]]:
    """The trials in groups that share their queries, and never split those that share answers."""
    by_queries: dict[tuple[Any, ...], dict[str, list[Trial]]] = {}
    for trial in trials:
        group = by_queries.setdefault(trial.query_fields, {})
        group.setdefault(digest(trial.answer_fields), []).append(trial)
    groups: list[list[Trial]] = []
    for group in by_queries.values():
        batch: list[Trial] = []
        for together in group.values():
            if batch and len(batch) + len(together) > largest:
                groups.append(batch)
                batch = []
            batch = batch + together
        groups.append(batch)
    return groups


def record_key(trial: Trial, setting: Setting) -> str:
    """The name of a trial's record in a store: trial, seed, whose people, kind of results.

    A class of one's own is part of it as its module is now, so that a change runs anew.
    """
    own = [_own_digest(name) for name in (trial.mechanism, trial.decoder) if ":" in name]
    return "-".join([trial.key, str(setting.seed), _whose(setting.data), str(RESULTS), *own])


@cache
def _own_digest(name: str) -> str:
    source = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:8] if source else "builtin"


@cache
def _whose(data: str | None) -> str:
    """A fingerprint of the authors' people, or that they are generated."""
    if data is None:
        return "generated"
    content = hashlib.sha256()
    for path in people_files(Path(data)):
        content.update(path.read_bytes())
    return content.hexdigest()[:8]


def digest(value: Any) -> str:
    """A fingerprint of plain fields: 16 hexadecimal digits, equal for equal fields."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
