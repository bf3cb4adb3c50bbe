"""What a trial of a sweep costs beyond its solver, and how that scales over cores."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from countleak.lab.experiments.runner import Runner
from countleak.lab.experiments.trials import Setting, grid
from countleak.progress import Progress, silent

MANY = 100_000_000


@dataclass(frozen=True)
class Scaling:
    """The same trials on ``jobs`` cores: wall seconds, the solver's share, and what is left."""

    jobs: int
    trials: int
    seconds: float
    trials_per_second: float
    speedup: float
    solver_ms_per_trial: float
    overhead_ms_per_trial: float
    core_hours_for_100_million: float


def measure_scaling(
    jobs: Sequence[int] = (1, 2),
    n: int = 100,
    queries: int = 2550,
    trials: int = 1400,
    progress: Progress = silent,
) -> list[Scaling]:
    """Run the same DMT trials on each number of cores, every one from an empty store."""
    attacks = grid(n=n, queries=queries, sigma=(2.0, 4.0, 8.0), number=range(-(-trials // 3)))
    rows: list[Scaling] = []
    for at, count in enumerate(jobs):
        progress(at, len(jobs))
        with tempfile.TemporaryDirectory() as folder:
            # The first run on so many cores starts the workers; that is paid once, not per trial.
            Runner(Path(folder) / "warm", count).run(attacks[: 2 * count], Setting())
            begin = perf_counter()
            records = Runner(Path(folder) / "run", count).run(attacks, Setting())
            seconds = perf_counter() - begin
        solver = sum(record["rests_on"]["seconds"] for record in records) / len(records)
        core = seconds * count / len(records)
        rows.append(
            Scaling(
                count,
                len(records),
                seconds,
                len(records) / seconds,
                rows[0].seconds / seconds if rows else 1.0,
                1000 * solver,
                1000 * (core - solver),
                MANY * core / 3600,
            )
        )
    progress(len(jobs), len(jobs))
    return rows
