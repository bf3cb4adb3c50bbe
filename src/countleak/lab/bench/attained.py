"""Whether the decoders that `countleak budget` names attain what it predicts.

Random subsets, counts through a mechanism, and the decoder told what an ideal one would know: the
law of the noise and the prior. Proofs are left out: they take time, and could only add to what the
samples get right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.bounded import Bounded
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Shape
from countleak.attack.queries import Queries
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import Subsets
from countleak.attack.rules import Rules
from countleak.attack.transcript import Transcript
from countleak.audit.budget.evolution import (
    DECODERS,
    SIGNS,
    SUBSETS,
    Attack,
    Family,
    decoders_for,
    subsets_of,
)
from countleak.audit.budget.prediction import Prediction, predict
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Uniform,
)
from countleak.errors import InputError, NoPrediction
from countleak.lab.bench.worlds import World
from countleak.progress import Progress, silent

# Standard errors that chance may add: there are a hundred rows.
SURE = 3


@dataclass(frozen=True)
class Cells:
    """A system, and numbers of queries: some before its jump, some near, some after."""

    n: int
    mechanism: Mechanism
    queries: tuple[int, ...]
    prior: float = 0.5
    family: Family = SUBSETS


FEW = (
    Cells(60, Uniform(3), (68, 114, 171, 228)),
    Cells(100, Uniform(6), (172, 300, 429, 572)),
    Cells(100, RoundedToBase(5), (66, 121, 165)),
    Cells(200, RoundedToBase(7), (158, 248, 338)),
    Cells(100, RoundedToBase(3, random=True), (74, 116, 159)),
)
SPARSE = subsets_of(0.2)
MANY = (
    *FEW,
    Cells(100, Uniform(2), (66, 110, 165)),
    Cells(100, Uniform(10), (277, 507, 692)),
    Cells(100, Uniform(30), (268, 937, 2007)),
    Cells(200, Uniform(6), (251, 460, 627, 836)),
    Cells(400, Uniform(6), (361, 751, 902)),
    Cells(1000, Uniform(6), (577, 1200, 1443)),
    Cells(100, RoundedToBase(2), (60, 100, 150)),
    Cells(1000, RoundedToBase(7), (413, 885)),
    Cells(200, RoundedToBase(5, random=True), (188, 344, 470)),
    Cells(1000, RoundedToBase(5, random=True), (413, 885)),
    Cells(100, Uniform(3), (79, 198), prior=0.2),
    Cells(100, Uniform(6), (91, 226), family=SIGNS),
    Cells(100, Uniform(3), (112, 279), family=SPARSE),
    Cells(100, Gaussian(0.5), (60, 80, 150)),
    Cells(100, Gaussian(1.0), (60, 80, 150)),
    Cells(400, Gaussian(2.0), (200, 320, 420)),
    Cells(1000, Gaussian(2.0), (400, 600, 900)),
    Cells(1000, Gaussian(4.0), (500, 1200)),
    Cells(100, Gaussian(4.0), (5, 40)),
    Cells(100, Gaussian(20.0), (3000, 10000)),
    Cells(100, Gaussian(4.0), (300,), prior=0.2),
    Cells(100, Gaussian(4.0), (300,), family=SIGNS),
    Cells(100, Gaussian(4.0), (300,), family=SPARSE),
    Cells(100, Laplace(1.0), (60, 80, 150)),
    Cells(100, Laplace(2.0), (100, 300)),
)


NAMED = tuple(decoder.name for decoder in DECODERS)


@dataclass(frozen=True)
class NamedRow:
    """A prediction beside what the decoder meant got right, on average over ``trials`` worlds.

    ``named`` is the decoder that attains it, missing where none is said to. ``holds`` is whether
    the measured accuracy lies ``within`` what is claimed, or reaches what is said to be reached, as
    far as three standard errors can tell.
    """

    noise: str
    n: int
    queries: int
    decoder: str
    named: str | None
    predicted: float
    measured: float
    standard_error: float
    difference: float
    within: float | None
    reaches: float | None
    holds: bool


def measure_named(
    cells: Sequence[Cells] = FEW,
    trials: int = 12,
    decoders: Sequence[str] = NAMED,
    seed: int = 0,
    progress: Progress = silent,
) -> list[NamedRow]:
    """Compare every prediction for these cells with the decoder that is meant by it."""
    if unknown := set(decoders) - set(NAMED):
        raise InputError(f"there is no decoder {min(unknown)!r}; choose {', '.join(NAMED)}")
    attacks = [
        Attack(each.n, queries, each.mechanism, each.prior, each.family)
        for each in cells
        for queries in each.queries
    ]
    rows: list[NamedRow] = []
    for done, attack in enumerate(attacks):
        progress(done, len(attacks))
        worlds = [_world(attack, seed, trial) for trial in range(trials)]
        for recursion in decoders_for(attack.mechanism):
            if recursion.name not in decoders:
                continue
            try:
                prediction = predict(attack, recursion)
            except NoPrediction:
                continue
            decoder = _decoder(recursion.name, attack)
            right = [(decoder.decode(w.transcript).values == w.secret).mean() for w in worlds]
            rows.append(_row(prediction, np.array(right)))
    progress(len(attacks), len(attacks))
    return rows


def _world(attack: Attack, seed: int, trial: int) -> World:
    name = [*str(attack.mechanism).encode(), attack.people, attack.queries, trial]
    draws, noise = np.random.SeedSequence([seed, *name]).spawn(2)
    rng, ids = np.random.default_rng(draws), np.arange(attack.people)
    secret = (rng.random(attack.people) < attack.prior).astype(np.int8)
    if attack.family is SIGNS:
        queries = random_signs(ids, attack.queries, rng)
    else:
        members = rng.random((attack.queries, attack.people)) < attack.family.mean
        queries = Queries(ids, members.astype(np.int8), Subsets())
    answers = attack.mechanism.release(queries.dot(secret.astype(np.float64)), noise)
    return World(Transcript.of(queries, answers), secret)


def _decoder(name: str, attack: Attack) -> Decoder:
    """The decoder of that name, told the noise and the prior."""
    match attack.mechanism:
        case _ if name == "lp":
            return Rounding()
        case _ if name == "ls":
            return LeastSquares()
        case Uniform(bound):
            rules = Rules(Shape.UNIFORM, bound=bound)
        case RoundedToBase(base, by_chance):
            rules = Rules(Shape.EXACT, base=base, random_rounding=by_chance)
        case Gaussian(sigma):
            return Bayes(Noise(sigma), attack.prior)
        case Laplace(sigma):
            return Bayes(Noise(sigma, shape=Shape.LAPLACE), attack.prior)
        case other:
            raise InputError(f"{type(other).__name__} is not measured here")
    return Bounded(rules.noise(), time_limit=0, prior=attack.prior)


def _row(prediction: Prediction, right: NDArray[np.float64]) -> NamedRow:
    attack, attained = prediction.attack, prediction.attained
    mean, doubt = float(right.mean()), float(right.std(ddof=1)) / sqrt(right.size)
    # Where all worlds agree, as if one bit more were wrong.
    doubt = max(doubt, 1 / (attack.people * right.size))
    off = prediction.accuracy - mean
    if attained.within is not None:
        holds = abs(off) <= attained.within + SURE * doubt
    else:
        # No name is no excuse: the decoder meant has to get there even if another is the best.
        holds = attained.reaches is None or mean >= attained.reaches - SURE * doubt
    words = str(attack.mechanism)
    if attack.prior != 0.5 or attack.family is not SUBSETS:
        words += f", {attack.family.name}, prior {attack.prior:g}"
    return NamedRow(
        words, attack.people, attack.queries, prediction.meant, attained.decoder,
        prediction.accuracy, mean, doubt, off, attained.within, attained.reaches, holds,
    )  # fmt: skip
