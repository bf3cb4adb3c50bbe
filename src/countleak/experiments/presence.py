"""Who is in the table at all: 101 candidate ids, 12 present, no knowledge of the ids needed."""

import numpy as np

from countleak.audit import ask
from countleak.decoders.rounding import Rounding
from countleak.experiments import Experiment, Outcome, Progress, Settings
from countleak.people import People
from countleak.queries.digits import digit_queries
from countleak.scores import score
from countleak.targets.recorded import read_presence
from countleak.targets.simulated import Simulated, SimulatedDiffix

CANDIDATES = np.arange(2500, 2601)
PRESENT = 12
TRIALS = 10


def run(settings: Settings, progress: Progress) -> Outcome:
    """False negatives and positives in each trial; noise is drawn anew, who is there is not."""
    people = read_presence(settings.data) if settings.data else _generated(settings.seed)
    secret = np.isin(CANDIDATES, people.ids).astype(np.int8)
    queries = digit_queries(CANDIDATES, arithmetic=settings.arithmetic)
    decoder = Rounding(solver=settings.solver)
    records = []
    progress(0, TRIALS)
    for trial in range(TRIALS):
        target = Simulated(people, None, SimulatedDiffix(4.0), seed=(settings.seed, trial))
        # The paper's code reads a suppressed count as 0.
        answers = ask(queries, target).suppressed_as(0)
        found = score(decoder.decode(queries, answers), secret)
        records.append(
            {
                "trial": trial,
                "candidates": CANDIDATES.size,
                "present": len(people),
                "queries": len(queries),
                "false_negatives": found.false_negatives,
                "false_positives": found.false_positives,
                "accuracy": found.accuracy,
                "interval": found.interval(),
                "baseline": found.baseline,
            }
        )
        progress(trial + 1, TRIALS)
    return Outcome("trials", tuple(records))


def _generated(seed: int) -> People:
    rng = np.random.default_rng([seed, 2500])
    return People(np.sort(rng.choice(CANDIDATES, size=PRESENT, replace=False)), {})


EXPERIMENT = Experiment(
    "presence",
    "Of 101 ids from 2500 to 2600, 12 present: 1 false negative and 0 false positives.",
    "simulated",
    run,
)
