"""Kinds of secrets: a bit of one's own, or one value of several; and how the sampler draws each.

The kernels are imported where they are called: they load Numba, which only sampling should have to
wait for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logit

from countleak.attack.posterior.evidence import Evidence

if TYPE_CHECKING:
    from countleak.attack.posterior.kernels import Squares

# No value is so rare or so common that answers could not say otherwise.
LEAST_RATE = 1e-6


@dataclass(frozen=True, eq=False)
class State:
    """Bits ``x``, which of them are ``free``, and the ``cell`` of each piece of evidence.

    Drawing changes ``x`` and ``cell`` in place.
    """

    evidence: Evidence
    x: NDArray[np.int64]
    free: NDArray[np.bool_]
    cell: NDArray[np.int32]


class Kind(Protocol):
    """How secrets of one kind are scattered, drawn and counted."""

    @property
    def blocks(self) -> int:
        """How many bits a person has, one in each block of bits."""
        ...

    def people(self, bits: int) -> int:
        """How many people so many bits are about."""
        ...

    def first_rates(self) -> NDArray[np.float64]:
        """Shares of the values before anything is learned."""
        ...

    def bits_of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bits of people with these values."""
        ...

    def rounded(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bits nearest to shares in [0, 1]."""
        ...

    def scatter(
        self, x: NDArray[np.int64], known: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Bits like x drawn at random, those ``known`` left as they are."""
        ...

    def sweep(
        self,
        state: State,
        moves: tuple[NDArray[np.float64], NDArray[np.float64]],
        rates: NDArray[np.float64],
        beta: float,
        rng: np.random.Generator,
        total: NDArray[np.float64],
    ) -> None:
        """Draw every secret once; adds to ``total`` the probability of each bit.

        ``moves`` are the changes of log-likelihood of one person less and one more in a count.
        """
        ...

    def gram_sweep(
        self,
        squares: "Squares",
        rates: NDArray[np.float64],
        rng: np.random.Generator,
        exchanges: int,
        total: NDArray[np.float64],
    ) -> None:
        """The same under Gaussian noise."""
        ...

    def draw_rates(
        self, x: NDArray[np.int64], free: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Shares of the values among the free, drawn under a flat prior unless they are given."""
        ...

    def entropy(self, probability: NDArray[np.float64]) -> float:
        """What is left open by probabilities of all bits, in nats."""
        ...


@dataclass(frozen=True)
class Bits:
    """Independent bits; ``prior`` is the share of ones, estimated unless given.

    ``seen`` are the numbers of zeros and ones among people who are not drawn but tell of the share.
    """

    prior: float | None = None
    seen: tuple[int, int] = (0, 0)

    @property
    def blocks(self) -> int:
        return 1

    def people(self, bits: int) -> int:
        return bits

    def first_rates(self) -> NDArray[np.float64]:
        return np.array([0.5 if self.prior is None else self.prior])

    def bits_of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return values

    def rounded(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        return (shares >= 0.5).astype(np.int64)

    def scatter(
        self, x: NDArray[np.int64], known: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        drawn = rng.random(x.size) < self.first_rates()[0]
        return np.where(known, x, drawn).astype(np.int64)

    def sweep(
        self,
        state: State,
        moves: tuple[NDArray[np.float64], NDArray[np.float64]],
        rates: NDArray[np.float64],
        beta: float,
        rng: np.random.Generator,
        total: NDArray[np.float64],
    ) -> None:
        from countleak.attack.posterior import kernels

        e = state.evidence
        chain = kernels.Chain(state.x, state.free, state.cell, e.start, e.middle, e.rows, *moves)
        kernels.sweep(chain, float(logit(rates[0])), beta, rng, e.n // 2, total)

    def gram_sweep(
        self,
        squares: "Squares",
        rates: NDArray[np.float64],
        rng: np.random.Generator,
        exchanges: int,
        total: NDArray[np.float64],
    ) -> None:
        from countleak.attack.posterior import kernels

        kernels.gram_sweep(squares, float(logit(rates[0])), rng, exchanges, total)

    def draw_rates(
        self, x: NDArray[np.int64], free: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.prior is not None:
            return np.array([self.prior])
        ones = int(x[free].sum())
        share = rng.beta(1 + ones + self.seen[1], 1 + free.sum() - ones + self.seen[0])
        return np.array([np.clip(share, LEAST_RATE, 1 - LEAST_RATE)])

    def entropy(self, probability: NDArray[np.float64]) -> float:
        return float((entr(probability) + entr(1 - probability)).sum())


@dataclass(frozen=True)
class OneOf:
    """One of ``count`` values a person: bit ``v * n + j`` says that person j has value v.

    ``rates`` are how common the values are, estimated unless given.
    """

    count: int
    rates: tuple[float, ...] | None = None

    @property
    def blocks(self) -> int:
        return self.count

    def people(self, bits: int) -> int:
        return bits // self.count

    def first_rates(self) -> NDArray[np.float64]:
        return np.array(self.rates or [1 / self.count] * self.count)

    def bits_of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        bits = values[None, :] == np.arange(self.count)[:, None]
        return np.asarray(bits.ravel().astype(np.int64))

    def rounded(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.bits_of(shares.reshape(self.count, -1).argmax(axis=0))

    def scatter(
        self, x: NDArray[np.int64], known: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        n = self.people(x.size)
        drawn = rng.choice(self.count, size=n, p=self.first_rates())
        return np.where(known, x, self.bits_of(drawn)).astype(np.int64)

    def sweep(
        self,
        state: State,
        moves: tuple[NDArray[np.float64], NDArray[np.float64]],
        rates: NDArray[np.float64],
        beta: float,
        rng: np.random.Generator,
        total: NDArray[np.float64],
    ) -> None:
        from countleak.attack.posterior import kernels

        e = state.evidence
        chain = kernels.Chain(state.x, state.free, state.cell, e.start, e.middle, e.rows, *moves)
        kernels.sweep_values(chain, np.log(rates), beta, rng, self.people(e.n), total)

    def gram_sweep(
        self,
        squares: "Squares",
        rates: NDArray[np.float64],
        rng: np.random.Generator,
        exchanges: int,
        total: NDArray[np.float64],
    ) -> None:
        from countleak.attack.posterior import kernels

        kernels.gram_sweep_values(squares, np.log(rates), rng, exchanges, total)

    def draw_rates(
        self, x: NDArray[np.int64], free: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.rates is not None:
            return np.array(self.rates)
        held = np.where(free, x, 0).reshape(self.count, -1).sum(axis=1)
        shares = np.maximum(rng.dirichlet(1.0 + held), LEAST_RATE)
        return np.asarray(shares / shares.sum())

    def entropy(self, probability: NDArray[np.float64]) -> float:
        return float(entr(probability).sum())
