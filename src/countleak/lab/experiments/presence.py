"""Who is in the table at all: 101 candidate ids, 12 present, no knowledge of the ids needed."""

from countleak.lab.experiments import Claim, Experiment, Outcome, Settings
from countleak.lab.experiments.trials import grid
from countleak.progress import Progress

TRIALS = 10


def run(settings: Settings, progress: Progress) -> Outcome:
    """False negatives and positives in each trial; noise is drawn anew, who is there is not."""
    trials = grid(world="presence", n=101, queries=3500, sigma=4.0, number=range(TRIALS))
    stored = settings.runner.run(trials, settings.setting, progress)
    records = tuple(
        {
            "trial": record["trial"]["number"],
            "candidates": record["people"],
            "present": record["people"] - round(record["baseline"] * record["people"]),
            "queries": record["trial"]["queries"],
            "false_negatives": record["false_negatives"],
            "false_positives": record["false_positives"],
            "accuracy": record["accuracy"],
            "baseline": record["baseline"],
        }
        for record in stored
    )
    missed = [record["false_negatives"] for record in records]
    invented = sum(record["false_positives"] for record in records)
    claim = Claim(
        "Presence of 12 among 101 candidate ids: false negatives and false positives",
        "1 false negative, 0 false positives (one run)",
        f"{', '.join(map(str, missed))} false negatives and {invented} false positives in "
        f"{len(missed)} runs",
        sum(m <= 1 for m in missed) >= 0.9 * len(missed) and invented == 0,
        "noise is drawn anew in every run, and the paper shows one",
    )
    return Outcome("trials", records, claims=(claim,))


EXPERIMENT = Experiment(
    "presence",
    "Of 101 ids from 2500 to 2600, 12 present: 1 false negative and 0 false positives.",
    "simulated",
    run,
)
