"""One state of the sampler: bits, the noise's values, shares of values; and how it moves on."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from countleak.attack.noise import UNKNOWN, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.secret_draws import Kind, State

# The noise changes slowly: it is drawn every so many rounds.
NOISE_EVERY = 3
# How large an offset is beforehand expected to be, next to the noise.
OFFSET = 0.25
# No noise is smaller: whole counts are then read off the answers.
LEAST_SIGMA = 0.05


class Replica(Protocol):
    """A state that moves at a temperature and knows how well it fits."""

    values: Values
    rates: NDArray[np.float64]
    likelihood: float

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round: every secret, exchanges, the noise, the shares.

        Adds to ``total`` (n,) each bit's probability of being 1 given all others.
        """
        ...

    def count_into(self, histogram: NDArray[np.float64]) -> None:
        """Add to ``histogram`` (lines, width) the cells that the evidence is at, if it has any."""
        ...


def offset_prior(values: Values, proposal: float) -> float:
    """Log prior odds of another offset."""
    return 0.5 * offset_precision(values) * (values.offset**2 - proposal**2)


def offset_precision(values: Values) -> float:
    """The prior precision of an offset: it is small next to the noise, a fraction OFFSET of it."""
    return 1 / (OFFSET * float(values.sigma.mean())) ** 2


class TableReplica:
    """A state under any noise: its answers' cells in the table of log-likelihoods."""

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
        self.likelihood = 0.0
        self.rounds = 0
        self.rates = kind.first_rates()
        self.take(values, evidence.table(values))
        self.met = self._meet()

    def count_into(self, histogram: NDArray[np.float64]) -> None:
        """Add the cells that the answers are at."""
        histogram += self.met

    def take(self, values: Values, table: NDArray[np.float64]) -> None:
        """Adopt values of the noise, whose table is given."""
        self.values, self.table = values, table
        steps = np.diff(table, axis=1)
        edge = np.zeros((table.shape[0], 1))
        self.up = np.ascontiguousarray(np.hstack([steps, edge])).ravel()
        self.down = np.ascontiguousarray(np.hstack([edge, -steps])).ravel()

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round, as ``Replica`` says."""
        self.kind.sweep(self.state, (self.up, self.down), self.rates, beta, rng, total)
        self.met = self._meet()
        self.rounds += 1
        if self.rounds % NOISE_EVERY == 0:
            self._draw_noise(beta, rng)
        self.likelihood = float(np.einsum("ij,ij->", self.met, self.table))
        self.rates = self.kind.draw_rates(self.state.x, self.state.free, rng)

    def _meet(self) -> NDArray[np.float64]:
        """How many pieces of evidence are at each cell of the table."""
        met = np.bincount(self.state.cell, minlength=self.table.size)
        return met.reshape(self.table.shape).astype(np.float64)

    def _draw_noise(self, beta: float, rng: np.random.Generator) -> None:
        """Metropolis steps on what is open; sigmas are judged each by its own answers."""
        e, now = self.evidence, self.values
        groups = now.sigma.size
        per_line = self.met.sum(axis=1)[: groups * e.fractions].reshape(groups, -1).sum(axis=1)
        if e.noise.sigma is UNKNOWN:
            step = 1.7 / np.sqrt(2 * beta * np.maximum(per_line, 4))
            sigma = np.maximum(now.sigma * np.exp(step * rng.normal(size=groups)), LEAST_SIGMA)
            table = e.table(Values(sigma, now.offset, now.wrong))
            gain = self._by_group(table - self.table)
            taken = np.log(rng.random(groups)) < beta * gain
            if taken.any():
                kept = Values(np.where(taken, sigma, now.sigma), now.offset, now.wrong)
                self.take(kept, table if taken.all() else e.table(kept))
        if e.noise.offset is UNKNOWN:
            width = 2 * float(self.values.sigma.mean()) / np.sqrt(beta * max(per_line.sum(), 4))
            proposal = self.values.offset + width * rng.normal()
            values = Values(self.values.sigma, proposal, self.values.wrong)
            self._consider(values, beta, rng, offset_prior(self.values, proposal))
        if e.noise.wrong is UNKNOWN:
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
