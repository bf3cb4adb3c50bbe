"""Runs trials through joblib, on this machine's cores or a Dask cluster, and stores each result."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from countleak.attack.programs import Objective
from countleak.attack.solvers.interior import warm_up
from countleak.errors import InputError
from countleak.lab.experiments.attacks import run_batch
from countleak.lab.experiments.store import Store
from countleak.lab.experiments.trials import Setting, Trial, batches, record_key
from countleak.parallel import workers
from countleak.progress import Progress, silent

# How many times as long as the interior point a decoder takes, roughly.
EFFORT = {"dini-vertex": 10, "auto": 300, "bayes": 300, "robust": 500, "bounded": 300}


@dataclass(frozen=True)
class Runner:
    """Where trials run and where they are kept.

    ``cluster`` is a Dask scheduler's address (`tcp://host:8786`), or `local:2` for a Dask cluster
    of two worker processes started here; without one, joblib uses ``jobs`` cores of this machine.
    Of each point of a grid only the first ``most`` trials are run, where that is given.
    """

    folder: Path
    jobs: int = -1
    cluster: str | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.jobs == 0 or self.jobs < -1:
            raise InputError(f"jobs is {self.jobs}; give a number of cores, or -1 for all")

    def run(
        self,
        trials: Sequence[Trial],
        setting: Setting,
        progress: Progress = silent,
    ) -> list[Mapping[str, Any]]:
        """The records of all trials, in their order; those stored before are not run again."""
        if self.most is not None:
            trials = [trial for trial in trials if trial.number < self.most]
        with closing(Store(self.folder / "trials.jsonl")) as store:
            return self._run(trials, setting, store, progress)

    def _run(
        self,
        trials: Sequence[Trial],
        setting: Setting,
        store: Store,
        progress: Progress,
    ) -> list[Mapping[str, Any]]:
        pending = [trial for trial in trials if record_key(trial, setting) not in store.records]
        done = len(trials) - len(pending)
        progress(done, len(trials))
        if pending:
            # Compiled here once, so that the workers find it cached.
            for objective in Objective:
                warm_up(objective)
            with workers(self.jobs, self.cluster) as work:
                # The longest first, so that no core waits for a straggler at the end.
                ordered = sorted(batches(pending), key=_cost, reverse=True)
                for records in work(joblib.delayed(run_batch)(b, setting) for b in ordered):
                    store.append(records)
                    done += len(records)
                    progress(done, len(trials))
        return [store.records[record_key(trial, setting)] for trial in trials]


def _cost(batch: Sequence[Trial]) -> float:
    """A rough order of effort: a vertex by the simplex, or a posterior, takes far longer."""
    return sum(trial.n * trial.queries * EFFORT.get(trial.decoder, 1) for trial in batch)
