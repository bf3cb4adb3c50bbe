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
from scipy.special import expit, logit

from countleak.errors import InputError
from countleak.inference.evidence import Evidence
from countleak.inference.kinds import Bits, Kind, State
from countleak.noise import Values

# Neighbours should exchange about this often.
EXCHANGE_RATE = 0.35
# A ladder this many nats below the best, entropy included, has lost its way.
LOST = 25.0
MANY = 400
# The noise changes slowly: it is drawn every so many rounds.
NOISE_EVERY = 3
# No noise is smaller: whole counts are then read off the answers.
LEAST_SIGMA = 0.05


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
    ``rates`` the mean share of ones, or of each value; ``sigma_sd`` and ``offset_sd`` posterior
    deviations; ``evidence`` the mean log-likelihood plus the entropy of the bits.
    """

    probability: NDArray[np.float64]
    values: Values
    rates: NDArray[np.float64]
    disagreement: float
    residuals: NDArray[np.float64]
    sigma_sd: NDArray[np.float64]
    offset_sd: float
    evidence: float


@dataclass(frozen=True, eq=False)
class Start:
    """Where the ladders start: bits (n,), and values of what is open."""

    x: NDArray[np.int64]
    values: Values


class _Replica:
    """One state: bits, their cells, the noise's values and the shares of the values."""

    def __init__(
        self,
        evidence: Evidence,
        x: NDArray[np.int64],
        values: Values,
        kind: Kind,
        known: NDArray[np.bool_],
    ):
        self.evidence, self.kind = evidence, kind
        self.state = State(evidence, x, ~known, evidence.cells(x))
        self.rounds = 0
        self.rates = kind.first_rates()
        self.take(values, evidence.table(values))

    def take(self, values: Values, table: NDArray[np.float64]) -> None:
        """Adopt values of the noise, whose table is given."""
        self.values, self.table = values, table
        steps = np.diff(table, axis=1)
        edge = np.zeros((table.shape[0], 1))
        self.up = np.ascontiguousarray(np.hstack([steps, edge])).ravel()
        self.down = np.ascontiguousarray(np.hstack([edge, -steps])).ravel()

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round: every secret, exchanges, the noise, the shares."""
        self.kind.sweep(self.state, (self.up, self.down), self.rates, beta, rng, total)
        self.met = np.bincount(self.state.cell, minlength=self.table.size).reshape(self.table.shape)
        self.rounds += 1
        if self.rounds % NOISE_EVERY == 0:
            self._draw_noise(beta, rng)
        self.likelihood = float(np.einsum("ij,ij->", self.met, self.table))
        self.rates = self.kind.draw_rates(self.state, rng)

    def _draw_noise(self, beta: float, rng: np.random.Generator) -> None:
        """Metropolis steps on what is open; sigmas are judged each by its own answers."""
        e, now = self.evidence, self.values
        groups = now.sigma.size
        per_line = self.met.sum(axis=1)[: groups * e.fractions].reshape(groups, -1).sum(axis=1)
        if e.noise.sigma is None:
            step = 1.7 / np.sqrt(2 * beta * np.maximum(per_line, 4))
            sigma = np.maximum(now.sigma * np.exp(step * rng.normal(size=groups)), LEAST_SIGMA)
            table = e.table(Values(sigma, now.offset, now.wrong))
            gain = self._by_group(table - self.table)
            taken = np.log(rng.random(groups)) < beta * gain
            if taken.any():
                kept = Values(np.where(taken, sigma, now.sigma), now.offset, now.wrong)
                self.take(kept, table if taken.all() else e.table(kept))
        if e.noise.offset is None:
            width = 2 * float(self.values.sigma.mean()) / np.sqrt(beta * max(per_line.sum(), 4))
            proposal = self.values.offset + width * rng.normal()
            # Whatever is constant is one of several layers of noise, so half of it in size.
            half = 0.5 * float(self.values.sigma.mean())
            prior = 0.5 * (self.values.offset**2 - proposal**2) / half**2
            values = Values(self.values.sigma, proposal, self.values.wrong)
            self._consider(values, beta, rng, prior)
        if e.noise.wrong is None:
            odds = logit(self.values.wrong) + 0.5 * rng.normal()
            wrong = float(np.clip(expit(odds), 1e-5, 0.5))
            self._consider(Values(self.values.sigma, self.values.offset, wrong), beta, rng)

    def _by_group(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """Change of log-likelihood (g,) by group, whose lines are its fractions and its floor."""
        e = self.evidence
        groups = self.values.sigma.size
        by_line = np.einsum("ij,ij->i", self.met, change)
        released = by_line[: groups * e.fractions].reshape(groups, -1).sum(axis=1)
        if e.noise.floor is None:
            return np.asarray(released)
        clamped = by_line[groups * e.fractions :][:groups]
        return np.asarray(released + clamped)

    def _consider(
        self, values: Values, beta: float, rng: np.random.Generator, prior: float = 0.0
    ) -> None:
        table = self.evidence.table(values)
        gain = float(np.einsum("ij,ij->", self.met, table - self.table))
        if np.log(rng.random()) < beta * gain + prior:
            self.take(values, table)


def sample(
    evidence: Evidence,
    start: Start,
    rng: np.random.Generator,
    *,
    kind: Kind | None = None,
    known: NDArray[np.bool_] | None = None,
    effort: Effort | None = None,
) -> Posterior:
    """Probabilities of all bits; those ``known`` (n,) stay as they are in ``start``.

    ``kind`` says how the bits hang together: not at all, unless given.
    """
    effort = effort or Effort()
    held = np.zeros(evidence.n, np.bool_) if known is None else known
    runs = [
        _ladder(evidence, start, rng, kind or Bits(), held, effort, first=k == 0)
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
        np.mean([run.sigma_sd for run in runs], axis=0),
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
    first: bool,
) -> Posterior:
    """One ladder; all replicas but the coldest of the first start from random bits.

    Among many people random bits would not find their way in time: all start at ``start`` then.
    """
    n, K = evidence.n, effort.replicas
    replicas = []
    for k in range(K):
        x = start.x.copy()
        if kind.people(n) <= MANY and not (first and k == 0):
            x = kind.scatter(x, known, rng)
        replicas.append(_Replica(evidence, x, start.values, kind, known))
    gaps = np.full(K - 1, 0.2)
    total, unused = np.zeros(n), np.zeros(n)
    met = np.zeros(replicas[0].table.shape)
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
            met += replicas[0].met
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
        sigmas.std(axis=0),
        float(offsets.std()),
        float(np.mean(likelihoods)) + kind.entropy(p),
    )
