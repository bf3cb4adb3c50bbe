"""How a batch of trials is run: its people, queries, answers and programs, and a record of each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

import countleak
from countleak.attack.decoders.rounding import round_solution
from countleak.attack.guess import Basis, Guess
from countleak.attack.programs import Problem, Solution, Status
from countleak.attack.queries import Queries
from countleak.attack.rules import Rules
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.attack.transcript import Transcript
from countleak.audit.run import ask
from countleak.audit.scores import score
from countleak.audit.targets.simulated import Mechanism, Simulated, TwoSubsets
from countleak.errors import CountleakError, InputError, SolverError
from countleak.foreign import clean, first_line
from countleak.lab.experiments.names import (
    FAMILIES,
    PROGRAMS,
    WORLDS,
    World,
    decoder_of,
    mechanism_of,
)
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
    solved = _by_program([t for t in batch if t.decoder in PROGRAMS], transcripts)
    truth = world.truth
    records = []
    for trial in batch:
        attempt = solved.get(trial) or _decoded(trial, transcripts[digest(trial.answer_fields)])
        records.append(_record(trial, setting, attempt, truth))
    return records


@dataclass(frozen=True)
class Attempt:
    """What became of a trial: a guess, what it rests on, and why it ``failed`` if it did."""

    guess: Guess
    rests_on: Mapping[str, Any]
    failed: str = ""


def _by_program(
    batch: Sequence[Trial], transcripts: Mapping[str, Transcript]
) -> dict[Trial, Attempt]:
    """What became of those trials that solve a program."""
    if not batch:
        return {}
    # The paper's code reads a suppressed count as 0, so all trials keep all rows and share A.
    asked = {key: transcript.suppressed_as(0) for key, transcript in transcripts.items()}
    problems = [
        PROGRAMS[trial.decoder](trial.multiplier, trial.sigma).problem(
            asked[digest(trial.answer_fields)]
        )
        for trial in batch
    ]
    return {
        trial: _rounded(transcripts[digest(trial.answer_fields)].ids, problem, solution)
        for trial, problem, solution in zip(
            batch, problems, solve_trials(batch, problems), strict=True
        )
    }


def _rounded(ids: NDArray[Any], problem: Problem, solution: Solution) -> Attempt:
    """The guess by a solution; one that cannot be used says so and stops no other."""
    try:
        guess = round_solution(ids, problem, solution)
    except SolverError as error:
        basis = Basis(decoder="lp", solution=solution)
        return Attempt(_nobody(ids, basis), basis.record(), str(error))
    return Attempt(guess, guess.basis.record())


def _decoded(trial: Trial, transcript: Transcript) -> Attempt:
    """The guess by a decoder that takes the transcript as it is, suppressed answers included."""
    rules = Rules() if ":" in trial.mechanism else _noise(trial).rules
    decoder = decoder_of(trial.decoder, rules, _number(trial.answer_fields) % 2**32)
    started = monotonic()
    try:
        guess = decoder.decode(transcript)
        if ":" in trial.decoder:
            _check_own(trial.decoder, guess, transcript)
    except SolverError as error:
        basis = Basis(decoder=trial.decoder)
        return Attempt(_nobody(transcript.ids, basis), {"status": "failed"}, str(error))
    except CountleakError:
        raise
    except Exception as error:
        raise _own_fault(trial.decoder, error) from error
    seconds = round(monotonic() - started, 6)
    return Attempt(guess, {"status": "decoded", "seconds": seconds, **guess.basis.record()})


def _check_own(name: str, guess: object, transcript: Transcript) -> None:
    if not isinstance(guess, Guess) or not np.array_equal(guess.ids, transcript.ids):
        raise InputError(
            f"{clean(name)} must return a Guess about `transcript.ids`, in their order"
        )


def _own_fault(name: str, error: Exception) -> Exception:
    """The error to raise for one of somebody's own class; a fault of countleak stays what it is."""
    if ":" not in name:
        return error
    return InputError(f"{clean(name)} failed with {first_line(f'{type(error).__name__}: {error}')}")


def _nobody(ids: NDArray[Any], basis: Basis) -> Guess:
    claimed = np.zeros(ids.size, dtype=np.bool_)
    return Guess(ids, claimed.astype(np.int64), claimed, basis)


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
    try:
        return ask(queries, target)
    except CountleakError:
        raise
    except Exception as error:
        raise _own_fault(trial.mechanism, error) from error


def _mechanism(trial: Trial) -> Mechanism | TwoSubsets:
    halves = trial.family == "signs" and trial.sign_noise == "two-subsets"
    return TwoSubsets(_noise(trial)) if halves else _noise(trial)


def _noise(trial: Trial) -> Mechanism:
    """What is done to each count, or to each sum of +1 and -1."""
    signs = trial.family == "signs"
    sigma = 2 * trial.sigma if signs and trial.sign_noise == "double" else trial.sigma
    # A sum of +1 and -1 is no count: nothing is low, and it may be negative.
    counts = not signs or trial.sign_noise == "two-subsets"
    return mechanism_of(trial.mechanism, sigma, trial.suppression and counts, counts)


def _record(
    trial: Trial, setting: Setting, attempt: Attempt, truth: NDArray[np.int64]
) -> dict[str, Any]:
    """The record of one trial."""
    result = score(attempt.guess, truth)
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
        "rests_on": dict(attempt.rests_on),
        "version": countleak.__version__,
        **({"failed": attempt.failed} if attempt.failed else {}),
    }


def _number(value: Any) -> int:
    return int(digest(value), 16)
