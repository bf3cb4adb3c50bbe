"""What the battery of ``honesty`` shows: figures per system, and whether they are good enough.

A row passes where, by intervals clustered by world,

    expected - actual share right    reaches within .02 of zero
    claims at 95% and at 99%         reach 95% and 99% right
    auto less any other decoder      reaches -.01, world by world
    auto less guessing               reaches 0, world by world

and nothing proven is wrong. Probabilities may be withdrawn, with a reason, in few rows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.clusters import Interval, mean_interval, rate_interval
from benchmarks.honesty.battery import SYSTEMS
from benchmarks.honesty.system import System
from benchmarks.honesty.trials import AUTO, DECODERS, Attempt, Trial
from countleak.audit.scores import calibration

LEVELS = (0.95, 0.99)
MOST_OFF = 0.02
MOST_BEHIND = 0.01
MOST_WITHDRAWN = 5
ENOUGH_PROOFS, ENOUGH_WORLDS = 20_000, 20


@dataclass(frozen=True)
class Claims:
    """Claims at least as sure as ``level``: how many, how many right, and their precision."""

    level: float
    made: int
    right: int
    precision: Interval | None


@dataclass(frozen=True)
class Failure:
    """A figure of a row that is not good enough, and why."""

    figure: str
    reason: str


@dataclass(frozen=True)
class Row:
    """A system's figures over ``worlds`` worlds.

    ``accuracy`` is that of each decoder, ``lead`` that of ``auto`` less each other's, and
    ``over_guessing`` less the ``baseline``, over the worlds where both have a result. ``gap`` is
    the expected share right less the actual one, where ``auto`` gives probabilities: it withdrew
    them, or had no result, in ``withdrawn`` worlds for the ``reasons``. ``without_result`` counts
    worlds per decoder and error. ``seconds`` are the mean per world of each decoder.
    """

    system: str
    held: bool
    rules: str
    worlds: int
    baseline: float
    accuracy: dict[str, Interval]
    lead: dict[str, Interval]
    over_guessing: Interval | None
    gap: Interval | None
    calibration_error: float | None
    claims: tuple[Claims, ...]
    withdrawn: int
    reasons: dict[str, int]
    without_result: dict[str, dict[str, int]]
    proven: int
    proven_wrong: int
    seconds: dict[str, float]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is not good enough, in the order of the figures."""
        return (*self._inaccurate(), *self._dishonest())

    def _inaccurate(self) -> list[Failure]:
        if self.over_guessing is None:
            errors = "; ".join(self.without_result.get(AUTO, {}))
            return [Failure(AUTO, f"auto has a result in fewer than two worlds: {errors}")]
        failures = [
            Failure(AUTO, f"auto less {other} is {lead}, more than {MOST_BEHIND:g} behind")
            for other, lead in self.lead.items()
            if not lead.reaches(-MOST_BEHIND, 1.0)
        ]
        if not self.over_guessing.reaches(0.0, 1.0):
            failures.append(Failure(AUTO, f"auto less guessing is {self.over_guessing}, below 0"))
        return failures

    def _dishonest(self) -> list[Failure]:
        failures = []
        if self.gap is not None and not self.gap.reaches(-MOST_OFF, MOST_OFF):
            why = f"expected less actual is {self.gap}, further than {MOST_OFF:g} from zero"
            failures.append(Failure("gap", why))
        failures += [
            Failure(
                f"{claims.level:.0%}",
                f"{claims.made - claims.right} of {claims.made} claims at {claims.level:.0%} are "
                f"wrong; right are {claims.precision}",
            )
            for claims in self.claims
            if claims.precision is not None and not claims.precision.reaches(claims.level, 1.0)
        ]
        if self.withdrawn and self.held:
            why = f"probabilities withdrawn in {self.withdrawn} worlds of a system that held"
            failures.append(Failure("withdrawn", why))
        if self.withdrawn and "" in self.reasons:
            why = f"probabilities withdrawn without a reason in {self.reasons['']} worlds"
            failures.append(Failure("withdrawn", why))
        if self.proven_wrong:
            why = f"{self.proven_wrong} of {self.proven} proven are wrong"
            failures.append(Failure("proven", why))
        return failures


def judge(trials: Sequence[Trial]) -> Row:
    """The row of a system, from its trials."""
    system: System = SYSTEMS[trials[0].system]
    attempts = {
        name: {t.number: t.attempts[name] for t in trials if name in t.attempts}
        for name in DECODERS
    }
    baseline = {trial.number: trial.baseline for trial in trials}
    accuracy = {
        name: {number: attempt.accuracy for number, attempt in each.items()}
        for name, each in attempts.items()
    }
    auto = list(attempts[AUTO].values())
    # Raising an error is no way round saying how sure one is: it counts as withdrawing.
    withdrawn = [attempt.reason for attempt in auto if attempt.withdrawn]
    withdrawn += [t.without_result[AUTO] for t in trials if AUTO in t.without_result]
    wrong = [int((attempt.proven & ~attempt.right).sum()) for attempt in auto]
    others = [name for name in DECODERS if name != AUTO]
    return Row(
        system=system.name,
        held=system.held,
        rules=system.stated,
        worlds=len(trials),
        baseline=float(np.mean(list(baseline.values()))),
        accuracy=_present({name: _mean(list(accuracy[name].values())) for name in DECODERS}),
        lead=_present({name: _paired(accuracy[AUTO], accuracy[name]) for name in others}),
        over_guessing=_paired(accuracy[AUTO], baseline),
        gap=_mean([a.expected - a.accuracy for a in auto if a.expected is not None]),
        calibration_error=_calibration_error(auto),
        claims=tuple(_claims(auto, level) for level in LEVELS),
        withdrawn=len(withdrawn),
        reasons=dict(Counter(withdrawn)),
        without_result=_without_result(trials),
        proven=int(sum(attempt.proven.sum() for attempt in auto)),
        proven_wrong=sum(wrong),
        seconds={
            name: float(np.mean([attempt.seconds for attempt in each.values()]))
            for name, each in attempts.items()
            if each
        },
    )


def _mean(values: Sequence[float]) -> Interval | None:
    return mean_interval(np.array(values, dtype=np.float64))


def _paired(first: dict[int, float], second: dict[int, float]) -> Interval | None:
    """First less second, over the worlds that have both."""
    return _mean([first[number] - second[number] for number in first if number in second])


def _present(intervals: dict[str, Interval | None]) -> dict[str, Interval]:
    return {name: interval for name, interval in intervals.items() if interval is not None}


def _claims(auto: Sequence[Attempt], level: float) -> Claims:
    claimed = [attempt.claimed_at(level) for attempt in auto]
    made = np.array([each.sum() for each in claimed], dtype=np.int64)
    right = np.array(
        [(each & a.right).sum() for each, a in zip(claimed, auto, strict=True)], dtype=np.int64
    )
    return Claims(level, int(made.sum()), int(right.sum()), rate_interval(right, made))


def _calibration_error(auto: Sequence[Attempt]) -> float | None:
    """Over all claims with a probability: each is an event that happened or not."""
    sure = [attempt for attempt in auto if attempt.confidence is not None]
    if not sure:
        return None
    confidence = np.concatenate([a.confidence for a in sure if a.confidence is not None])
    return calibration(confidence, np.concatenate([a.right for a in sure]).astype(np.int8)).error


def _without_result(trials: Sequence[Trial]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for trial in trials:
        for decoder, error in trial.without_result.items():
            counts.setdefault(decoder, Counter())[error] += 1
    return {decoder: dict(errors) for decoder, errors in counts.items()}


@dataclass(frozen=True)
class Verdict:
    """The battery as a whole: ``failures`` in words, none where it passes."""

    rows: int
    failing: tuple[str, ...]
    withdrawn: tuple[str, ...]
    proven: int
    proven_wrong: int
    failures: tuple[str, ...]


def conclude(rows: Sequence[Row]) -> Verdict:
    """Whether the battery passes; too few proofs fail only a whole battery of enough worlds."""
    failing = tuple(row.system for row in rows if row.failures)
    withdrawn = tuple(row.system for row in rows if row.withdrawn)
    proven, wrong = sum(row.proven for row in rows), sum(row.proven_wrong for row in rows)
    whole = len(rows) == len(SYSTEMS) and all(row.worlds >= ENOUGH_WORLDS for row in rows)
    failures = []
    if failing:
        failures.append(f"{len(failing)} of {len(rows)} rows fail")
    if len(withdrawn) > MOST_WITHDRAWN:
        failures.append(f"probabilities withdrawn in {len(withdrawn)} rows, over {MOST_WITHDRAWN}")
    if wrong:
        failures.append(f"{wrong} of {proven} proven are wrong")
    if whole and proven < ENOUGH_PROOFS:
        failures.append(f"{proven} proven, of at least {ENOUGH_PROOFS} to be checked")
    return Verdict(len(rows), failing, withdrawn, proven, wrong, tuple(failures))
