"""Samples from the posterior of all secrets and of what is open about the noise.

Parallel tempering (Swendsen and Wang 1986; Geyer 1991): replicas at rising temperatures, the
likelihood raised to beta <= 1, exchange their states, so that the coldest, at beta = 1, is carried
over the barriers at which a single chain freezes. The spacing of the ladder adapts during the
first rounds until neighbours exchange equally often (Miasojedow, Moulines and Vihola 2013).
Independent ladders are run and their difference reported: one chain is never trusted alone. Those
that ended where the answers are hopelessly less likely have found nothing and are left out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import UNKNOWN, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.gram import Gram, GramReplica
from countleak.attack.posterior.replicas import Replica, TableReplica
from countleak.attack.posterior.secret_draws import Bits, Kind
from countleak.attack.solvers.machine import one_thread
from countleak.errors import InputError

# Neighbours should exchange about this often.
EXCHANGE_RATE = 0.35
# A ladder this many nats below the best, entropy included, has lost its way.
LOST = 25.0
MANY = 400
# Noise with a larger SD, rounded to whole people, is Gaussian for all purposes.
WIDE = 1.0


@dataclass(frozen=True)
class Effort:
    """How long to sample: independent ``ladders`` of ``replicas``, and rounds of each kind."""

    ladders: int = 2
    replicas: int = 6
    settle: int = 120
    keep: int = 160

    def __post_init__(self) -> None:
        if min(self.ladders, self.replicas, self.settle, self.keep) < 1:
            raise InputError(f"{self}: every part of the effort must be at least 1")


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the samples say: ``probability`` (n,) of a one, and the mean ``values`` of the noise.

    ``disagreement`` is the mean distance between the ladders' probabilities and their average;
    ``residuals`` (lines, width) how often each cell of the table was met, averaged over samples;
    ``rates`` the mean share of ones, or of each value; ``offset_sd`` the offset's deviation;
    ``evidence`` the mean log-likelihood plus the entropy of the bits.
    """

    probability: NDArray[np.float64]
    values: Values
    rates: NDArray[np.float64]
    disagreement: float
    residuals: NDArray[np.float64]
    offset_sd: float
    evidence: float


@dataclass(frozen=True, eq=False)
class Start:
    """Where the ladders start: bits (n,), and values of what is open."""

    x: NDArray[np.int64]
    values: Values


def sample(
    evidence: Evidence,
    start: Start,
    rng: np.random.Generator,
    *,
    kind: Kind | None = None,
    known: NDArray[np.bool_] | None = None,
    effort: Effort | None = None,
    histogram: bool = False,
) -> Posterior:
    """Probabilities of all bits; those ``known`` (n,) stay as they are in ``start``.

    ``kind`` says how the bits hang together: not at all, unless given. With ``histogram`` the
    residuals met are counted.
    """
    effort, kind = effort or Effort(), kind or Bits()
    held = np.zeros(evidence.n, np.bool_) if known is None else known
    # Where all that speaks is Gaussian and the noise wide, answers need not be looked at again.
    plain = evidence.is_gaussian and float(start.values.sigma.min()) > WIDE
    # An open offset would tie the blocks of values together.
    apart = kind.blocks == 1 or evidence.noise.offset is not UNKNOWN
    gram = Gram.of(evidence, kind.blocks) if plain and apart and not histogram else None
    # The matrices are small: threads would wait for each other more than they would work.
    with one_thread():
        runs = [
            _ladder(evidence, start, rng, kind, held, effort, gram, first=k == 0)
            for k in range(effort.ladders)
        ]
    best = max(run.evidence for run in runs)
    runs = [run for run in runs if run.evidence > best - LOST]
    probability = np.mean([run.probability for run in runs], axis=0)
    return Posterior(
        probability,
        Values(
            np.mean([run.values.sigma for run in runs], axis=0),
            float(np.mean([run.values.offset for run in runs])),
            float(np.mean([run.values.wrong for run in runs])),
        ),
        np.mean([run.rates for run in runs], axis=0),
        float(np.mean([np.abs(run.probability - probability) for run in runs])),
        np.mean([run.residuals for run in runs], axis=0),
        float(np.mean([run.offset_sd for run in runs])),
        best,
    )


def _ladder(
    evidence: Evidence,
    start: Start,
    rng: np.random.Generator,
    kind: Kind,
    known: NDArray[np.bool_],
    effort: Effort,
    gram: Gram | None,
    first: bool,
) -> Posterior:
    """One ladder; all replicas but the coldest of the first start from random bits.

    Among many people random bits would not find their way in time: all start at ``start`` then.
    """
    n, K = evidence.n, effort.replicas
    replicas: list[Replica] = []
    for k in range(K):
        x = start.x.copy()
        if kind.people(n) <= MANY and not (first and k == 0):
            x = kind.scatter(x, known, rng)
        if gram is None:
            replicas.append(TableReplica(evidence, x, start.values, kind, known))
        else:
            replicas.append(GramReplica(gram, x, start.values, kind, known))
    gaps = np.full(K - 1, 0.2)
    total, unused = np.zeros(n), np.zeros(n)
    met = np.zeros((evidence.lines, evidence.width))
    draws: list[Values] = []
    shares: list[NDArray[np.float64]] = []
    likelihoods: list[float] = []
    for k in range(effort.settle + effort.keep):
        keeping = k >= effort.settle
        betas = np.exp(-np.concatenate([[0.0], np.cumsum(gaps)]))
        for at, (replica, beta) in enumerate(zip(replicas, betas, strict=True)):
            replica.advance(float(beta), rng, total if keeping and at == 0 else unused)
        for c in range(k % 2, K - 1, 2):
            colder, hotter = replicas[c], replicas[c + 1]
            gain = (betas[c] - betas[c + 1]) * (hotter.likelihood - colder.likelihood)
            exchanged = bool(np.log(rng.random()) < gain)
            if exchanged:
                replicas[c], replicas[c + 1] = hotter, colder
            if not keeping:
                pace = 6.0 / (k + 12) ** 0.7
                gaps[c] = np.clip(gaps[c] * np.exp(pace * (exchanged - EXCHANGE_RATE)), 0.02, 0.5)
        if keeping:
            draws.append(replicas[0].values)
            shares.append(replicas[0].rates)
            replicas[0].count_into(met)
            likelihoods.append(replicas[0].likelihood)
    sigmas = np.array([v.sigma for v in draws])
    offsets = np.array([v.offset for v in draws])
    p = total / effort.keep
    return Posterior(
        p,
        Values(
            sigmas.mean(axis=0), float(offsets.mean()), float(np.mean([v.wrong for v in draws]))
        ),
        np.mean(shares, axis=0),
        0.0,
        met / effort.keep,
        float(offsets.std()),
        float(np.mean(likelihoods)) + kind.entropy(p),
    )
