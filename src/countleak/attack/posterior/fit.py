"""A fit: the posterior, sampled from the best of several quick starts.

Least squares over the box, message passing, which reaches further where there are fewer answers
than people, and absolute residuals where some answers may be grossly wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import UNKNOWN, Noise, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.messages import pass_messages
from countleak.attack.posterior.sampling import MANY, Effort, Posterior, Start, sample
from countleak.attack.posterior.secret_draws import Bits, OneOf, one_hot
from countleak.attack.programs import Problem
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Transcript

# Residuals of Gaussian noise are rarely further out than this many scales, and have kurtosis 3.
TAIL, HEAVY = 6.0, 3.5
# What quick decoders find, each (n,) in [0, 1]: where the sampler may start.
Starts = tuple[NDArray[np.float64], ...]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known beforehand: ``value`` (n,) of those marked in ``people`` (n,)."""

    people: NDArray[np.bool_]
    value: NDArray[np.int64]

    @classmethod
    def nobody(cls, n: int) -> "Known":
        """Nothing is known of n people."""
        return cls(np.zeros(n, np.bool_), np.zeros(n, np.int64))


def fit_bits(
    transcript: Transcript,
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    prior: float | None = None,
    known: Known | None = None,
    effort: Effort | None = None,
    starts: Starts = (),
    histogram: bool = False,
) -> Posterior:
    """The posterior of all bits; ``prior`` is the rate of ones, estimated unless given.

    ``starts`` saves the search for them where it was done before on the same people.
    """
    n = evidence.n
    known = known or Known.nobody(n)
    starts = starts or quick_starts(transcript, evidence.noise) or (np.zeros(n),)
    candidates = [np.where(known.people, known.value, x >= 0.5).astype(np.int64) for x in starts]
    return sample(
        evidence,
        _likeliest(evidence, candidates, [transcript]),
        rng,
        kind=Bits(prior),
        known=known.people,
        effort=effort or sensible_effort(len(transcript), n),
        histogram=histogram,
    )


def fit_values(
    parts: Sequence[Transcript | None],
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    rates: tuple[float, ...] | None = None,
    known: Known | None = None,
    effort: Effort | None = None,
) -> Posterior:
    """The posterior of everyone's value, one of k: of bits as ``OneOf`` lays them out.

    ``parts`` holds the transcript about each value, None where nothing was asked; ``evidence`` is
    that of all, stacked.
    """
    k = len(parts)
    n = evidence.n // k
    known = known or Known.nobody(n)
    most = max(len(part) for part in parts if part is not None)
    return sample(
        evidence,
        _likeliest(evidence, _value_candidates(parts, evidence, known), parts),
        rng,
        kind=OneOf(k, rates),
        known=np.tile(known.people, k),
        effort=effort or sensible_effort(most, n),
    )


def sensible_effort(m: int, n: int) -> Effort:
    """Many replicas where the posterior has barriers, few where answers abound or n is large."""
    if n > MANY:
        return Effort(2, 3, 40, 60)
    if m < 1.5 * n:
        return Effort(4, 8, 150, 200)
    return Effort(2, 6 if m < 4 * n else 3, 80, 120)


def quick_starts(transcript: Transcript, noise: Noise) -> Starts:
    """What quick decoders find; nothing where no answer was released.

    Absolute residuals are tried as well where some answers may be grossly wrong and the residuals
    of least squares look like it.
    """
    if not transcript.released.any():
        return ()
    A, b = transcript.A, transcript.b
    centred = b - (0.0 if noise.offset is UNKNOWN else noise.offset)
    equations = NormalEquations.of(A, centred)
    starts = [box_least_squares(equations).x, pass_messages(equations)]
    if noise.wrong != 0.0 and _has_heavy_tails(centred - A @ starts[0]):
        solution = AutoSolver().solve(Problem(A, b)).x
        starts += [] if solution is None else [solution]
    return tuple(starts)


def _has_heavy_tails(residual: NDArray[np.float64]) -> bool:
    """Whether residuals are further out than noise of one size would leave them."""
    away = np.abs(residual - np.median(residual))
    scale = max(1.4826 * float(np.median(away)), 1e-9)
    kurtosis = float((away**4).mean()) / max(float((away**2).mean()) ** 2, 1e-30)
    return bool(away.max() > TAIL * scale or kurtosis > HEAVY)


def _value_candidates(
    parts: Sequence[Transcript | None], evidence: Evidence, known: Known
) -> list[NDArray[np.int64]]:
    """Bits of everyone's value that quick decoders find, one value after the other.

    Whoever has no share in the values that were answered has one of the others.
    """
    n = evidence.n // len(parts)
    starts = [() if part is None else quick_starts(part, evidence.noise) for part in parts]
    candidates = []
    for at in range(max(map(len, starts), default=0) or 1):
        shares = np.stack([x[at] if x else np.full(n, np.nan) for x in starts])
        silent = np.isnan(shares).all(axis=1)
        if silent.any():
            rest = np.clip(1 - shares[~silent].sum(axis=0), 0.0, 1.0)
            shares[silent] = rest / silent.sum()
        chosen = np.where(known.people, known.value, shares.argmax(axis=0))
        candidates.append(one_hot(chosen, len(parts)))
    return candidates


def _likeliest(
    evidence: Evidence,
    candidates: list[NDArray[np.int64]],
    parts: Sequence[Transcript | None],
) -> Start:
    """The candidate that makes the answers likeliest, with the noise that it leaves."""
    starts = [Start(x, _values(evidence.noise, _residuals(x, parts))) for x in candidates]
    return max(
        starts,
        key=lambda start: float(
            evidence.table(start.values).ravel()[evidence.cells(start.x)].sum()
        ),
    )


def _residuals(x: NDArray[np.int64], parts: Sequence[Transcript | None]) -> NDArray[np.float64]:
    """Answers less counts of bits x, for every released answer; 0 alone where there is none."""
    left = [np.zeros(0)]
    for part, bits in zip(parts, np.split(x, len(parts)), strict=True):
        if part is not None:
            left.append(part.b - part.A @ bits)
    residuals = np.concatenate(left)
    return residuals if residuals.size else np.zeros(1)


def _values(noise: Noise, residual: NDArray[np.float64]) -> Values:
    """Values for all that is unknown, from residuals at a start, of which a few may be gross."""
    offset = float(np.median(residual)) if noise.offset is UNKNOWN else noise.offset
    scale = max(1.4826 * float(np.median(np.abs(residual - offset))), 0.5)
    sigma = np.full(noise.group_count, scale)
    if noise.sigma is not UNKNOWN:
        sigma = np.broadcast_to(np.asarray(noise.sigma, np.float64), sigma.shape).copy()
    return Values(sigma, offset, 0.02 if noise.wrong is UNKNOWN else noise.wrong)
