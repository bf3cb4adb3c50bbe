"""All values of a categorical secret decoded together, beside one program or posterior a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.categorical import Categorical, assumed_noise
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.posterior.fit import Asked
from countleak.attack.queries.subsets import random_subsets
from countleak.audit.people import STATUS_SHARES, Condition, generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.simulated import Simulated, SimulatedDiffix
from countleak.progress import Progress, silent

JOINT, SEPARATE, PAPER = "together", "a posterior a value", "the paper's LP a value"
SURE = 0.95


@dataclass(frozen=True)
class Row:
    """Mean accuracy of ``decoder`` over ``trials``, from ``queries`` queries a value.

    ``gain`` is by how much decoding together is better, trial by trial; ``baseline`` what naming
    everyone the commonest value gets right. ``claimed`` is the share of people claimed at 95%
    probability, ``precision`` the share of those claims that are so; missing without probabilities.
    """

    queries: int
    decoder: str
    trials: int
    accuracy: float
    standard_error: float
    gain: float
    gain_error: float
    baseline: float
    claimed: float | None
    precision: float | None


def measure_categories(
    queries: Sequence[int] = (50, 150, 350, 750),
    people: int = 100,
    sigma: float = 4.0,
    trials: int = 20,
    suppression: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Row]:
    """The loan statuses of ``people`` clients, a fresh bank and fresh queries a trial."""
    rows: list[Row] = []
    for at, m in enumerate(queries):
        found = []
        for trial in range(trials):
            progress(at * trials + trial, len(queries) * trials)
            found.append(_trial(m, people, sigma, suppression, seed, trial))
        rows += _rows(m, found)
    progress(len(queries) * trials, len(queries) * trials)
    return rows


@dataclass(frozen=True, eq=False)
class _Trial:
    """Who (decoders, n) was guessed right, and how surely (decoders, n), NaN where not said."""

    right: NDArray[np.bool_]
    sure: NDArray[np.float64]
    baseline: float


def _trial(m: int, n: int, sigma: float, suppression: bool, seed: int, trial: int) -> _Trial:
    bank = generated_bank(seed * 100_000 + trial)
    ids, truth = bank.ids[:n], bank.columns["status"][:n]
    mechanism = SimulatedDiffix(sigma, suppressing=suppression, clamped=suppression)
    asked = {}
    for v, name in enumerate(STATUS_SHARES):
        questions = random_subsets(ids, m, np.random.default_rng([seed, trial, m, v]))
        system = Simulated(bank, Condition("status", "=", name), mechanism, (seed, trial, m, v))
        asked[name] = questions, ask(questions, system)
    together = Categorical(seed=trial).decode(asked)
    noise = assumed_noise(list(asked.values()))
    posteriors = [Bayes(noise, seed=trial).decode(*part).probability for part in asked.values()]
    apart = np.array([np.zeros(n) if p is None else p for p in posteriors])
    programs = np.array([_solution(part, n) for part in asked.values()])
    names = np.array(list(asked))
    said = [together.values, names[apart.argmax(axis=0)], names[programs.argmax(axis=0)]]
    sure = [together.sureness, apart.max(axis=0), np.full(n, np.nan)]
    shares = np.unique(truth, return_counts=True)[1]
    return _Trial(
        np.array([values == truth for values in said]), np.array(sure), float(shares.max() / n)
    )


def _solution(part: Asked, n: int) -> NDArray[np.float64]:
    """The program's x (n,), unrounded; a value whose answers were all suppressed gets nobody."""
    if not part[1].released.any():
        return np.zeros(n)
    solution = Rounding().decode(*part).solution
    assert solution is not None and solution.x is not None
    return solution.x


def _rows(m: int, found: Sequence[_Trial]) -> Iterator[Row]:
    accuracy = np.array([trial.right.mean(axis=1) for trial in found])
    count = len(found)

    def error(values: NDArray[np.float64]) -> float:
        return float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0

    for d, decoder in enumerate((JOINT, SEPARATE, PAPER)):
        gain = accuracy[:, 0] - accuracy[:, d]
        sure = np.array([trial.sure[d] for trial in found])
        right = np.array([trial.right[d] for trial in found])
        claims = sure >= SURE
        probable = not np.isnan(sure).any()
        yield Row(
            m,
            decoder,
            count,
            float(accuracy[:, d].mean()),
            error(accuracy[:, d]),
            float(gain.mean()),
            error(gain),
            float(np.mean([trial.baseline for trial in found])),
            float(claims.mean()) if probable else None,
            float(right[claims].mean()) if probable and claims.any() else None,
        )
