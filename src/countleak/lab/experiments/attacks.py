"""How a batch of trials is run: its people, queries, answers and programs, and a record of each."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import countleak
from countleak.attack.decoders.rounding import round_solution
from countleak.attack.guess import Basis, Guess
from countleak.attack.programs import Problem, Solution, Status
from countleak.attack.queries import Queries
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.attack.transcript import Transcript
from countleak.audit.run import ask
from countleak.audit.scores import score
from countleak.audit.targets.simulated import Mechanism, Simulated, TwoSubsets
from countleak.errors import SolverError
from countleak.lab.experiments.names import DECODERS, FAMILIES, MECHANISMS, WORLDS, World
from countleak.lab.experiments.trials import Setting, Trial, digest, record_key

# Seconds a whole-number program may take.
INTEGER_SECONDS = 10.0


def run_batch(batch: Sequence[Trial], setting: Setting) -> list[dict[str, Any]]:
    """A record for each trial of a batch: its score, its certificate, its time."""
    first = batch[0]
    data = Path(setting.data) if setting.data else None
    world = WORLDS[first.world](first.n, setting.seed, data)
    # Seeded by what decides the queries and nothing else: a batch shares them.
    rng = np.random.default_rng([setting.seed, _number(first.query_fields)])
    queries = FAMILIES[first.family](world, first.queries, rng)
    transcripts: dict[str, Transcript] = {}
    for trial in batch:
        key = digest(trial.answer_fields)
        if key not in transcripts:
            transcripts[key] = _transcript(trial, world, queries, setting)
    problems = [
        DECODERS[trial.decoder](trial.multiplier, trial.sigma).problem(
            transcripts[digest(trial.answer_fields)]
        )
        for trial in batch
    ]
    solutions = solve_trials(batch, problems)
    truth = world.truth
    return [
        _record(trial, setting, queries, problem, solution, truth)
        for trial, problem, solution in zip(batch, problems, solutions, strict=True)
    ]


def solve_trials(batch: Sequence[Trial], problems: Sequence[Problem]) -> list[Solution]:
    """The solutions of a batch, as many as possible in one call of the interior point.

    It also settles which feasibility programs have no solution, in a fraction of the time; only
    where there is one does the simplex have to find its vertex.
    """
    solutions = InteriorPoint().solve_all([problem.relaxed() for problem in problems])
    for i, (trial, problem, inner) in enumerate(zip(batch, problems, solutions, strict=True)):
        settled = inner.status in (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE)
        vertex = trial.decoder == "dini-vertex" and inner.status is not Status.INFEASIBLE
        if problem.integer:
            solutions[i] = Highs(time_limit=INTEGER_SECONDS).solve(problem)
        elif vertex or not settled:
            second = Highs().solve(problem)
            solutions[i] = replace(second, seconds=inner.seconds + second.seconds)
    return solutions


def _transcript(trial: Trial, world: World, queries: Queries, setting: Setting) -> Transcript:
    shape = {k: v for k, v in trial.answer_fields.items() if k != "number"}
    seed = (setting.seed, trial.number, _number(shape))
    target = Simulated(world.people, world.secret, _mechanism(trial), seed)
    # The paper's code reads a suppressed count as 0, so all trials keep all rows and share A.
    return ask(queries, target).suppressed_as(0)


def _mechanism(trial: Trial) -> Mechanism | TwoSubsets:
    signs = trial.family == "signs"
    halves = signs and trial.sign_noise == "two-subsets"
    sigma = 2 * trial.sigma if signs and trial.sign_noise == "double" else trial.sigma
    # A sum of +1 and -1 is no count: nothing is low, and it may be negative.
    counts = not signs or halves
    mechanism = MECHANISMS[trial.mechanism](sigma, trial.suppression and counts, counts)
    return TwoSubsets(mechanism) if halves else mechanism


def _record(
    trial: Trial,
    setting: Setting,
    queries: Queries,
    problem: Problem,
    solution: Solution,
    truth: NDArray[np.int64],
) -> dict[str, Any]:
    """The record of one trial; one that could not be solved says so and stops no other."""
    try:
        guess = round_solution(queries.ids, problem, solution)
    except SolverError as error:
        nobody = np.zeros(queries.ids.size, dtype=np.bool_)
        basis = Basis(decoder="lp", solution=solution)
        guess = Guess(queries.ids, nobody.astype(np.int64), nobody, basis)
        failure = {"failed": str(error)}
    else:
        failure = {}
    result = score(guess, truth)
    return {
        "key": record_key(trial, setting),
        "trial": asdict(trial),
        "seed": setting.seed,
        "data": "authors" if setting.data else "generated",
        "people": result.people,
        "claims": result.claims,
        "right": result.right,
        "accuracy": result.accuracy,
        "baseline": result.baseline,
        "false_positives": result.false_positives,
        "false_negatives": result.false_negatives,
        "rests_on": guess.basis.record(),
        "version": countleak.__version__,
        **failure,
    }


def _number(value: Any) -> int:
    return int(digest(value), 16)
