"""Decoders side by side on the same worlds: accuracy, standard error, calibration, speed.

Next to them stand what guessing gets and, for clean simulated worlds, three predictions of
``budget``: state evolution of the Bayesian decoder, the large-n limit (many unknown bits together
leave no more; few can) and the genie bound (every other bit known; nothing beats it). The suite
``recorded`` asks how many of the answers that Diffix gave in 2018 each decoder needs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.start import main
from benchmarks.worlds import SUITES, Setting, Suite
from countleak.attack.decoders import Decoder
from countleak.attack.decoders.auto import AutoDecoder
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.least_squares import LeastSquares
from countleak.attack.decoders.polish import Polished
from countleak.attack.decoders.robust import Robust
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.noise import Noise, Threshold
from countleak.attack.transcript import Transcript
from countleak.audit.budget.evolution import (
    Attack,
    Posterior,
    fixed_point,
    genie_bound,
    large_n_limit,
)
from countleak.audit.scores import calibration
from countleak.audit.targets.recorded import read_ranges
from countleak.audit.targets.simulated import Gaussian
from countleak.cli import console, options
from countleak.cli.option_rules import needs
from countleak.errors import InputError, NoPrediction
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
# Decoders that know nothing of suppression.
PLAIN = ("lp", "ls", "polished", "bayes")
# The suite of recorded answers: how many of them, and who decodes them.
RECORDED, SIZES = "recorded", (750, 900, 1050, 1200, 1350, 1500, 1650, 1800, 2000, 2200, 2500)
OF_RECORDED = ("lp", "ls", "auto")


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
    tasks = [
        [delayed(_on_world)(setting, number, suite.decoders) for number in range(trials)]
        for setting in suite.settings
    ]
    results = _attempts(tasks, jobs, progress)
    for setting, attempts in zip(suite.settings, results, strict=True):
        for name in suite.decoders:
            yield _record(setting, name, [attempt[name] for attempt in attempts])


def compare_recorded(
    folder: Path,
    repeats: int,
    jobs: int = 1,
    progress: Progress = silent,
    sizes: Sequence[int] = SIZES,
    decoders: Sequence[str] = OF_RECORDED,
) -> Iterator[dict[str, Any]]:
    """A record for each range, number of queries and decoder, over random subsets of the queries.

    The truth is used for the score alone. Subsets are the same for all decoders.
    """
    ranges = [(each, each.log.transcript(each.people.ids)) for each in read_ranges(folder)]
    settings = [(*each, m) for each in ranges for m in sizes]
    tasks = [
        [
            delayed(_on_part)(transcript, recorded.secret, m, number, decoders)
            for number in range(repeats)
        ]
        for recorded, transcript, m in settings
    ]
    results = _attempts(tasks, jobs, progress)
    for (recorded, _, m), attempts in zip(settings, results, strict=True):
        for name in decoders:
            of = {"range": recorded.name, "n": recorded.secret.size, "m": m, "decoder": name}
            record = of | _figures([attempt[name] for attempt in attempts])
            del record["bins"]
            yield record


Attempts = dict[str, Attempt]


def _attempts(
    tasks: Sequence[Sequence[Any]], jobs: int, progress: Progress
) -> Iterator[list[Attempts]]:
    """The results of each setting's tasks in turn."""
    total, done = sum(map(len, tasks)), 0
    with Parallel(n_jobs=jobs, return_as="generator") as parallel:
        for some in tasks:
            results: list[Attempts] = []
            for result in parallel(some):
                results.append(result)
                done += 1
                progress(done, total)
            yield results


def _on_world(setting: Setting, number: int, decoders: Sequence[str]) -> Attempts:
    world = setting.world(number)
    return {
        # The paper's code reads a suppressed count as 0; leaving it out is worse still.
        name: _attempt(
            name,
            world.transcript.suppressed_as(0.0)
            if name in PLAIN and setting.kind == "suppressed"
            else world.transcript,
            world.secret,
        )
        for name in decoders
    }


def _on_part(
    transcript: Transcript,
    secret: NDArray[np.int8],
    m: int,
    number: int,
    decoders: Sequence[str],
) -> Attempts:
    rng = np.random.default_rng([number, m])
    part = transcript.take(np.sort(rng.choice(len(transcript), size=m, replace=False)))
    return {name: _attempt(name, part, secret) for name in decoders}


def _attempt(name: str, transcript: Transcript, secret: NDArray[np.int8]) -> Attempt:
    with threadpool_limits(1):
        begin = perf_counter()
        guess = DECODERS[name]().decode(transcript)
        seconds = perf_counter() - begin
    return Attempt(guess.claimed & (guess.values == secret), guess.probability, secret, seconds)


def _record(setting: Setting, decoder: str, attempts: Sequence[Attempt]) -> dict[str, Any]:
    shares = np.array([attempt.right.mean() for attempt in attempts])
    record: dict[str, Any] = {
        "kind": setting.kind,
        "n": setting.n,
        "m": setting.m,
        "sigma": setting.sigma,
        "prior": setting.prior,
        "decoder": decoder,
        "worst": float(shares.min()),
        "perfect": float((shares == 1.0).mean()),
        "evolution": None,
        "limit": None,
        "genie": None,
        "seconds": float(np.median([attempt.seconds for attempt in attempts])),
    }
    if setting.kind == "clean":
        attack = Attack(setting.n, setting.m, Gaussian(setting.sigma), setting.prior)
        record["limit"], record["genie"] = large_n_limit(attack), genie_bound(attack)
        with suppress(NoPrediction):
            record["evolution"] = fixed_point(attack, Posterior()).accuracy
    return record | _figures(attempts)


def _figures(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """How many are right, next to guessing, and what probabilities are worth, where given."""
    shares = np.array([attempt.right.mean() for attempt in attempts])
    ones = np.array([attempt.secret.mean() for attempt in attempts])
    figures: dict[str, Any] = {
        "accuracy": float(shares.mean()),
        "se": float(shares.std(ddof=1) / np.sqrt(shares.size)),
        "baseline": float(np.maximum(ones, 1 - ones).mean()),
        "calibration_error": None,
        "bins": [],
        "claims_95": None,
        "precision_95": None,
    }
    chances = [
        (attempt.probability, attempt.secret)
        for attempt in attempts
        if attempt.probability is not None
    ]
    if not chances:
        return figures
    p, secret = map(np.concatenate, zip(*chances, strict=True))
    sure = np.maximum(p, 1 - p) >= SURE
    right = (p >= 0.5) == (secret == 1)
    measured = calibration(p, secret)
    return figures | {
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


def needed(records: Sequence[dict[str, Any]], target: float = 0.99) -> list[dict[str, Any]]:
    """Queries for a mean accuracy of ``target``, one row per range, and the share saved."""
    rows = []
    for name in dict.fromkeys(record["range"] for record in records):
        row: dict[str, Any] = {"range": name, "target": target}
        for decoder in dict.fromkeys(record["decoder"] for record in records):
            points = [
                (record["m"], record["accuracy"])
                for record in records
                if (record["range"], record["decoder"]) == (name, decoder)
            ]
            row[decoder] = queries_needed(points, target)
        if row.get("lp") and row.get("auto"):
            row["fewer"] = 1 - row["auto"] / row["lp"]
        rows.append(row)
    return rows


SHOWN = ("kind", "n", "m", "sigma", "prior", "decoder", "accuracy", "se", "worst", "perfect",
         "baseline", "evolution", "limit", "genie", "calibration_error", "claims_95",
         "precision_95", "seconds")  # fmt: skip


@needs({"--data": {"--suite": (RECORDED,)}})
def decoders(
    suite: Annotated[
        str,
        typer.Option(
            help=f"What to compare on: {', '.join(SUITES)}, or recorded (with --data).",
        ),
    ] = "queries",
    trials: Annotated[
        int, typer.Option(help="Worlds per setting (recorded: subsets per size).", min=2)
    ] = 20,
    data: Annotated[
        Path | None, typer.Option(help="recorded: the folder `data` of the authors' repository.")
    ] = None,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Compare the decoders' accuracy, calibration and speed with each other and the limits."""
    if suite == RECORDED:
        _recorded(data, trials, jobs, json)
        return
    if suite not in SUITES:
        raise InputError(f"there is no suite {suite!r}; choose {', '.join([*SUITES, RECORDED])}")
    chosen = SUITES[suite]
    with console.progress(f"decoders, {suite}") as report:
        records = list(compare(chosen, trials, jobs, report))
    reached = _reached(records) if suite in ("queries", "suppression") else {}
    pooled = {
        name: pooled_error([r for r in records if r["decoder"] == name]) for name in chosen.decoders
    }
    if json:
        console.print_json(
            {
                "suite": suite,
                "trials": trials,
                "rows": records,
                "needed": reached,
                "pooled_calibration_error": pooled,
            }
        )
        return
    rows = [{name: record[name] for name in _telling(records)} for record in records]
    console.print_table(rows, f"{chosen.question} ({trials} simulated worlds per row)")
    for decoder, error in pooled.items():
        if error is not None:
            console.say(f"Calibration error of {decoder} over all rows together: {error:.4f}")
    for decoder, queries in reached.items():
        needed = "not reached" if queries is None else f"{queries:.0f} queries"
        console.say(f"99% with {decoder}: {needed}")


def _telling(records: list[dict[str, Any]]) -> list[str]:
    """The columns that say something: not those that are empty, or the same in every row."""
    always = ("decoder", "accuracy", "se", "baseline")
    return [
        name
        for name in SHOWN
        if name in always or len({repr(record[name]) for record in records}) > 1
    ]


def _reached(records: list[dict[str, Any]]) -> dict[str, float | None]:
    return {
        decoder: queries_needed(
            [(r["m"], r["accuracy"]) for r in records if r["decoder"] == decoder]
        )
        for decoder in dict.fromkeys(record["decoder"] for record in records)
    }


def _recorded(data: Path | None, trials: int, jobs: int, json: bool) -> None:
    if data is None:
        raise InputError("pass --data with the folder `data` of the authors' repository")
    with console.progress("decoders, recorded") as report:
        records = list(compare_recorded(data, trials, jobs, report))
    rows = needed(records)
    if json:
        console.print_json({"suite": RECORDED, "trials": trials, "rows": records, "needed": rows})
        return
    console.print_table(records, f"Recorded answers of Diffix ({trials} random subsets per row)")
    console.print_table(rows, "Queries for 99% mean accuracy")


if __name__ == "__main__":
    main("decoders")
