"""A fit: the posterior, sampled from the best of several quick starts.

Least squares over the box, message passing, which reaches further where there are fewer answers
than people, and absolute residuals where some answers may be grossly wrong.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import Noise, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.kinds import Bits, OneOf, one_hot
from countleak.attack.posterior.messages import pass_messages
from countleak.attack.posterior.sampling import MANY, Effort, Posterior, Start, sample
from countleak.attack.programs import Dmt
from countleak.attack.queries import Queries
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Answers

# Questions about one value of a secret, and their answers.
Asked = tuple[Queries, Answers]


def fit(
    queries: Queries,
    answers: Answers,
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    prior: float | None = None,
    known: NDArray[np.bool_] | None = None,
    bits: NDArray[np.int64] | None = None,
    effort: Effort | None = None,
    histogram: bool = False,
) -> Posterior:
    """The posterior of all bits; those ``known`` (n,) are as ``bits`` (n,) says."""
    held = np.zeros(evidence.n, np.bool_) if known is None else known
    fixed = np.zeros(evidence.n, np.int64) if bits is None else bits
    return sample(
        evidence,
        best_start(queries, answers, evidence, held, fixed),
        rng,
        kind=Bits(prior),
        known=held,
        effort=effort or sensible_effort(len(answers), evidence.n),
        histogram=histogram,
    )


def sensible_effort(m: int, n: int) -> Effort:
    """Many replicas where the posterior has barriers, few where answers abound or n is large."""
    if n > MANY:
        return Effort(2, 3, 40, 60)
    if m < 1.5 * n:
        return Effort(4, 8, 150, 200)
    return Effort(2, 6 if m < 4 * n else 3, 80, 120)


def fit_values(
    asked: Sequence[Asked | None],
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    rates: tuple[float, ...] | None = None,
    known: NDArray[np.bool_] | None = None,
    values: NDArray[np.int64] | None = None,
    effort: Effort | None = None,
) -> Posterior:
    """The posterior of everyone's value, one of k: of bits as ``kinds.OneOf`` lays them out.

    ``asked`` holds the questions about each value, None where nothing was asked; ``evidence`` is
    that of all, stacked. People ``known`` (n,) have the ``values`` (n,) given.
    """
    k = len(asked)
    n = evidence.n // k
    held = np.zeros(n, np.bool_) if known is None else known
    fixed = np.zeros(n, np.int64) if values is None else values
    most = max(len(part[1]) for part in asked if part is not None)
    return sample(
        evidence,
        best_value_start(asked, evidence, held, fixed),
        rng,
        kind=OneOf(k, rates),
        known=np.tile(held, k),
        effort=effort or sensible_effort(most, n),
    )


def best_start(
    queries: Queries,
    answers: Answers,
    evidence: Evidence,
    known: NDArray[np.bool_],
    bits: NDArray[np.int64],
) -> Start:
    """The likeliest of the bits that quick decoders find, with the noise that they leave."""
    found = quick_solutions(queries, answers, evidence.noise) or [np.zeros(evidence.n)]
    candidates = [np.where(known, bits, x >= 0.5).astype(np.int64) for x in found]
    return _likeliest(evidence, candidates, [(queries, answers)])


def best_value_start(
    asked: Sequence[Asked | None],
    evidence: Evidence,
    known: NDArray[np.bool_],
    values: NDArray[np.int64],
) -> Start:
    """The likeliest of the values that quick decoders find, one value after the other.

    Whoever has no share in the values that were answered has one of the others.
    """
    n = evidence.n // len(asked)
    found = [[] if part is None else quick_solutions(*part, evidence.noise) for part in asked]
    candidates = []
    for at in range(max(map(len, found), default=0) or 1):
        shares = np.stack([x[at] if x else np.full(n, np.nan) for x in found])
        silent = np.isnan(shares).all(axis=1)
        if silent.any():
            rest = np.clip(1 - shares[~silent].sum(axis=0), 0.0, 1.0)
            shares[silent] = rest / silent.sum()
        chosen = np.where(known, values, shares.argmax(axis=0))
        candidates.append(one_hot(chosen, len(asked)))
    return _likeliest(evidence, candidates, asked)


def quick_solutions(queries: Queries, answers: Answers, noise: Noise) -> list[NDArray[np.float64]]:
    """What quick decoders find, each (n,) in [0, 1]; nothing where no answer was released.

    Absolute residuals are tried as well where some answers may be grossly wrong.
    """
    if not answers.released.any():
        return []
    problem = Dmt().problem(queries, answers)
    equations = NormalEquations.of(problem.A, problem.b - (noise.offset or 0.0))
    found = [box_least_squares(equations).x, pass_messages(equations)]
    if noise.wrong != 0.0:
        solved = AutoSolver().solve(problem).x
        found += [] if solved is None else [solved]
    return found


def _likeliest(
    evidence: Evidence, candidates: list[NDArray[np.int64]], asked: Sequence[Asked | None]
) -> Start:
    """The candidate that makes the answers likeliest, with the noise that it leaves."""
    starts = [Start(x, _values(evidence.noise, _residuals(x, asked))) for x in candidates]
    return max(
        starts,
        key=lambda start: float(
            evidence.table(start.values).ravel()[evidence.cells(start.x)].sum()
        ),
    )


def _residuals(x: NDArray[np.int64], asked: Sequence[Asked | None]) -> NDArray[np.float64]:
    """Answers less counts of bits x, for every released answer; 0 alone where there is none."""
    left = [np.zeros(0)]
    for part, bits in zip(asked, np.split(x, len(asked)), strict=True):
        if part is not None:
            queries, answers = part
            counts = queries.matrix[answers.query[answers.released]] @ bits
            left.append(answers.values[answers.released] - counts)
    residuals = np.concatenate(left)
    return residuals if residuals.size else np.zeros(1)


def _values(noise: Noise, residual: NDArray[np.float64]) -> Values:
    """Values for all that is open, from residuals at a start; a few gross ones change nothing."""
    offset = float(np.median(residual)) if noise.offset is None else noise.offset
    scale = max(1.4826 * float(np.median(np.abs(residual - offset))), 0.5)
    sigma = np.full(noise.group_count, scale)
    if noise.sigma is not None:
        sigma = np.broadcast_to(np.asarray(noise.sigma, np.float64), sigma.shape).copy()
    return Values(sigma, offset, 0.02 if noise.wrong is None else noise.wrong)
