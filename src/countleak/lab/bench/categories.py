"""All values of a category decoded together, beside one program or posterior per value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.categorical import Categorical, assumed_noise
from countleak.attack.decoders.rounding import Rounding
from countleak.attack.queries import Queries
from countleak.attack.queries.subsets import Subsets, random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Transcript
from countleak.audit.people import STATUS_SHARES, People, generated_bank
from countleak.audit.run import ask
from countleak.audit.targets.simulated import Simulated, SimulatedDiffix
from countleak.progress import Progress, silent

JOINT, SEPARATE, PAPER = "together", "one posterior per value", "the paper's LP per value"
SURE = 0.95


@dataclass(frozen=True)
class Row:
    """Mean accuracy of ``decoder`` over ``trials``, from ``queries`` queries per value.

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
    """The loan statuses of ``people`` clients, a fresh bank and fresh queries per trial."""
    rows: list[Row] = []
    for at, m in enumerate(queries):
        results = []
        for trial in range(trials):
            progress(at * trials + trial, len(queries) * trials)
            results.append(_trial(m, people, sigma, suppression, seed, trial))
        rows += _rows(m, results)
    progress(len(queries) * trials, len(queries) * trials)
    return rows


@dataclass(frozen=True, eq=False)
class _Trial:
    """Who (decoders, n) was guessed right, and how surely (decoders, n), NaN where not known."""

    right: NDArray[np.bool_]
    sure: NDArray[np.float64]
    baseline: float


def _trial(m: int, n: int, sigma: float, suppression: bool, seed: int, trial: int) -> _Trial:
    bank = generated_bank(seed * 100_000 + trial)
    mechanism = SimulatedDiffix(sigma, suppressing=suppression, clamped=suppression)
    parts = [
        _part(bank, bank.ids[:n], name, m, mechanism, (seed, trial, m, v))
        for v, name in enumerate(STATUS_SHARES)
    ]
    transcript = _joined(parts)
    together = Categorical(seed=trial).decode(transcript)
    noise = assumed_noise(transcript)
    posteriors = [Bayes(noise, seed=trial).decode(part).probability for part in parts]
    apart = np.array([np.zeros(n) if p is None else p for p in posteriors])
    programs = np.array([solution_of(part) for part in parts])
    names = np.array(transcript.names)
    guesses = [together.values, names[apart.argmax(axis=0)], names[programs.argmax(axis=0)]]
    sure = [together.confidence, apart.max(axis=0), np.full(n, np.nan)]
    truth = bank.columns["status"][:n]
    shares = np.unique(truth, return_counts=True)[1]
    return _Trial(
        np.array([values == truth for values in guesses]), np.array(sure), float(shares.max() / n)
    )


def _part(
    bank: People,
    ids: NDArray[np.int64],
    name: str,
    m: int,
    mechanism: SimulatedDiffix,
    seed: tuple[int, ...],
) -> Transcript:
    """Answers to m random subsets of ``ids`` about one value."""
    queries = random_subsets(ids, m, np.random.default_rng(seed))
    return ask(queries, Simulated(bank, Bit.of("status", "=", name), mechanism, seed))


def _joined(parts: Sequence[Transcript]) -> Transcript:
    """The answers about all values, one part each, as one transcript."""
    queries = Queries(
        parts[0].ids, np.concatenate([part.queries.matrix for part in parts]), Subsets()
    )
    return Transcript(
        queries,
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.released for part in parts]),
        tuple(STATUS_SHARES),
        np.repeat(np.arange(len(parts)), len(parts[0])),
    )


def solution_of(part: Transcript) -> NDArray[np.float64]:
    """The program's x (n,), unrounded; a value whose answers were all suppressed gets nobody."""
    if not part.released.any():
        return np.zeros(part.ids.size)
    solution = Rounding().decode(part).basis.solution
    assert solution is not None and solution.x is not None
    return solution.x


def _rows(m: int, trials: Sequence[_Trial]) -> Iterator[Row]:
    accuracy = np.array([trial.right.mean(axis=1) for trial in trials])
    count = len(trials)

    def error(values: NDArray[np.float64]) -> float:
        return float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0

    for d, decoder in enumerate((JOINT, SEPARATE, PAPER)):
        gain = accuracy[:, 0] - accuracy[:, d]
        sure = np.array([trial.sure[d] for trial in trials])
        right = np.array([trial.right[d] for trial in trials])
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
            float(np.mean([trial.baseline for trial in trials])),
            float(claims.mean()) if probable else None,
            float(right[claims].mean()) if probable and claims.any() else None,
        )
