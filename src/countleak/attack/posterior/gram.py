"""The sampler's state where all noise is Gaussian: answers enter through sums of squares alone.

A round then costs n steps and n for every bit that changes, however many answers there are.
Rounding to whole people adds 1/12 to the variance, which the estimate of sigma contains.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from countleak.attack.noise import UNKNOWN, Noise, Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.replicas import LEAST_SIGMA, NOISE_EVERY, offset_precision
from countleak.attack.posterior.secret_draws import Kind

# Proposals are cheap here, so more of them make a round.
EXCHANGES = 4


@dataclass(frozen=True, eq=False)
class Gram:
    """Sums over the answers of each group g: A'A (g, k, n, n), A'b, A'1 (g, kn), of b and b^2.

    The bits are in k blocks of n that no answer has in common; ``count`` (g,) is how many answers
    a group has.
    """

    noise: Noise
    n: int
    products: NDArray[np.float64]
    with_b: NDArray[np.float64]
    with_one: NDArray[np.float64]
    b: NDArray[np.float64]
    squares: NDArray[np.float64]
    count: NDArray[np.float64]

    @classmethod
    def of(cls, evidence: Evidence, blocks: int) -> Self:
        """The sums of evidence that is Gaussian throughout."""
        groups = evidence.noise.group_count
        group, part = np.divmod(evidence.line, evidence.fractions)
        b = evidence.said + part / evidence.fractions
        inside = [group == g for g in range(groups)]
        size = evidence.n // blocks
        products = np.empty((groups, blocks, size, size))
        with_b, with_one = np.empty((2, groups, blocks, size))
        for v in range(blocks):
            A = evidence.block(v, size)
            for g, at in enumerate(inside):
                products[g, v] = A[at].T @ A[at]
                with_b[g, v], with_one[g, v] = b[at] @ A[at], A[at].sum(axis=0)
        return cls(
            evidence.noise,
            evidence.n,
            products,
            with_b.reshape(groups, -1),
            with_one.reshape(groups, -1),
            np.array([b[at].sum() for at in inside]),
            np.array([(b[at] ** 2).sum() for at in inside]),
            np.array([float(at.sum()) for at in inside]),
        )

    def misfit(self, x: NDArray[np.float64], offset: float) -> NDArray[np.float64]:
        """Squared residuals (g,) by group, at bits x (n,)."""
        counted = self.with_one @ x
        return np.asarray(
            self.squares
            - 2 * self.with_b @ x
            + (_blockwise(self.products, x) @ x)
            - 2 * offset * (self.b - counted)
            + offset**2 * self.count
        )


def _blockwise(products: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products (..., k, n, n) times bits x (kn,), block by block: (..., kn)."""
    k, n = products.shape[-3], products.shape[-1]
    return (products @ x.reshape(k, n, 1)).reshape(*products.shape[:-3], k * n)


class GramReplica:
    """A state under Gaussian noise."""

    def __init__(
        self,
        gram: Gram,
        x: NDArray[np.int64],
        values: Values,
        kind: Kind,
        known: NDArray[np.bool_],
    ):
        """Start at bits x (n,) and values of the noise."""
        self.gram, self.x, self.free, self.values = gram, x, ~known, values
        self.kind, self.rates = kind, kind.first_rates()
        self.rounds, self.beta, self.likelihood = 0, 0.0, 0.0
        self.has_offset = self.turned = False

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round, as ``Replica`` says."""
        if beta != self.beta or self.rounds % NOISE_EVERY == 0 or self.turned:
            self._weigh(beta)
        exchanges = EXCHANGES * self.kind.people(self.gram.n)
        self.kind.gram_sweep(self.x, self.free, self.c, self.G, self.rates, rng, exchanges, total)
        bits = self.x.astype(np.float64)
        if self.gram.noise.offset is UNKNOWN:
            self._draw_offset(bits, beta, rng)
        misfit = self.gram.misfit(bits, self.values.offset)
        self.rounds += 1
        if self.rounds % NOISE_EVERY == 0 and self.gram.noise.sigma is UNKNOWN:
            self._draw_sigma(misfit, beta, rng)
        variance = self.values.sigma**2
        self.likelihood = float(
            -0.5 * (self.gram.count * np.log(2 * np.pi * variance) + misfit / variance).sum()
        )
        self.rates = self.kind.draw_rates(self.x, self.free, rng)

    def count_into(self, histogram: NDArray[np.float64]) -> None:
        """Nothing: the answers one by one are not looked at."""

    def _weigh(self, beta: float) -> None:
        """The weighted sums that the kernel works on, for these values of the noise.

        An offset that is there, of one block, is integrated out: bits drawn given one would hold
        it where it is.
        """
        weight = beta / self.values.sigma**2
        gram, self.beta = self.gram, beta
        self.G = np.tensordot(weight, gram.products, 1)
        towards, ones = weight @ gram.with_b, weight @ gram.with_one
        if self.has_offset:
            precision = self._offset_precision(weight)
            self.G[0] -= np.outer(ones, ones) / precision
            towards = towards - ones * float(weight @ gram.b) / precision
        else:
            towards = towards - ones * self.values.offset
        self.c = towards - _blockwise(self.G, self.x.astype(np.float64))

    def _offset_precision(self, weight: NDArray[np.float64]) -> float:
        """The precision of the offset: that of its answers and that of its prior."""
        return float(weight @ self.gram.count) + offset_precision(self.values)

    def _draw_offset(
        self, bits: NDArray[np.float64], beta: float, rng: np.random.Generator
    ) -> None:
        """None at all, as likely beforehand as some; if some, Gaussian around the mean residual.

        Without one, answers pin the number of ones to a whole number, which decides the last bits.
        """
        gram, weight = self.gram, beta / self.values.sigma**2
        precision = self._offset_precision(weight)
        mean = float(weight @ (gram.b - gram.with_one @ bits)) / precision
        odds = 0.5 * precision * mean**2 - 0.5 * np.log(precision / offset_precision(self.values))
        there = bool(np.log(rng.random()) < -np.logaddexp(0.0, -odds))
        self.turned, self.has_offset = there != self.has_offset, there
        offset = mean + float(rng.normal()) / np.sqrt(precision) if there else 0.0
        self.values = Values(self.values.sigma, offset, 0.0)

    def _draw_sigma(
        self, misfit: NDArray[np.float64], beta: float, rng: np.random.Generator
    ) -> None:
        """Inverse gamma, under a prior flat in log sigma."""
        count = self.gram.count
        shape, scale = beta * count / 2, beta * misfit / 2
        drawn = np.sqrt(np.maximum(scale, 1e-9) / rng.gamma(np.maximum(shape, 0.5)))
        sigma = np.maximum(np.where(count > 0, drawn, self.values.sigma), LEAST_SIGMA)
        self.values = Values(sigma, self.values.offset, 0.0)
