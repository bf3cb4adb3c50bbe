"""One simulated attack as data, and how to run many that share their queries.

A trial's randomness comes from its own fields and the seed, whatever machine runs it and in which
order. Trials that differ only in how they decode see the same answers.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import countleak
from countleak.attack.decoders import Guess
from countleak.attack.decoders.files import basis
from countleak.attack.decoders.rounding import round_solution
from countleak.attack.programs import Objective, Problem, Solution, Status
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import (
    ATTACK_EXPONENTS,
    CONSTANTS,
    SWEEP_EXPONENTS,
    digit_queries,
)
from countleak.attack.queries.signs import random_signs
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.solvers.highs import Highs
from countleak.attack.solvers.interior import InteriorPoint
from countleak.attack.transcript import Answers
from countleak.audit.people import Condition, People, generated_census
from countleak.audit.run import ask
from countleak.audit.scores import score
from countleak.audit.targets.recorded import people_files, read_census, read_presence
from countleak.audit.targets.simulated import (
    Gaussian,
    Laplace,
    Mechanism,
    RoundedToBase,
    Simulated,
    SimulatedDiffix,
    TwoSubsets,
    Uniform,
)
from countleak.errors import InputError, SolverError

FAMILIES = ("digits", "subsets", "signs")
MECHANISMS = ("diffix", "gaussian", "laplace", "uniform", "round")
SIGN_NOISES = ("direct", "two-subsets", "double")
DECODERS = ("dmt", "dini-vertex", "dini-centre", "dmt-integer")
WORLDS = ("census", "presence")

CANDIDATES = np.arange(2500, 2601)
PRESENT = 12
CENSUS = 5000
# What fits in memory, and noise that leaves answers that could be counts.
MOST_QUERIES, MOST_SIGMA = 10**6, 1e6
# Raised when a change makes trials come out differently, so that stored ones are not mixed in.
RESULTS = 1


@dataclass(frozen=True)
class Trial:
    """One attack: n people, so many queries of a family, a noise, a decoder, and its number.

    ``sigma`` is the noise's standard deviation in people (`uniform`: its bound, `round`: the base).
    ``sign_noise`` says how ±1 queries are answered: `direct` with SD sigma, as `two-subsets`, or
    `double` with SD 2 sigma. ``multiplier`` is DiNi's B. ``world`` `presence` asks who of 101
    candidates is there at all.
    """

    n: int = 100
    queries: int = 2550
    sigma: float = 4.0
    family: str = "digits"
    mechanism: str = "diffix"
    suppression: bool = True
    sign_noise: str = "direct"
    decoder: str = "dmt"
    multiplier: float = 0.0
    world: str = "census"
    number: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (
            ("family", FAMILIES),
            ("mechanism", MECHANISMS),
            ("sign_noise", SIGN_NOISES),
            ("decoder", DECODERS),
            ("world", WORLDS),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"there is no {name} {getattr(self, name)!r}; choose {', '.join(allowed)}"
                )
        if not 2 <= self.n <= CENSUS or not 1 <= self.queries <= MOST_QUERIES:
            raise InputError(
                f"n is {self.n} and queries {self.queries}; n must lie in 2-{CENSUS}, queries in "
                f"1-{MOST_QUERIES}"
            )
        if self.world == "presence" and self.n != CANDIDATES.size:
            raise InputError(
                f"n is {self.n}, but presence is asked of {CANDIDATES.size} candidates"
            )
        if self.mechanism in ("uniform", "round") and not self.sigma.is_integer():
            raise InputError(f"sigma is {self.sigma:g}; {self.mechanism} takes a whole number")
        if self.family == "signs" and self.sign_noise != "direct" and "dini" in self.decoder:
            raise InputError(
                "DiNi's bound is in sigmas of a direct answer; leave sign_noise direct"
            )
        if not 0 < self.sigma <= MOST_SIGMA or not 0 <= self.multiplier < inf:
            raise InputError(
                f"sigma {self.sigma:g} must be above 0 and at most {MOST_SIGMA:g}, "
                f"B {self.multiplier:g} not below"
            )

    @property
    def key(self) -> str:
        """A short name of the trial, equal for equal fields."""
        return _digest(asdict(self))

    @property
    def asked(self) -> tuple[Any, ...]:
        """What decides the queries; random families draw new ones for every number."""
        drawn = None if self.family == "digits" else self.number
        return self.world, self.family, self.n, self.queries, drawn

    @property
    def answered(self) -> dict[str, Any]:
        """What decides the answers: everything but how they are decoded."""
        return {k: v for k, v in asdict(self).items() if k not in ("decoder", "multiplier")}


def grid(**values: Any) -> list[Trial]:
    """Every combination of the fields given as sequences; single values stay fixed."""
    known = {field.name for field in fields(Trial)}
    if unknown := set(values) - known:
        raise InputError(
            f"there is no field {sorted(unknown)[0]!r}; the fields are {sorted(known)}"
        )
    lists = [v if isinstance(v, list | tuple | range) else [v] for v in values.values()]
    return [Trial(**dict(zip(values, combination, strict=True))) for combination in product(*lists)]


@dataclass(frozen=True)
class Setting:
    """What all trials of a run share: the seed, and the authors' data folder if there is one."""

    seed: int = 0
    data: str | None = None


def batches(trials: Iterable[Trial], largest: int = 120) -> list[list[Trial]]:
    """The trials in groups that share their queries, and never split those that share answers."""
    by_queries: dict[tuple[Any, ...], dict[str, list[Trial]]] = {}
    for trial in trials:
        group = by_queries.setdefault(trial.asked, {})
        group.setdefault(_digest(trial.answered), []).append(trial)
    found: list[list[Trial]] = []
    for group in by_queries.values():
        batch: list[Trial] = []
        for together in group.values():
            if batch and len(batch) + len(together) > largest:
                found.append(batch)
                batch = []
            batch = batch + together
        found.append(batch)
    return found


def run_batch(batch: Sequence[Trial], setting: Setting) -> list[dict[str, Any]]:
    """A record for each trial of a batch: its score, its certificate, its time."""
    people, condition = _people(batch[0], setting)
    queries = _queries(batch[0], people, setting)
    secret = np.isin(queries.ids, people.ids).astype(np.int8)
    if condition is not None:
        secret = people.secret(condition)
    answers: dict[str, Answers] = {}
    for trial in batch:
        key = _digest(trial.answered)
        if key not in answers:
            answers[key] = _answers(trial, queries, people, condition, setting)
    # The paper's code reads a suppressed count as 0, so all trials keep all rows and share A.
    problems = [
        _problem(trial, queries.matrix, answers[_digest(trial.answered)]) for trial in batch
    ]
    solutions = solve_trials(batch, problems)
    return [
        _record(trial, setting, queries.ids, problem, solution, secret)
        for trial, problem, solution in zip(batch, problems, solutions, strict=True)
    ]


def solve_trials(batch: Sequence[Trial], problems: Sequence[Problem]) -> list[Solution]:
    """The solutions of a batch, as many as possible in one call of the interior point.

    It also settles which feasibility programs have no solution, in a fraction of the time; only
    where there is one does the simplex have to find its vertex.
    """
    solutions = InteriorPoint().solve_all([problem.relaxed() for problem in problems])
    for i, (trial, problem, found) in enumerate(zip(batch, problems, solutions, strict=True)):
        settled = found.status in (Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE)
        vertex = trial.decoder == "dini-vertex" and found.status is not Status.INFEASIBLE
        if trial.decoder == "dmt-integer":
            solutions[i] = Highs(time_limit=10.0).solve(problem)
        elif vertex or not settled:
            second = Highs().solve(problem)
            solutions[i] = replace(second, seconds=found.seconds + second.seconds)
    return solutions


def _record(
    trial: Trial,
    setting: Setting,
    ids: NDArray[np.int64],
    problem: Problem,
    solution: Solution,
    secret: NDArray[np.int8],
) -> dict[str, Any]:
    """The record of one trial; one that could not be solved says so and stops nobody else."""
    try:
        guess = round_solution(ids, problem, solution)
    except SolverError as error:
        nobody = np.zeros(ids.size, dtype=np.bool_)
        guess = Guess(ids, np.zeros(ids.size, np.int8), nobody, np.zeros(ids.size), solution)
        failure = {"failed": str(error)}
    else:
        failure = {}
    found = score(guess, secret)
    return {
        "key": record_key(trial, setting),
        "trial": asdict(trial),
        "seed": setting.seed,
        "data": "authors" if setting.data else "generated",
        "people": found.people,
        "claims": found.claims,
        "right": found.right,
        "accuracy": found.accuracy,
        "baseline": found.baseline,
        "false_positives": found.false_positives,
        "false_negatives": found.false_negatives,
        "rests_on": basis(guess),
        "version": countleak.__version__,
        **failure,
    }


def record_key(trial: Trial, setting: Setting) -> str:
    """The name of a trial's record in a store: trial, seed, whose people, kind of results."""
    return f"{trial.key}-{setting.seed}-{_whose(setting.data)}-{RESULTS}"


@cache
def _whose(data: str | None) -> str:
    """A fingerprint of the authors' people, or that they are generated."""
    if data is None:
        return "generated"
    content = hashlib.sha256()
    for path in people_files(Path(data)):
        content.update(path.read_bytes())
    return content.hexdigest()[:8]


def _people(trial: Trial, setting: Setting) -> tuple[People, Condition | None]:
    folder = Path(setting.data) if setting.data else None
    if trial.world == "presence":
        if folder:
            return read_presence(folder), None
        rng = np.random.default_rng([setting.seed, 2500])
        return People(np.sort(rng.choice(CANDIDATES, size=PRESENT, replace=False)), {}), None
    # One census for all n, so that a smaller one is the beginning of a larger one.
    people = read_census(folder, trial.n) if folder else generated_census(CENSUS, setting.seed)
    return people.between(1000, 999 + trial.n), Condition("sex", "=", "1")


def _queries(trial: Trial, people: People, setting: Setting) -> Queries:
    ids = CANDIDATES if trial.world == "presence" else people.ids
    # Seeded by what decides the queries and nothing else: a batch shares them.
    rng = np.random.default_rng([setting.seed, _number(trial.asked)])
    if trial.family == "subsets":
        return random_subsets(ids, trial.queries, rng)
    if trial.family == "signs":
        return random_signs(ids, trial.queries, rng)
    exponents = ATTACK_EXPONENTS if trial.world == "presence" else SWEEP_EXPONENTS
    primes = -(-trial.queries // (len(CONSTANTS) * len(exponents)))
    every = digit_queries(ids, primes=primes, exponents=exponents, column=people.id_column)
    if len(every) == trial.queries:
        return every
    return every.take(np.sort(rng.choice(len(every), size=trial.queries, replace=False)))


def _answers(
    trial: Trial, queries: Queries, people: People, condition: Condition | None, setting: Setting
) -> Answers:
    shape = {k: v for k, v in trial.answered.items() if k != "number"}
    seed = (setting.seed, trial.number, _number(shape))
    target = Simulated(people, condition, _mechanism(trial), seed)
    return ask(queries, target).suppressed_as(0)


def _mechanism(trial: Trial) -> Mechanism | TwoSubsets:
    doubled = trial.family == "signs" and trial.sign_noise == "double"
    sigma = 2 * trial.sigma if doubled else trial.sigma
    signed = trial.family == "signs" and trial.sign_noise != "two-subsets"
    mechanism: Mechanism
    if trial.mechanism == "diffix":
        # A sum of +1 and -1 is no count: nothing is low, and it may be negative.
        mechanism = SimulatedDiffix(
            sigma, suppressing=trial.suppression and not signed, clamped=not signed
        )
    elif trial.mechanism == "gaussian":
        mechanism = Gaussian(sigma)
    elif trial.mechanism == "laplace":
        mechanism = Laplace(sigma)
    elif trial.mechanism == "uniform":
        mechanism = Uniform(int(sigma))
    else:
        mechanism = RoundedToBase(int(sigma))
    if trial.family == "signs" and trial.sign_noise == "two-subsets":
        return TwoSubsets(mechanism)
    return mechanism


def _problem(trial: Trial, A: NDArray[np.int8], answers: Answers) -> Problem:
    if trial.decoder.startswith("dini"):
        return Problem(A, answers.values, Objective.NONE, trial.multiplier * trial.sigma)
    return Problem(A, answers.values, integer=trial.decoder == "dmt-integer")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _number(value: Any) -> int:
    return int(_digest(value), 16)
