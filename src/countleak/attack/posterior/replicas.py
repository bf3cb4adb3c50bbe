"""One state of the sampler: bits, the noise's values, shares of values; and how it moves on."""

from dataclasses import replace
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

    @property
    def bits(self) -> NDArray[np.int64]:
        """The bits (n,) now."""
        ...

    @property
    def counted(self) -> NDArray[np.float64]:
        """What each bit (n,) adds to a count now."""
        ...

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round: every secret, exchanges, the noise, the shares.

        Adds to ``total`` (n,) each bit's probability of being 1 given all others.
        """
        ...

    def count_into(self, histogram: NDArray[np.float64]) -> None:
        """Add to ``histogram`` (lines, width) the cells that the evidence is at, if it has any."""
        ...


def log_prior(values: Values) -> float:
    """The log prior of the offsets, next to that of none."""
    return -0.5 * offset_precision(values) * float((values.offsets**2).sum())


def offset_precision(values: Values) -> float:
    """The prior precision of offsets: they are small next to the noise, a fraction OFFSET of it."""
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

    @property
    def bits(self) -> NDArray[np.int64]:
        return self.state.x

    @property
    def counted(self) -> NDArray[np.float64]:
        return self.state.x.astype(np.float64)

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
        """Metropolis steps on what is open.

        A sigma is judged by the answers of its group, an offset by those about its value.
        """
        e, now = self.evidence, self.values
        released = self._by_source(self.met, clamped=False)
        if e.noise.sigma is UNKNOWN:
            many = np.bincount(e.group_of, released, now.sigma.size)
            step = 1.7 / np.sqrt(2 * beta * np.maximum(many, 4))
            sigma = np.maximum(now.sigma * np.exp(step * rng.normal(size=many.size)), LEAST_SIGMA)
            table = e.table(replace(now, sigma=sigma))
            gain = np.bincount(e.group_of, self._gains(table), many.size)
            taken = np.log(rng.random(many.size)) < beta * gain
            kept = replace(now, sigma=np.where(taken, sigma, now.sigma))
            self._take_some(kept, taken, table)
        if e.noise.offset is UNKNOWN:
            now = self.values
            many = np.bincount(e.part_of, released, now.offsets.size)
            width = 2 * float(now.sigma.mean()) / np.sqrt(beta * np.maximum(many, 4))
            offsets = now.offsets + width * rng.normal(size=many.size)
            table = e.table(replace(now, offsets=offsets))
            gain = np.bincount(e.part_of, self._gains(table), many.size)
            prior = 0.5 * offset_precision(now) * (now.offsets**2 - offsets**2)
            taken = np.log(rng.random(many.size)) < beta * gain + prior
            kept = replace(now, offsets=np.where(taken, offsets, now.offsets))
            self._take_some(kept, taken, table)
        if e.noise.wrong is UNKNOWN:
            odds = logit(self.values.wrong) + 0.5 * rng.normal()
            values = replace(self.values, wrong=float(np.clip(expit(odds), 1e-5, 0.5)))
            table = e.table(values)
            if np.log(rng.random()) < beta * float(self._gains(table).sum()):
                self.take(values, table)

    def _take_some(
        self, values: Values, taken: NDArray[np.bool_], table: NDArray[np.float64]
    ) -> None:
        """Adopt values, of which those ``taken`` are new; the table is that of all being so."""
        if taken.any():
            self.take(values, table if taken.all() else self.evidence.table(values))

    def _gains(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Change of log-likelihood (s,) by source, if the table were this one."""
        return self._by_source(self.met * (table - self.table), clamped=True)

    def _by_source(self, cells: NDArray[np.float64], clamped: bool) -> NDArray[np.float64]:
        """Sums over the cells of each source (s,): of its fractions and, if asked, its limits."""
        e, sources = self.evidence, self.evidence.group_of.size
        by_line = cells.sum(axis=1)
        total = by_line[: sources * e.fractions].reshape(sources, -1).sum(axis=1)
        if clamped:
            limits = by_line[sources * e.fractions : e.source_lines].reshape(-1, sources)
            total = total + limits.sum(axis=0)
        return np.asarray(total)
