"""A fit: the posterior, sampled from the best of several quick starts.

Least squares over the box, message passing, which reaches further where there are fewer answers
than people, and absolute residuals where some answers may be grossly wrong.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countleak.attack.covariance import whiten
from countleak.attack.noise import UNKNOWN, Noise, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.messages import Messages, pass_messages
from countleak.attack.posterior.replicas import log_prior
from countleak.attack.posterior.sampling import MANY, Effort, Places, Posterior, Start, sample
from countleak.attack.posterior.secret_draws import Bits, Kind, OneOf
from countleak.attack.programs import Problem
from countleak.attack.solvers.auto import AutoSolver
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Transcript
from countleak.progress import Progress, silent

# Residuals of Gaussian noise are rarely further out than this many scales, and have kurtosis 3.
TAIL, HEAVY = 6.0, 3.5
# What quick decoders find of all bits, each (n,) in [0, 1]: where the sampler may start.
Starts = tuple[NDArray[np.float64] | Messages, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known beforehand: ``value`` (n,) of those marked in ``people`` (n,).

    Those marked in ``alike`` (n,) as well are like all others and tell of the rate of ones.
    """

    people: NDArray[np.bool_]
    value: NDArray[np.int64]
    alike: NDArray[np.bool_] | None = None

    @classmethod
    def nobody(cls, n: int) -> "Known":
        """Nothing is known of n people."""
        return cls(np.zeros(n, np.bool_), np.zeros(n, np.int64))

    @property
    def seen(self) -> tuple[int, int]:
        """How many zeros and ones tell of the rate."""
        if self.alike is None:
            return 0, 0
        ones = int(self.value[self.alike].sum())
        return int(self.alike.sum()) - ones, ones


def fit_secrets(
    transcript: Transcript,
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    kind: Kind | None = None,
    known: Known | None = None,
    effort: Effort | None = None,
    starts: Starts = (),
    histogram: bool = False,
    progress: Progress = silent,
) -> Posterior:
    """The posterior of all bits; ``kind`` says what is known of them beforehand.

    Unless given, it is nothing but that everyone has one of the values, where there are several.
    ``starts`` saves the search for them where it was done before on the same people.
    """
    kind = kind or kind_of(transcript)
    n = kind.people(evidence.n)
    known = known or Known.nobody(n)
    held, value = np.tile(known.people, kind.blocks), kind.bits_of(known.value)
    starts = starts or quick_starts(transcript, evidence.noise) or (np.zeros(evidence.n),)
    candidates = [np.where(held, value, kind.rounded(_solution(x))) for x in starts]
    start, *others = _by_likelihood(evidence, candidates, transcript)
    messages = next((x for x in starts if isinstance(x, Messages)), None)
    return sample(
        evidence,
        start,
        rng,
        kind=kind,
        known=held,
        effort=effort or sensible_effort(int(np.bincount(transcript.about).max()), n),
        histogram=histogram,
        places=Places(others, _messages_about(messages, evidence, known)),
        progress=progress,
    )


def kind_of(transcript: Transcript) -> Kind:
    """What kind of secret the answers are about."""
    return OneOf(len(transcript.names)) if transcript.names else Bits()


def sensible_effort(m: int, n: int) -> Effort:
    """Many replicas where the posterior has barriers, few where answers abound or n is large."""
    if n > MANY:
        return Effort(6, 1, 60, 60, seconds=45.0)
    if m < 1.5 * n:
        return Effort(4, 8, 150, 200, seconds=10.0)
    return Effort(2, 6 if m < 4 * n else 3, 80, 120, seconds=10.0)


def quick_starts(transcript: Transcript, noise: Noise) -> Starts:
    """What quick decoders find; nothing where no answer was released.

    Absolute residuals are tried as well where some answers may be grossly wrong and the residuals
    of least squares look like it. Of several values each is decoded by itself.
    """
    if transcript.names:
        return _value_starts(transcript, noise)
    if not transcript.released.any():
        return ()
    A, b = transcript.A, transcript.b
    centred = b - (0.0 if noise.offset is UNKNOWN else noise.offset)
    if noise.shared:
        # Least squares that took the noise for independent would be off by what is shared of it,
        # and fit better than what is right.
        whitened = whiten(transcript.where(transcript.released).queries, A, centred, noise.shared)
        return (box_least_squares(NormalEquations.of(*whitened)).x,)
    equations = NormalEquations.of(A, centred)
    box = box_least_squares(equations).x
    starts: list[NDArray[np.float64] | Messages] = [box, pass_messages(equations)]
    if noise.wrong != 0.0 and has_heavy_tails(centred - A @ box):
        solution = AutoSolver().solve(Problem(A, b)).x
        starts += [] if solution is None else [solution]
    return tuple(starts)


def has_heavy_tails(residual: NDArray[np.float64]) -> bool:
    """Whether residuals are further out than noise of one size would leave them."""
    away = np.abs(residual - np.median(residual))
    scale = max(1.4826 * float(np.median(away)), 1e-9)
    kurtosis = float((away**4).mean()) / max(float((away**2).mean()) ** 2, 1e-30)
    return bool(away.max() > TAIL * scale or kurtosis > HEAVY)


def _value_starts(transcript: Transcript, noise: Noise) -> Starts:
    """Shares (kn,) in each value that quick decoders find, one value after the other.

    What is left of everyone's share is that of the values that were not answered.
    """
    n, parts = transcript.ids.size, transcript.by_value().values()
    starts = [() if part is None else quick_starts(part, noise) for part in parts]
    answered = np.array([bool(x) for x in starts])
    found = []
    for at in range(max(map(len, starts))):
        shares = np.zeros((len(starts), n))
        for v in np.flatnonzero(answered):
            shares[v] = _solution(starts[v][min(at, len(starts[v]) - 1)])
        rest = np.clip(1 - shares.sum(axis=0), 0.0, 1.0)
        shares[~answered] = rest / max(int((~answered).sum()), 1)
        found.append(shares.ravel())
    return tuple(found)


def start_bits(start: NDArray[np.float64] | Messages) -> NDArray[np.bool_]:
    """The nearest bits (n,) to what a quick decoder found."""
    return _solution(start) >= 0.5


def _solution(start: NDArray[np.float64] | Messages) -> NDArray[np.float64]:
    """What a quick decoder found, (n,) in [0, 1]."""
    return start.probability if isinstance(start, Messages) else start


def _messages_about(messages: Messages | None, evidence: Evidence, known: Known) -> Messages | None:
    """Messages that speak of the same noise as the evidence, with the known bits put in."""
    alike = evidence.is_gaussian and evidence.noise.group_count == 1
    if messages is None or not alike:
        return None
    probability = np.where(known.people, known.value, messages.probability)
    return replace(messages, probability=probability)


def _by_likelihood(
    evidence: Evidence,
    candidates: list[NDArray[np.int64]],
    transcript: Transcript,
) -> list[Start]:
    """The candidates, likeliest first, each with the noise that it leaves."""
    starts = [Start(x, _values(evidence.noise, _residuals(x, transcript))) for x in candidates]
    return sorted(
        starts,
        key=lambda start: (
            float(evidence.table(start.values).ravel()[evidence.cells(start.x)].sum())
            + log_prior(start.values)
        ),
        reverse=True,
    )


def _residuals(x: NDArray[np.int64], transcript: Transcript) -> list[NDArray[np.float64]]:
    """Answers less counts of bits x, for every released answer about each value."""
    left = transcript.residuals(x.astype(np.float64))
    about = transcript.about[transcript.released]
    return [left[about == v] for v in range(transcript.blocks)]


def _values(noise: Noise, residuals: list[NDArray[np.float64]]) -> Values:
    """Values for all that is unknown, from residuals at a start, of which a few may be gross."""
    if noise.offset is UNKNOWN:
        offsets = np.array([float(np.median(part)) if part.size else 0.0 for part in residuals])
    else:
        offsets = np.full(len(residuals), noise.offset)
    left = np.concatenate([part - at for part, at in zip(residuals, offsets, strict=True)])
    scale = max(1.4826 * float(np.median(np.abs(left))) if left.size else 0.0, 0.5)
    sigma = np.full(noise.group_count, scale)
    if noise.sigma is not UNKNOWN:
        sigma = np.broadcast_to(np.asarray(noise.sigma, np.float64), sigma.shape).copy()
    wrong = 0.02 if noise.wrong is UNKNOWN else noise.wrong
    per_person = 0.0 if noise.per_person is UNKNOWN else noise.per_person
    return Values(sigma, offsets, wrong, per_person)
