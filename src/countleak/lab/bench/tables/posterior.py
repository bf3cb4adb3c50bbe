"""Whether "likely" means what it says: probabilities of counts that are not proven, against truth.

Worlds are tables of region x sex x age of which counts of 1 to 4 are hidden, and the rule stated.
In half of them ages, sexes and regions are independent, as the prior has it; in the other half they
are not: regions differ in age, and people come in households who share it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Range, Shape
from countleak.attack.rules import Rules
from countleak.audit.releases import SMALL, audit_tables
from countleak.audit.releases.likely import SURE, Posterior, likely_counts
from countleak.audit.releases.model import Stated
from countleak.audit.scores import wilson
from countleak.errors import NoResult
from countleak.lab.bench.tables.residents import (
    OTHER_CUTS,
    Residents,
    cross_table,
    release,
    residents,
)
from countleak.progress import Progress, silent

HIDDEN = Range(1, 4)
KINDS = ("as the prior says", "clustered")
BINS = 10
HOUSEHOLD = 3
YOUNGER = 25


@dataclass(frozen=True)
class Claim:
    """Of a group: its ``likeliest`` count, how likely that is, and 1 or 2 people; its ``truth``."""

    likeliest: int
    confidence: float
    few: float
    truth: int


@dataclass(frozen=True)
class Calibration:
    """All groups of a ``kind`` of world that are not pinned: how right the likeliest count is.

    ``baseline`` is the share of the commonest count among them; ``error`` the expected calibration
    error over ten bins. ``sure`` groups are said at 95% or more to have one or two people;
    ``right`` of them do, at a rate from ``low`` to ``high`` (Wilson). ``few`` of all groups do.
    ``withdrawn`` groups have no probabilities.
    """

    kind: str
    groups: int
    withdrawn: int
    accuracy: float
    confidence: float
    baseline: float
    error: float
    sure: int
    right: int
    low: float
    high: float
    few: float


def measure_posterior(
    worlds: int = 10, people: int = 700, regions: int = 6, progress: Progress = silent
) -> list[Calibration]:
    """So many worlds of each kind."""
    rows = []
    for kind in KINDS:
        claims: list[Claim] = []
        withdrawn = 0
        for number in range(worlds):
            progress(KINDS.index(kind) * worlds + number, len(KINDS) * worlds)
            some, without = _claims(kind, number, people, regions)
            claims += some
            withdrawn += without
        rows.append(_calibration(kind, claims, withdrawn))
    progress(len(KINDS) * worlds, len(KINDS) * worlds)
    return rows


def clustered(rng: np.random.Generator, people: int, regions: int) -> Residents:
    """People in households of three of one age and region; every second region is younger."""
    heads = residents(rng, -(-people // HOUSEHOLD), regions)
    of = np.repeat(np.arange(heads.age.size), HOUSEHOLD)[:people]
    region, age = heads.region[of], heads.age[of]
    young = np.char.replace(region, "R", "").astype(int) % 2 == 0
    return replace(
        heads,
        region=region,
        sex=np.where(rng.random(people) < 0.5, "F", "M"),
        age=np.where(young, np.maximum(age - YOUNGER, 0), age),
    )


def _claims(kind: str, number: int, people: int, regions: int) -> tuple[list[Claim], int]:
    """What is claimed of the hidden cells of a world, and of how many groups nothing is."""
    rng = np.random.default_rng([6, number, people, regions])
    everyone = (residents if kind == KINDS[0] else clustered)(rng, people, regions)
    columns = everyone.labels(OTHER_CUTS)
    counts = cross_table(columns)
    hidden = frozenset(c for c, count in counts.items() if HIDDEN.low <= count <= HIDDEN.high)
    published = release("table", list(columns), counts, hidden)
    audit = audit_tables([Stated(published, Rules(Shape.EXACT, suppressed=HIDDEN))])
    beliefs = likely_counts(audit, Posterior(audit.model, time_limit=600.0))
    claims = []
    for belief in beliefs.beliefs:
        cell = tuple(belief.cell.values())
        if cell in hidden:
            confidence = belief.probability[belief.likeliest]
            few = belief.few(SMALL)
            claims.append(Claim(belief.likeliest, confidence, few, counts[cell]))
    return claims, sum(beliefs.withdrawn.values())


def _calibration(kind: str, claims: list[Claim], withdrawn: int) -> Calibration:
    if not claims:
        raise NoResult(f"no group has probabilities, and {withdrawn} were withdrawn; take others")
    stated = np.array([claim.confidence for claim in claims])
    truth = np.array([claim.truth for claim in claims])
    right = truth == np.array([claim.likeliest for claim in claims])
    sure = np.array([claim.few >= SURE for claim in claims])
    few = (truth >= 1) & (truth <= SMALL)
    kept = int(few[sure].sum())
    return Calibration(
        kind,
        len(claims),
        withdrawn,
        float(right.mean()),
        float(stated.mean()),
        float(np.bincount(truth).max() / truth.size),
        calibration_error(stated, right),
        int(sure.sum()),
        kept,
        *(wilson(kept, int(sure.sum())) if sure.any() else (0.0, 1.0)),
        float(few.mean()),
    )


def calibration_error(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The mean distance between what was stated and what came true, over ten bins."""
    where = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = [
        abs(stated[where == k].mean() - right[where == k].mean()) * (where == k).mean()
        for k in np.unique(where)
    ]
    return float(sum(gaps))
