"""Decoders side by side on the same simulated worlds: accuracy, standard error, calibration.

Next to them stand what guessing gets and, for clean worlds, three predictions of ``budget``: state
evolution of the Bayesian decoder, the large-n limit (many unknown bits together leave no more; few
can) and the genie bound (every other bit known; nothing beats it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from countleak.attack.decoders import Decoder
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Threshold
from countleak.audit.budget.evolution import (
    Attack,
    Posterior,
    fixed_point,
    genie_bound,
    large_n_limit,
)
from countleak.audit.scores import calibration
from countleak.audit.targets.simulated import Gaussian
from countleak.errors import InputError, NoPrediction
from countleak.lab.bench.worlds import Setting
from countleak.progress import Progress, silent

SURE = 0.95

DECODERS: dict[str, Callable[[], Decoder]] = {
    "lp": Rounding,
    "ls": LeastSquares,
    "polished": lambda: Polished(LeastSquares(), prove_up_to=0),
    "bayes": Bayes,
    "robust": Robust,
    "robust by server": lambda: Robust(by="server"),
    "censored": lambda: Bayes(Noise(threshold=Threshold(), floor=0.0)),
    "auto": lambda: AutoDecoder(time_limit=0.0),
}
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


@dataclass(frozen=True, eq=False)
class Attempt:
    """One decoder on one world: who was right, how sure, how long."""

    right: NDArray[np.bool_]
    probability: NDArray[np.float64] | None
    secret: NDArray[np.int8]
    seconds: float


def compare(
    suite: Suite,
    trials: int,
    jobs: int = 1,
    progress: Progress = silent,
) -> Iterator[dict[str, Any]]:
    """A record for each setting and decoder, over ``trials`` worlds that all decoders share."""
    if trials < 2:
        raise InputError(f"{trials} trials have no standard error; run at least 2")
    total = len(suite.settings) * trials
    done = 0
    with Parallel(n_jobs=jobs, return_as="generator") as parallel:
        for setting in suite.settings:
            attempts: list[dict[str, Attempt]] = []
            for attempt in parallel(
                delayed(_attempt)(setting, number, suite.decoders) for number in range(trials)
            ):
                attempts.append(attempt)
                done += 1
                progress(done, total)
            for name in suite.decoders:
                yield _record(setting, name, [attempt[name] for attempt in attempts])


def _attempt(setting: Setting, number: int, decoders: Sequence[str]) -> dict[str, Attempt]:
    world = setting.world(number)
    attempts = {}
    with threadpool_limits(1):
        for name in decoders:
            begin = perf_counter()
            transcript = world.transcript
            if name in ("lp", "ls", "polished", "bayes") and setting.kind == "suppressed":
                # The paper's code reads a suppressed count as 0; leaving it out is worse still.
                transcript = transcript.suppressed_as(0.0)
            guess = DECODERS[name]().decode(transcript)
            seconds = perf_counter() - begin
            right = guess.claimed & (guess.values == world.secret)
            attempts[name] = Attempt(right, guess.probability, world.secret, seconds)
    return attempts


def _record(setting: Setting, decoder: str, attempts: Sequence[Attempt]) -> dict[str, Any]:
    shares = np.array([attempt.right.mean() for attempt in attempts])
    ones = np.array([attempt.secret.mean() for attempt in attempts])
    record: dict[str, Any] = {
        "kind": setting.kind,
        "n": setting.n,
        "m": setting.m,
        "sigma": setting.sigma,
        "prior": setting.prior,
        "decoder": decoder,
        "accuracy": float(shares.mean()),
        "se": float(shares.std(ddof=1) / np.sqrt(shares.size)),
        "worst": float(shares.min()),
        "perfect": float((shares == 1.0).mean()),
        "baseline": float(np.maximum(ones, 1 - ones).mean()),
        "evolution": None,
        "limit": None,
        "genie": None,
        "calibration_error": None,
        "bins": [],
        "claims_95": None,
        "precision_95": None,
        "seconds": float(np.median([attempt.seconds for attempt in attempts])),
    }
    if setting.kind == "clean":
        attack = Attack(setting.n, setting.m, Gaussian(setting.sigma), setting.prior)
        record["limit"], record["genie"] = large_n_limit(attack), genie_bound(attack)
        with suppress(NoPrediction):
            record["evolution"] = fixed_point(attack, Posterior()).accuracy
    if all(attempt.probability is not None for attempt in attempts):
        record |= _calibrated(attempts)
    return record


def _calibrated(attempts: Sequence[Attempt]) -> dict[str, Any]:
    p = np.concatenate([a.probability for a in attempts if a.probability is not None])
    secret = np.concatenate([attempt.secret for attempt in attempts])
    sure = np.maximum(p, 1 - p) >= SURE
    right = (p >= 0.5) == (secret == 1)
    measured = calibration(p, secret)
    return {
        "calibration_error": measured.error,
        "bins": [[b.claims, b.confidence, b.right] for b in measured.bins],
        "claims_95": float(sure.mean()),
        "precision_95": float(right[sure].mean()) if sure.any() else None,
    }


def pooled_error(records: Sequence[Mapping[str, Any]], bins: int = 10) -> float | None:
    """The calibration error over the claims of all ``records``: those of one scatter by chance."""
    gaps, total = np.zeros(bins), 0
    for record in records:
        for claims, confidence, right in record["bins"]:
            gaps[min(int((2 * confidence - 1) * bins), bins - 1)] += confidence * claims - right
            total += claims
    return float(np.abs(gaps).sum() / total) if total else None


def queries_needed(points: Sequence[tuple[int, float]], target: float = 0.99) -> float | None:
    """Where accuracy against queries crosses ``target`` for good, by straight lines, if it does."""
    above = [accuracy >= target for _, accuracy in points]
    if not above or not above[-1]:
        return None
    last = max((k for k, ok in enumerate(above) if not ok), default=-1)
    if last < 0:
        return float(points[0][0])
    (m0, a0), (m1, a1) = points[last], points[last + 1]
    return m0 + (target - a0) / (a1 - a0) * (m1 - m0)
