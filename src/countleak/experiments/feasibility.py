"""When the program of Dinur and Nissim has a solution at all: the bound against the queries."""

from countleak.audit import ask
from countleak.decoders.rounding import Rounding
from countleak.experiments import Experiment, Outcome, Progress, Settings
from countleak.people import Condition, generated_census
from countleak.problems import DiNi, Infeasible
from countleak.queries.digits import SWEEP_EXPONENTS, digit_queries
from countleak.scores import wilson
from countleak.targets.recorded import read_census
from countleak.targets.simulated import Simulated, SimulatedDiffix

N, SIGMA, TRIALS = 100, 4.0, 40
# Multiplier B, primes (50 queries each), and what the paper says of that cell.
CELLS = (
    (2.5, 37, "half of all executions infeasible"),
    (2.5, 45, "at least 90% infeasible"),
    (3.0, 51, "feasible in each of the trials"),
)


def run(settings: Settings, progress: Progress) -> Outcome:
    """The share of feasible programs in each cell, every infeasible one with its proof."""
    people = read_census(settings.data, N) if settings.data else generated_census(N, settings.seed)
    records = []
    for cell, (multiplier, primes, paper) in enumerate(CELLS):
        queries = digit_queries(
            people.ids,
            primes=primes,
            exponents=SWEEP_EXPONENTS,
            arithmetic=settings.arithmetic,
            column=people.id_column,
        )
        decoder = Rounding(DiNi(multiplier, SIGMA), settings.solver)
        feasible = 0
        for trial in range(TRIALS):
            progress(cell * TRIALS + trial, len(CELLS) * TRIALS)
            target = Simulated(
                people,
                Condition("sex", "=", "1"),
                SimulatedDiffix(SIGMA),
                seed=(settings.seed, primes, trial),
            )
            answers = ask(queries, target).suppressed_as(0)
            certificate = decoder.decode(queries, answers).certificate
            feasible += not isinstance(certificate, Infeasible)
        records.append(
            {
                "multiplier": multiplier,
                "queries": len(queries),
                "feasible_share": feasible / TRIALS,
                "interval": wilson(feasible, TRIALS),
                "trials": TRIALS,
                "paper": paper,
            }
        )
    progress(len(CELLS) * TRIALS, len(CELLS) * TRIALS)
    return Outcome("rows", tuple(records))


EXPERIMENT = Experiment(
    "feasibility",
    "DiNi at n = 100, sigma 4: with B = 2.5 half of all programs are infeasible at 1850 queries "
    "and at least 90% from 2250 on; with B = 3 all are feasible.",
    "simulated",
    run,
)
