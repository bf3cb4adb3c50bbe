"""Predicted accuracy next to simulated attacks, over the grid of the paper.

Each trial draws its own secret (a generated census) and its own noise, as the prediction is an
average over both: with one secret for all trials, as the paper's simulations have it, a cell of
few queries scatters around that average by .01 to .02, however many trials it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from os import cpu_count
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.start import main
from countleak.attack.decoders.bayes import Bayes
from countleak.attack.decoders.rounding import round_solution
from countleak.attack.noise import Noise
from countleak.attack.programs import Dmt
from countleak.attack.queries import Queries
from countleak.attack.queries.digits import CONSTANTS, SWEEP_EXPONENTS, digit_queries
from countleak.attack.secrets import Bit
from countleak.attack.solvers.interior import InteriorPoint
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Transcript
from countleak.audit.budget.evolution import DECODERS, DIGITS, Attack, Recursion, fixed_point
from countleak.audit.people import generated_census
from countleak.audit.targets.simulated import SimulatedDiffix
from countleak.cli import console, options
from countleak.errors import InputError
from countleak.progress import Progress, silent

PEOPLE = (50, 75, 100, 125, 150)
A_PRIME = len(CONSTANTS) * len(SWEEP_EXPONENTS)
QUERIES = tuple(range(A_PRIME, 60 * A_PRIME, 2 * A_PRIME))
SIGMAS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
# A thinned grid, of all corners and some of the middle.
FEW_PEOPLE, FEW_QUERIES, FEW_SIGMAS = (50, 100, 150), (150, 250, 550, 1050, 2050), (2.0, 4.0, 8.0)
# Below so many queries per person nothing is promised.
LEAST_RATIO = 1.5
TRAIT = Bit("sex = 1")

# The bits (n,) that a decoder guesses from each of several transcripts of the same queries.
Simulate = Callable[[Sequence[Transcript], SimulatedDiffix], list[NDArray[np.int8]]]


@dataclass(frozen=True)
class Comparison:
    """One decoder at one point: predicted and simulated accuracy.

    ``difference`` is predicted less simulated; ``suppressing`` the accuracy simulated with low
    counts suppressed and no answer below 0, which the prediction leaves out, where wanted.
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
    suppressing: float | None


def measure_budget(
    people: Sequence[int] = FEW_PEOPLE,
    queries: Sequence[int] = FEW_QUERIES,
    sigmas: Sequence[float] = FEW_SIGMAS,
    decoders: Sequence[str] = ("lp", "ls"),
    suppression: bool = True,
    trials: int = 100,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Comparison]:
    """Compare prediction and simulation at every point with 1.5 queries per person or more."""
    if unknown := set(decoders) - set(SIMULATED):
        raise InputError(f"there is no decoder {min(unknown)!r}; choose {', '.join(SIMULATED)}")
    chosen = [decoder for decoder in DECODERS if decoder.name in decoders]
    points = [(n, m) for n in people for m in queries if m >= LEAST_RATIO * n]
    rows: list[Comparison] = []
    for done, (n, m) in enumerate(points):
        progress(done, len(points))
        ids, primes = generated_census(n).ids, -(-m // A_PRIME)
        pool = digit_queries(ids, primes=primes, exponents=SWEEP_EXPONENTS)
        for sigma in sigmas:
            rows += _compare(pool.take(np.arange(m)), sigma, chosen, suppression, trials, seed)
    progress(len(points), len(points))
    return rows


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
    suppression_moves: float | None


def summaries(rows: Sequence[Comparison], within: float) -> list[Summary]:
    """One summary per decoder."""
    by_decoder = []
    for name in dict.fromkeys(row.decoder for row in rows):
        here = [row for row in rows if row.decoder == name]
        off = np.array([row.difference for row in here])
        errors = np.array([row.standard_error for row in here])
        worst = here[int(np.abs(off).argmax())]
        moved = [row.suppressing - row.simulated for row in here if row.suppressing is not None]
        by_decoder.append(
            Summary(
                name,
                len(here),
                float(off.mean()),
                float(np.sqrt((off**2).mean())),
                worst.difference,
                f"n {worst.n}, m {worst.queries}, sigma {worst.sigma:g}",
                int((np.abs(off) > within).sum()),
                int((np.abs(off) > within + 2 * errors).sum()),
                max(moved, key=abs) if moved else None,
            )
        )
    return by_decoder


def _compare(
    queries: Queries,
    sigma: float,
    decoders: Sequence[Recursion],
    suppression: bool,
    trials: int,
    seed: int,
) -> list[Comparison]:
    m, n = queries.matrix.shape
    # A cell's draws are its own, so that cells err independently.
    draws = np.random.SeedSequence((seed, n, m, round(1000 * sigma))).generate_state(trials)
    secrets = [generated_census(n, int(draw)).truth(TRAIT) for draw in draws]

    def right(name: str, mechanism: SimulatedDiffix) -> NDArray[np.float64]:
        transcripts = [
            Transcript.of(
                queries, mechanism.release(queries.dot(secret), np.random.SeedSequence(int(draw)))
            )
            for secret, draw in zip(secrets, draws, strict=True)
        ]
        bits = SIMULATED[name](transcripts, mechanism)
        return np.array([(b == s).mean() for b, s in zip(bits, secrets, strict=True)])

    plain = SimulatedDiffix(sigma, suppressing=False, clamped=False)
    attack = Attack(n, m, plain, family=DIGITS)
    rows = []
    for decoder in decoders:
        predicted, accuracies = fixed_point(attack, decoder).accuracy, right(decoder.name, plain)
        simulated = float(accuracies.mean())
        rows.append(
            Comparison(
                n,
                m,
                sigma,
                decoder.name,
                trials,
                predicted,
                simulated,
                # Where all trials agree, as if one bit more were wrong.
                max(float(accuracies.std(ddof=1)) / sqrt(trials), 1 / (n * trials)),
                predicted - simulated,
                float(right(decoder.name, SimulatedDiffix(sigma)).mean()) if suppression else None,
            )
        )
    return rows


def _least_absolute(
    transcripts: Sequence[Transcript], mechanism: SimulatedDiffix
) -> list[NDArray[np.int8]]:
    problems = [Dmt().problem(each.suppressed_as(0)) for each in transcripts]
    solutions = InteriorPoint(threads=cpu_count() or 1).solve_all(problems)
    return [
        round_solution(transcripts[0].ids, problem, solution).values
        for problem, solution in zip(problems, solutions, strict=True)
    ]


def _least_squares(
    transcripts: Sequence[Transcript], mechanism: SimulatedDiffix
) -> list[NDArray[np.int8]]:
    # The triangle of the queries has the same least squares and far fewer rows.
    Q, R = np.linalg.qr(transcripts[0].queries.matrix.astype(np.float64))
    fits = [
        box_least_squares(NormalEquations.of(R, Q.T @ each.suppressed_as(0).values))
        for each in transcripts
    ]
    return [(fit.x >= 0.5).astype(np.int8) for fit in fits]


def _posterior(
    transcripts: Sequence[Transcript], mechanism: SimulatedDiffix
) -> list[NDArray[np.int8]]:
    noise = Noise(
        mechanism.sigma,
        floor=0.0 if mechanism.clamped else None,
        threshold=mechanism.threshold if mechanism.suppressing else None,
    )
    return [Bayes(noise, prior=0.5).decode(each).values for each in transcripts]


SIMULATED: dict[str, Simulate] = {
    "lp": _least_absolute,
    "ls": _least_squares,
    "bayes": _posterior,
}


def budget(
    whole_grid: Annotated[
        bool, typer.Option("--whole-grid", help="All of the grid, not a thinned one.")
    ] = False,
    decoder: Annotated[str, typer.Option(help="A list of lp, ls and bayes.")] = "lp,ls",
    suppression: Annotated[
        bool, typer.Option(help="Simulate each attack with low counts suppressed, too.")
    ] = True,
    trials: Annotated[int, typer.Option(help="Simulated attacks per cell.", min=2)] = 100,
    within: Annotated[float, typer.Option(help="Difference beyond which a cell is named.")] = 0.015,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Compare the accuracy `countleak budget` predicts with simulated attacks."""
    with console.progress("budget") as report:
        rows = measure_budget(
            PEOPLE if whole_grid else FEW_PEOPLE,
            QUERIES if whole_grid else FEW_QUERIES,
            SIGMAS if whole_grid else FEW_SIGMAS,
            [name.strip() for name in decoder.split(",")],
            suppression,
            trials,
            seed,
            report,
        )
    by_decoder = [asdict(summary) for summary in summaries(rows, within)]
    if json:
        console.print_json({"rows": [asdict(row) for row in rows], "summaries": by_decoder})
        return
    beyond = [row for row in rows if abs(row.difference) > within]
    if not whole_grid:
        console.print_table([asdict(row) for row in rows], "Predicted and simulated accuracy")
    elif beyond:
        console.print_table(
            [asdict(row) for row in beyond], f"Cells that differ by over {within:g}"
        )
    console.print_table(by_decoder, "By decoder")


if __name__ == "__main__":
    main("budget")
