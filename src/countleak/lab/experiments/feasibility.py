"""When the program of Dinur and Nissim has a solution at all: the bound against the queries."""

from countleak.lab.experiments import Experiment, Outcome, Settings
from countleak.lab.experiments.cells import cells
from countleak.lab.experiments.trials import grid
from countleak.progress import Progress

TRIALS = 40
# Multiplier B, queries, and what the paper says of that cell.
CELLS = (
    (2.5, 1850, "half of all executions infeasible"),
    (2.5, 2250, "at least 90% infeasible"),
    (3.0, 2550, "feasible in each of the trials"),
)


def run(settings: Settings, progress: Progress) -> Outcome:
    """The share of feasible programs in each cell, every infeasible one with its proof."""
    trials = [
        trial
        for multiplier, queries, _ in CELLS
        for trial in grid(
            decoder="dini-vertex", multiplier=multiplier, queries=queries, number=range(TRIALS)
        )
    ]
    stored = settings.runner.run(trials, settings.setting, progress)
    records = tuple(
        {
            **cell.at,
            "feasible_share": cell.feasible[0],
            "interval": cell.feasible[1],
            "trials": cell.trials,
            "paper": paper,
        }
        for cell, (_, _, paper) in zip(cells(stored, ("multiplier", "queries")), CELLS, strict=True)
    )
    return Outcome("rows", records)


EXPERIMENT = Experiment(
    "feasibility",
    "DiNi at n = 100, sigma 4: with B = 2.5 half of all programs are infeasible at 1850 queries "
    "and at least 90% from 2250 on; with B = 3 all are feasible.",
    "simulated",
    run,
)
