"""Simulated systems with known secrets, on which decoders are compared: all noise is simulated.

A world is pure in its number: the same number gives the same secret, queries and answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.queries.tables import Table, table_queries
from countleak.attack.transcript import Answers, Transcript
from countleak.audit.targets.simulated import Mechanism, SimulatedDiffix, Uniform
from countleak.errors import InputError

SHARE_WRONG, WRONG_BY = 0.05, 50
SHARE_NOISY, NOISIER = 0.4, 2.0
ATTRIBUTES = (2, 3, 4, 2, 3, 2, 4, 3, 2, 3, 2, 3)


@dataclass(frozen=True, eq=False)
class World:
    """What an attacker sees, and the secret (n,), bits or names, that only the score may see."""

    transcript: Transcript
    secret: NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """A kind of world: n people, m random subsets, rounded Gaussian noise, and what is wrong."""

    n: int = 100
    m: int = 1050
    sigma: float = 4.0
    prior: float = 0.5
    kind: str = "clean"

    def world(self, number: int) -> World:
        """World ``number`` of this kind."""
        seed = [number, self.n, self.m, round(100 * self.sigma), round(100 * self.prior)]
        rng = np.random.default_rng([*seed, sorted(KINDS).index(self.kind)])
        return KINDS[self.kind](self, rng)


def _drawn(setting: Setting, rng: np.random.Generator) -> tuple[Queries, NDArray[np.int8]]:
    """Queries and a secret; each query went to one of two servers, alike unless stated."""
    secret = (rng.random(setting.n) < setting.prior).astype(np.int8)
    plain = random_subsets(np.arange(setting.n), setting.m, rng)
    server = (rng.random(setting.m) < SHARE_NOISY).astype(np.int64)
    return Queries(plain.ids, plain.matrix, Subsets(), {"server": server}), secret


def _noise(setting: Setting, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.rint(rng.normal(0.0, setting.sigma, setting.m))


def clean(setting: Setting, rng: np.random.Generator) -> World:
    """Nothing wrong."""
    queries, secret = _drawn(setting, rng)
    return _with_noise(queries, secret, _noise(setting, rng))


def wrong(setting: Setting, rng: np.random.Generator) -> World:
    """5% of the answers wrong by ±50."""
    queries, secret = _drawn(setting, rng)
    gross = (rng.random(setting.m) < SHARE_WRONG) * rng.choice([-WRONG_BY, WRONG_BY], setting.m)
    return _with_noise(queries, secret, _noise(setting, rng) + gross)


def two_groups(setting: Setting, rng: np.random.Generator) -> World:
    """The second server, which gets 40% of the queries, adds twice the noise."""
    queries, secret = _drawn(setting, rng)
    scale = setting.sigma * np.where(queries.parameters["server"] == 1, NOISIER, 1.0)
    return _with_noise(queries, secret, np.rint(rng.normal(0.0, scale)))


def offset(setting: Setting, rng: np.random.Generator) -> World:
    """All answers one too high."""
    queries, secret = _drawn(setting, rng)
    return _with_noise(queries, secret, _noise(setting, rng) + 1)


def suppressed(setting: Setting, rng: np.random.Generator) -> World:
    """Few ones, and counts below about 4 suppressed: the share of ones is ``prior`` exactly."""
    queries, secret = _drawn(setting, rng)
    secret[:] = 0
    secret[rng.choice(setting.n, size=round(setting.prior * setting.n), replace=False)] = 1
    return _released_by(SimulatedDiffix(setting.sigma), queries, secret, rng)


def cells(setting: Setting, rng: np.random.Generator) -> World:
    """``m`` tables of up to three of twelve known columns, uniform noise within ± ``sigma``."""
    columns = {f"a{k}": rng.integers(0, size, setting.n) for k, size in enumerate(ATTRIBUTES)}
    secret = (rng.random(setting.n) < setting.prior).astype(np.int8)
    tables = random_tables(list(columns), setting.m, rng)
    queries = table_queries(np.arange(setting.n), columns, tables)
    return _released_by(Uniform(int(setting.sigma)), queries, secret, rng)


def random_tables(
    columns: Sequence[str], count: int, rng: np.random.Generator, ways: int = 3
) -> list[Table]:
    """``count`` different tables that cross up to ``ways`` of the columns."""
    every = [table for k in range(1, ways + 1) for table in combinations(columns, k)]
    if count > len(every):
        raise InputError(
            f"{len(columns)} columns make {len(every)} tables of up to {ways}, not {count}"
        )
    return [every[at] for at in np.sort(rng.choice(len(every), size=count, replace=False))]


def _with_noise(queries: Queries, secret: NDArray[np.int8], noise: NDArray[np.float64]) -> World:
    answers = Answers.to_all(queries.dot(secret.astype(np.float64)) + noise)
    return World(Transcript.of(queries, answers), secret)


def _released_by(
    mechanism: Mechanism, queries: Queries, secret: NDArray[np.int8], rng: np.random.Generator
) -> World:
    seed = np.random.SeedSequence(int(rng.integers(2**62)))
    answers = mechanism.release(queries.dot(secret.astype(np.float64)), seed)
    return World(Transcript.of(queries, answers), secret)


KINDS: dict[str, Callable[[Setting, np.random.Generator], World]] = {
    "clean": clean,
    "wrong": wrong,
    "two groups": two_groups,
    "offset": offset,
    "suppressed": suppressed,
    "cells": cells,
}


# Decoders of most suites, by the words of ``benchmarks.decoders``.
COMPARED = ("lp", "ls", "polished", "bayes", "auto")


@dataclass(frozen=True)
class Suite:
    """Settings to compare decoders on, and the question that they answer."""

    question: str
    settings: tuple[Setting, ...]
    decoders: tuple[str, ...] = COMPARED


SUITES: dict[str, Suite] = {
    "queries": Suite(
        "How many queries does 99% take, n = 100, sigma 4?",
        tuple(Setting(m=m) for m in (150, 350, 550, 750, 1050, 1250, 1350, 1450, 1750, 2150)),
    ),
    "large": Suite(
        "Fewer answers than people: n = 1000, sigma 2",
        (Setting(1000, 700, 2.0), Setting(1000, 1000, 2.0)),
        ("lp", "ls", "bayes", "auto"),
    ),
    "misfit": Suite(
        "What if the system is not as assumed?",
        (
            *(Setting(kind=kind) for kind in ("clean", "wrong", "two groups", "offset")),
            Setting(101, 200, 2.0, 12 / 101, "suppressed"),
        ),
        ("lp", "ls", "bayes", "robust", "robust by server", "censored", "auto"),
    ),
    "suppression": Suite(
        "How many queries does 99% take where low counts are suppressed? 12 of 101, sigma 2",
        tuple(
            Setting(101, m, 2.0, 12 / 101, "suppressed")
            for m in (100, 125, 150, 175, 200, 250, 300, 350, 400, 450)
        ),
        ("lp", "ls", "censored", "auto"),
    ),
    "bounded": Suite(
        "Uniform noise on cells of tables, 150 people: what is the bound worth?",
        (
            Setting(150, 100, 2.0, 0.4, "cells"),
            Setting(150, 100, 4.0, 0.4, "cells"),
            Setting(150, 200, 7.0, 0.4, "cells"),
        ),
        ("lp", "ls", "bayes", "auto"),
    ),
    "stability": Suite(
        "Does any decoder diverge? 1,000 runs from few answers to many",
        tuple(Setting(60, m, sigma) for m in (30, 60, 120, 300, 1500) for sigma in (1.0, 4.0)),
        ("ls", "bayes"),
    ),
    "calibration": Suite(
        "Do probabilities mean what they say? The noise's scale and the rate are not known",
        tuple(
            Setting(100, round(ratio * 100), sigma, prior)
            for sigma in (1.0, 4.0, 10.0)
            for prior in (0.1, 0.3, 0.5)
            for ratio in (0.5, 1.5, 5.0, 25.0)
        ),
        ("bayes",),
    ),
}
