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
from countleak.audit.releases import audit_tables
from countleak.audit.releases.likely import SURE, Belief, Posterior, likely_counts
from countleak.audit.releases.model import Stated
from countleak.audit.scores import wilson
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
class Calibration:
    """All groups of a ``kind`` of world that are not pinned: how right the likeliest count is.

    ``baseline`` is the share of the commonest count among them; ``error`` the expected calibration
    error over ten bins. Of ``sure`` claims, at 95% or more, ``right`` are, from ``low`` to ``high``
    by Wilson's interval. ``withdrawn`` groups have no probabilities.
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


def measure_posterior(
    worlds: int = 5, people: int = 400, regions: int = 3, progress: Progress = silent
) -> list[Calibration]:
    """So many worlds of each kind."""
    rows = []
    for kind in KINDS:
        claims: list[tuple[float, int, int]] = []
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


def _claims(
    kind: str, number: int, people: int, regions: int
) -> tuple[list[tuple[float, int, int]], int]:
    """Of each group: how likely its likeliest count is, that count and the true one."""
    rng = np.random.default_rng([6, number, people, regions])
    everyone = (residents if kind == KINDS[0] else clustered)(rng, people, regions)
    columns = everyone.labels(OTHER_CUTS)
    counts = cross_table(columns)
    hidden = frozenset(c for c, count in counts.items() if HIDDEN.low <= count <= HIDDEN.high)
    published = release("table", list(columns), counts, hidden)
    audit = audit_tables([Stated(published, Rules(Shape.EXACT, suppressed=HIDDEN))])
    beliefs = likely_counts(audit, Posterior(audit.model, time_limit=600.0))
    truth = {cell: counts[cell] for cell in hidden}
    claims = [_claim(each, truth[tuple(each.cell.values())])
              for each in beliefs.beliefs if tuple(each.cell.values()) in truth]  # fmt: skip
    return claims, sum(beliefs.withdrawn.values())


def _claim(belief: Belief, truth: int) -> tuple[float, int, int]:
    return belief.probability[belief.likeliest], belief.likeliest, truth


def _calibration(kind: str, claims: list[tuple[float, int, int]], withdrawn: int) -> Calibration:
    sure_of = np.array([each[0] for each in claims])
    right = np.array([each[1] == each[2] for each in claims])
    sure = sure_of >= SURE
    commonest = np.bincount([each[2] for each in claims]).max() / len(claims)
    ends = wilson(int(right[sure].sum()), int(sure.sum())) if sure.any() else (0.0, 1.0)
    return Calibration(
        kind,
        len(claims),
        withdrawn,
        float(right.mean()),
        float(sure_of.mean()),
        float(commonest),
        calibration_error(sure_of, right),
        int(sure.sum()),
        int(right[sure].sum()),
        *ends,
    )


def calibration_error(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The mean distance between what was stated and what came true, over ten bins."""
    where = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = [
        abs(stated[where == k].mean() - right[where == k].mean()) * (where == k).mean()
        for k in np.unique(where)
    ]
    return float(sum(gaps))
