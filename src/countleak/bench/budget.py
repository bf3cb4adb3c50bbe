"""Predicted accuracy next to simulated attacks, over the grid of the paper.

Each trial draws its own secret (a generated census) and its own noise, as the prediction is an
average over both: with one secret for all trials, as the paper's simulations have it, a cell of
few queries scatters around that average by .01 to .02, however many trials it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from countleak.budget.evolution import DECODERS, DIGITS, Attack, predict
from countleak.decoders.rounding import round_solution
from countleak.people import Condition, generated_census
from countleak.problems import Problem
from countleak.queries.digits import CONSTANTS, SWEEP_EXPONENTS, digit_queries
from countleak.solvers.interior import InteriorPoint
from countleak.targets.simulated import SimulatedDiffix

PEOPLE = (50, 75, 100, 125, 150)
A_PRIME = len(CONSTANTS) * len(SWEEP_EXPONENTS)
QUERIES = tuple(range(A_PRIME, 60 * A_PRIME, 2 * A_PRIME))
SIGMAS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
# A thinned grid, of all corners and some of the middle.
FEW_PEOPLE, FEW_QUERIES, FEW_SIGMAS = (50, 100, 150), (150, 250, 550, 1050, 2050), (2.0, 4.0, 8.0)
# Under so many queries a person nothing is promised.
LEAST_RATIO = 1.5
TRAIT = Condition("sex", "=", "1")

# The bits (n, t) that a decoder makes of t columns of answers (m, t) to the queries A (m, n).
Decode = Callable[[NDArray[np.int8], NDArray[np.float64]], NDArray[np.int8]]


@dataclass(frozen=True)
class Comparison:
    """One decoder at one point: predicted and simulated accuracy, and what Diffix makes of it.

    ``difference`` is predicted less simulated; ``suppressing`` the accuracy simulated with low
    counts read as 0 and no answer below 0, which the prediction knows nothing of.
    """

    n: int
    queries: int
    sigma: float
    decoder: str
    trials: int
    predicted: float
    simulated: float
    standard_error: float
    difference: float
    suppressing: float


def measure_budget(
    people: Sequence[int] = FEW_PEOPLE,
    queries: Sequence[int] = FEW_QUERIES,
    sigmas: Sequence[float] = FEW_SIGMAS,
    trials: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Comparison]:
    """Compare prediction and simulation at every point with 1.5 queries a person or more."""
    points = [(n, m) for n in people for m in queries if m >= LEAST_RATIO * n]
    found: list[Comparison] = []
    for done, (n, m) in enumerate(points):
        progress(done, len(points))
        ids = generated_census(n).ids
        A = digit_queries(ids, primes=-(-m // A_PRIME), exponents=SWEEP_EXPONENTS).matrix[:m]
        for sigma in sigmas:
            found += _compare(A, sigma, trials, seed)
    progress(len(points), len(points))
    return found


@dataclass(frozen=True)
class Summary:
    """How a decoder's cells differ, predicted less simulated.

    Of the cells ``beyond`` a difference, ``surely_beyond`` are so by two standard errors more;
    ``suppression_moves`` is the most that suppression and clamping moved an accuracy.
    """

    decoder: str
    cells: int
    mean: float
    root_mean_square: float
    worst: float
    worst_at: str
    beyond: int
    surely_beyond: int
    suppression_moves: float


def summaries(rows: Sequence[Comparison], within: float) -> list[Summary]:
    """One summary a decoder."""
    found = []
    for name in dict.fromkeys(row.decoder for row in rows):
        here = [row for row in rows if row.decoder == name]
        off = np.array([row.difference for row in here])
        errors = np.array([row.standard_error for row in here])
        worst = here[int(np.abs(off).argmax())]
        moved = np.array([row.suppressing - row.simulated for row in here])
        found.append(
            Summary(
                name,
                len(here),
                float(off.mean()),
                float(np.sqrt((off**2).mean())),
                worst.difference,
                f"n {worst.n}, m {worst.queries}, sigma {worst.sigma:g}",
                int((np.abs(off) > within).sum()),
                int((np.abs(off) > within + 2 * errors).sum()),
                float(moved[np.abs(moved).argmax()]),
            )
        )
    return found


def _compare(A: NDArray[np.int8], sigma: float, trials: int, seed: int) -> list[Comparison]:
    m, n = A.shape
    # A cell's draws are its own, so that cells err independently.
    draws = np.random.SeedSequence((seed, n, m, round(1000 * sigma))).generate_state(trials)
    secrets = np.column_stack([generated_census(n, int(d)).secret(TRAIT) for d in draws])
    counts = (A @ secrets.astype(np.float64)).astype(np.float64)
    plain = SimulatedDiffix(sigma, suppressing=False, clamped=False)
    attack = Attack(n, m, plain, family=DIGITS)
    right = {}
    for mechanism in (plain, SimulatedDiffix(sigma)):
        answers = np.column_stack(
            [
                mechanism.release(column, np.random.SeedSequence(int(d))).suppressed_as(0).values
                for column, d in zip(counts.T, draws, strict=True)
            ]
        )
        for name, decode in SIMULATED.items():
            right[name, mechanism] = (decode(A, answers) == secrets).mean(axis=0)
    rows = []
    for decoder in DECODERS:
        if decoder.name in SIMULATED:
            accuracies, predicted = right[decoder.name, plain], predict(attack, decoder).accuracy
            simulated = float(accuracies.mean())
            # Where all trials agree, as if one bit more were wrong.
            error = max(float(accuracies.std(ddof=1)) / sqrt(trials), 1 / (n * trials))
            suppressing = float(right[decoder.name, SimulatedDiffix(sigma)].mean())
            rows.append(
                Comparison(
                    n,
                    m,
                    sigma,
                    decoder.name,
                    trials,
                    predicted,
                    simulated,
                    error,
                    predicted - simulated,
                    suppressing,
                )
            )
    return rows


def _least_absolute(A: NDArray[np.int8], answers: NDArray[np.float64]) -> NDArray[np.int8]:
    problems = [Problem(A, np.ascontiguousarray(column)) for column in answers.T]
    ids = np.arange(A.shape[1])
    solutions = InteriorPoint(threads=cpu_count() or 1).solve_all(problems)
    rounded = [
        round_solution(ids, problem, solution)
        for problem, solution in zip(problems, solutions, strict=True)
    ]
    return np.column_stack([guess.values for guess in rounded])


def _least_squares(A: NDArray[np.int8], answers: NDArray[np.float64]) -> NDArray[np.int8]:
    """Alternating directions for all columns at once: they share the matrix and its inverse."""
    dense = A.astype(np.float64)
    m, n = dense.shape
    rho = m / 4
    inverse = np.linalg.inv(dense.T @ dense + rho * np.eye(n))
    towards = dense.T @ answers
    z, u = np.full(towards.shape, 0.5), np.zeros(towards.shape)
    for _ in range(5000):
        x = 1.6 * (inverse @ (towards + rho * (z - u))) - 0.6 * z
        new = np.clip(x + u, 0.0, 1.0)
        u += x - new
        moved, z = float(np.abs(new - z).max()), new
        if moved < 1e-5:
            break
    return (z >= 0.5).astype(np.int8)


SIMULATED: dict[str, Decode] = {"lp": _least_absolute, "ls": _least_squares}
