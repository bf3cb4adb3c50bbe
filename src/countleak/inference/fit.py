"""A fit: the posterior, sampled from the best of several quick starts.

Least squares over the box, message passing, which reaches further where there are fewer answers
than people, and absolute residuals where some answers may be grossly wrong.
"""

import numpy as np
from numpy.typing import NDArray

from countleak.answers import Answers
from countleak.inference.evidence import Evidence
from countleak.inference.messages import pass_messages
from countleak.inference.sampling import MANY, Effort, Posterior, Start, sample
from countleak.noise import Noise, Values
from countleak.problems import Dmt
from countleak.queries import Queries
from countleak.solvers.interior import InteriorPoint
from countleak.solvers.squares import box_least_squares


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
        prior=prior,
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


def best_start(
    queries: Queries,
    answers: Answers,
    evidence: Evidence,
    known: NDArray[np.bool_],
    bits: NDArray[np.int64],
) -> Start:
    """The likeliest of the bits that quick decoders find, with the noise that they leave.

    Absolute residuals are tried as well where some answers may be grossly wrong.
    """
    noise, n = evidence.noise, evidence.n
    if not answers.released.any():
        return Start(np.where(known, bits, 0), _values(noise, np.zeros(1)))
    problem = Dmt().problem(queries, answers)
    centred = problem.b - (noise.offset or 0.0)
    found = [box_least_squares(problem.A, centred).x]
    belief = pass_messages(problem.A, centred)
    found.append(belief.probability)
    if noise.wrong != 0.0:
        solved = InteriorPoint().solve(problem).x
        found += [] if solved is None else [solved]
    best: tuple[float, Start] | None = None
    for solution in found:
        x = np.where(known, bits, solution >= 0.5).astype(np.int64)
        residual = problem.b - problem.A @ x.astype(np.float64)
        values = _values(noise, residual)
        likelihood = float(evidence.table(values).ravel()[evidence.cells(x)].sum())
        if best is None or likelihood > best[0]:
            best = likelihood, Start(x, values)
    assert best is not None and n
    return best[1]


def _values(noise: Noise, residual: NDArray[np.float64]) -> Values:
    """Values for all that is open, from residuals at a start; a few gross ones change nothing."""
    offset = float(np.median(residual)) if noise.offset is None else noise.offset
    scale = max(1.4826 * float(np.median(np.abs(residual - offset))), 0.5)
    sigma = np.full(noise.group_count, scale)
    if noise.sigma is not None:
        sigma = np.broadcast_to(np.asarray(noise.sigma, np.float64), sigma.shape).copy()
    return Values(sigma, offset, 0.02 if noise.wrong is None else noise.wrong)
