"""How many of Diffix's recorded answers each decoder needs, with nothing known of the truth."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from countleak.attack.transcript import Transcript
from countleak.audit.scores import calibration
from countleak.audit.targets.recorded import RecordedRange, read_ranges
from countleak.lab.bench.decoders import DECODERS, SURE, queries_needed
from countleak.progress import Progress, silent

SIZES = (750, 900, 1050, 1200, 1350, 1500, 1650, 1800, 2000, 2200, 2500)
COMPARED = ("lp", "ls", "auto")


def compare_recorded(
    folder: Path,
    repeats: int,
    jobs: int = 1,
    progress: Progress = silent,
    sizes: Sequence[int] = SIZES,
    decoders: Sequence[str] = COMPARED,
) -> Iterator[dict[str, Any]]:
    """A record for each range, number of queries and decoder, over random subsets of the queries.

    The truth is used for the score alone. Subsets are the same for all decoders.
    """
    ranges = read_ranges(folder)
    total, done = len(ranges) * len(sizes) * repeats, 0
    with Parallel(n_jobs=jobs, return_as="generator") as parallel:
        for recorded in ranges:
            transcript = recorded.log.transcript(recorded.people.ids)
            for m in sizes:
                tasks = (delayed(_attempt)(transcript, m, k, decoders) for k in range(repeats))
                attempts = []
                for attempt in parallel(tasks):
                    attempts.append(attempt)
                    done += 1
                    progress(done, total)
                for name in decoders:
                    yield _record(recorded, m, name, [attempt[name] for attempt in attempts])


Bits = tuple[NDArray[np.int8], NDArray[np.float64] | None]


def _attempt(
    transcript: Transcript, m: int, number: int, decoders: Sequence[str]
) -> dict[str, Bits]:
    rng = np.random.default_rng([number, m])
    part = transcript.take(np.sort(rng.choice(len(transcript), size=m, replace=False)))
    guesses = {}
    with threadpool_limits(1):
        for name in decoders:
            guess = DECODERS[name]().decode(part)
            guesses[name] = (guess.values, guess.probability)
    return guesses


def _record(
    recorded: RecordedRange, m: int, decoder: str, attempts: Sequence[Bits]
) -> dict[str, Any]:
    secret = recorded.secret
    shares = np.array([(values == secret).mean() for values, _ in attempts])
    record: dict[str, Any] = {
        "range": recorded.name,
        "n": secret.size,
        "m": m,
        "decoder": decoder,
        "accuracy": float(shares.mean()),
        "se": float(shares.std(ddof=1) / np.sqrt(shares.size)),
        "baseline": float(max(secret.mean(), 1 - secret.mean())),
        "calibration_error": None,
        "claims_95": None,
        "precision_95": None,
    }
    chances = [probability for _, probability in attempts if probability is not None]
    if chances:
        p, truth = np.concatenate(chances), np.tile(secret, len(chances))
        sure = np.maximum(p, 1 - p) >= SURE
        record["calibration_error"] = calibration(p, truth).error
        record["claims_95"] = float(sure.mean())
        record["precision_95"] = float(((p >= 0.5) == truth)[sure].mean()) if sure.any() else None
    return record


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
