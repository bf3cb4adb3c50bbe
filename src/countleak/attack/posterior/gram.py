"""The sampler's state where all noise is Gaussian: answers enter through sums of squares alone.

A round then costs n steps and n for every bit that changes, however many answers there are.
Rounding to whole people adds 1/12 to the variance, which the estimate of sigma contains. Answers
whose noise is correlated are whitened first. Errors u per person, N(0, tau^2), are integrated out
while bits are drawn: with W = A'D^-1 A, D the variances of the noise proper,

    A'C^-1 = (I + tau^2 W)^-1 A'D^-1,    r'C^-1 r = r'D^-1 r - tau^2 q'(I + tau^2 W)^-1 q

where C = D + tau^2 A A' and q = A'D^-1 r (Woodbury); the eigenvectors of W make it cheap.
What else ones add to a count is drawn with them (``errors``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, solve_triangular

from countleak.attack.noise import UNKNOWN, Noise, Values
from countleak.attack.posterior.errors import Score, draw_share, draw_spreads
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.posterior.replicas import LEAST_SIGMA, NOISE_EVERY, offset_precision
from countleak.attack.posterior.secret_draws import Kind

if TYPE_CHECKING:
    from countleak.attack.posterior.kernels import Squares

# Proposals are cheap here, so more of them make a round.
EXCHANGES = 4
# Errors of ones alone are looked for among up to so many people.
FEW = 400
# So often what people add is drawn in a row.
CYCLES = 6

Eigen = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Gram:
    """Sums over the answers of each group g.

    They are A'A (g, k, n, n), A'b and A'1 (g, kn), 1'b and 1'1 (g, k), and b'b (g,).

    The bits are in k blocks of n that no answer has in common; ``count`` (g,) is how many answers
    a group has. A, b and 1 are whitened where noise is correlated.
    """

    noise: Noise
    n: int
    products: NDArray[np.float64]
    with_b: NDArray[np.float64]
    with_one: NDArray[np.float64]
    b: NDArray[np.float64]
    ones: NDArray[np.float64]
    squares: NDArray[np.float64]
    count: NDArray[np.float64]

    @classmethod
    def of(cls, evidence: Evidence, blocks: int) -> Self:
        """The sums of evidence that is Gaussian throughout."""
        groups = evidence.noise.group_count
        source, fraction = np.divmod(evidence.line, evidence.fractions)
        group, block = evidence.group_of[source], evidence.part_of[source]
        # Groups differ in the size of their noise and are taken to have none in common.
        factors = [
            np.linalg.cholesky(np.where(at[:, None] == at, matrix, 0.0))
            for matrix, at in zip(
                evidence.correlations, _split(group, evidence.correlations), strict=True
            )
        ]
        b = _whitened((evidence.said + fraction / evidence.fractions)[:, None], factors)[:, 0]
        one = _whitened(np.ones((b.size, 1)), factors)[:, 0]
        inside = [group == g for g in range(groups)]
        size = evidence.n // blocks
        products = np.empty((groups, blocks, size, size))
        with_b, with_one = np.empty((2, groups, blocks, size))
        b_of, ones_of = np.zeros((2, groups, blocks))
        for v in range(blocks):
            A = _whitened(evidence.block(v, size), factors)
            for g, at in enumerate(inside):
                products[g, v] = A[at].T @ A[at]
                with_b[g, v], with_one[g, v] = b[at] @ A[at], one[at] @ A[at]
                own = one[at & (block == v)]
                b_of[g, v], ones_of[g, v] = own @ b[at & (block == v)], own @ own
        return cls(
            evidence.noise,
            evidence.n,
            products,
            with_b.reshape(groups, -1),
            with_one.reshape(groups, -1),
            b_of,
            ones_of,
            np.array([b[at] @ b[at] for at in inside]),
            np.array([float(at.sum()) for at in inside]),
        )

    def misfit(self, x: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared residuals (g,) by group, at bits x (kn,) and offsets (k,) of the blocks."""
        return np.asarray(
            self.squares
            - 2 * self.with_b @ x
            + (_blockwise(self.products, x) @ x)
            - 2 * (self.b @ offsets - self.with_one @ (self.to_bits(offsets) * x))
            + self.ones @ offsets**2
        )

    def to_bits(self, of_blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """What blocks (k,) have, for each of their bits (kn,)."""
        return np.repeat(of_blocks, self.n // of_blocks.size)

    def weighed(self, weight: NDArray[np.float64], per_person: float) -> "Weighed":
        """The sums over all groups, each of ``weight`` (g,), under errors of SD ``per_person``."""
        W = np.tensordot(weight, self.products, 1)

        def decompose() -> Eigen:
            if weight.size > 1:
                return _eigen(W)
            values, vectors = self._of_one_group
            return weight[0] * values, vectors

        plain = Weighed(
            W,
            weight @ self.with_b,
            weight @ self.with_one,
            weight @ self.b,
            weight @ self.ones,
            decompose,
        )
        return plain.under(per_person) if per_person else plain

    @cached_property
    def _of_one_group(self) -> Eigen:
        return _eigen(self.products[0])


@dataclass(frozen=True, eq=False)
class Weighed:
    """A'C^-1 A (k, n, n), A'C^-1 b, A'C^-1 1 (kn,), 1'C^-1 b and 1'C^-1 1 (k,).

    ``decompose`` gives eigenvalues (k, n) and eigenvectors (k, n, n) of W; most rounds need none.
    """

    G: NDArray[np.float64]
    with_b: NDArray[np.float64]
    with_one: NDArray[np.float64]
    b: NDArray[np.float64]
    ones: NDArray[np.float64]
    decompose: Callable[[], Eigen]

    @cached_property
    def eigen(self) -> Eigen:
        """Eigenvalues and eigenvectors of W."""
        return self.decompose()

    def under(self, per_person: float) -> "Weighed":
        """The same under errors of SD ``per_person``, where these sums know of none."""
        w, V = self.eigen
        shrink = 1 / (1 + per_person**2 * w)
        towards_b, towards_one = self.turned(self.with_b), self.turned(self.with_one)
        return replace(
            self,
            G=(V * (w * shrink)[:, None, :]) @ V.transpose(0, 2, 1),
            with_b=self.turned_back(shrink * towards_b),
            with_one=self.turned_back(shrink * towards_one),
            b=self.b - per_person**2 * (towards_b * shrink * towards_one).sum(axis=1),
            ones=self.ones - per_person**2 * (towards_one**2 * shrink).sum(axis=1),
            decompose=lambda: (w, V),
        )

    def turned(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vector (kn,) in the coordinates (k, n) of the eigenvectors."""
        w, V = self.eigen
        return np.asarray((vector.reshape(w.shape[0], 1, -1) @ V)[:, 0])

    def turned_back(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The vector (kn,) of coordinates (k, n)."""
        return np.asarray((self.eigen[1] @ coordinates[:, :, None]).ravel())


def _eigen(W: NDArray[np.float64]) -> Eigen:
    values, vectors = np.linalg.eigh(W)
    return np.maximum(values, 0.0), vectors


def _split(
    values: NDArray[np.int64], matrices: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.int64]]:
    """Values (p,) of all pieces by the matrix that they belong to."""
    ends = np.cumsum([len(matrix) for matrix in matrices])
    return np.split(values, ends[:-1]) if matrices else []


def _whitened(
    columns: NDArray[np.float64], factors: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Columns (p, c) with L^-1 applied, for Cholesky factors L of pieces in turn."""
    if not factors:
        return columns
    parts = np.split(columns, np.cumsum([len(L) for L in factors])[:-1])
    return np.concatenate(
        [solve_triangular(L, part, lower=True) for L, part in zip(factors, parts, strict=True)]
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
        self.has_offset, self.turned = np.zeros(kind.blocks, np.bool_), False
        self.size, self.twice = x.astype(np.float64), np.zeros(gram.n, np.bool_)
        self.share = 0.0

    def advance(self, beta: float, rng: np.random.Generator, total: NDArray[np.float64]) -> None:
        """One round, as ``Replica`` says."""
        if beta != self.beta or self.rounds % NOISE_EVERY == 0 or self.turned:
            self._weigh(beta)
        exchanges = EXCHANGES * self.kind.people(self.gram.n)
        self.kind.gram_sweep(self._squares(), self.rates, rng, exchanges, total)
        self.rounds += 1
        drawing = self.rounds % NOISE_EVERY == 0
        if self.gram.noise.offset is UNKNOWN:
            self._draw_offsets(rng)
        if drawing and self.gram.noise.per_person is UNKNOWN:
            self._draw_people(rng)
        explained = self.size
        if self.values.per_person:
            errors = self._score().draw(self.values.per_person, rng)
            explained = self.size + self.sums.turned_back(errors)
        misfit = self.gram.misfit(explained, self.values.offsets)
        if drawing and self.gram.noise.sigma is UNKNOWN:
            self._draw_sigma(misfit, beta, rng)
        variance = self.values.sigma**2
        self.likelihood = float(
            -0.5 * (self.gram.count * np.log(2 * np.pi * variance) + misfit / variance).sum()
        )
        self.rates = self.kind.draw_rates(self.x, self.free, rng)

    @property
    def bits(self) -> NDArray[np.int64]:
        return self.x

    @property
    def counted(self) -> NDArray[np.float64]:
        return self.size

    def count_into(self, histogram: NDArray[np.float64]) -> None:
        """Nothing: the answers one by one are not looked at."""

    def _weigh(self, beta: float) -> None:
        """The weighted sums that the kernel works on, for these values of the noise.

        An offset that is there is integrated out, block by block: bits drawn given one would hold
        it where it is.
        """
        self.weight, self.beta = beta / self.values.sigma**2, beta
        self.sums = self.gram.weighed(self.weight, self.values.per_person)
        self.G, towards, ones = self.sums.G, self.sums.with_b, self.sums.with_one
        offsets = self.values.offsets
        if self.has_offset.any():
            precision = self._offset_precision()
            share = np.where(self.has_offset, 1 / precision, 0.0)
            rows = ones.reshape(self.has_offset.size, -1)
            self.G = self.G - share[:, None, None] * (rows[:, :, None] * rows[:, None, :])
            offsets = np.where(self.has_offset, self.sums.b / precision, offsets)
        towards = towards - ones * self.gram.to_bits(offsets)
        self.c = towards - _blockwise(self.G, self.size)

    def _squares(self) -> "Squares":
        """What the kernels draw bits from."""
        from countleak.attack.posterior.kernels import Squares

        variance = self.values.per_one**2
        return Squares(
            self.x, self.size, self.twice, self.free, self.c, self.G, self.share, variance
        )

    def _offset_precision(self) -> NDArray[np.float64]:
        """The precision (k,) of the offsets: that of their answers and that of their prior."""
        return self.sums.ones + offset_precision(self.values)

    def _draw_offsets(self, rng: np.random.Generator) -> None:
        """None at all, as likely beforehand as some; if some, Gaussian around the mean residual.

        Without one, answers pin the number of ones to a whole number, which decides the last bits.
        """
        precision = self._offset_precision()
        counted = (self.sums.with_one * self.size).reshape(precision.size, -1).sum(axis=1)
        mean = (self.sums.b - counted) / precision
        odds = 0.5 * precision * mean**2 - 0.5 * np.log(precision / offset_precision(self.values))
        there = np.log(rng.random(mean.size)) < -np.logaddexp(0.0, -odds)
        self.turned = bool((there != self.has_offset).any())
        self.has_offset = there
        drawn = mean + rng.normal(size=mean.size) / np.sqrt(precision)
        self.values = replace(self.values, offsets=np.where(there, drawn, 0.0))

    def _residual(self) -> NDArray[np.float64]:
        """A'D^-1 (b - A size - offsets) (kn,), D the variances of the noise proper."""
        gram = self.gram
        left = gram.with_b - gram.to_bits(self.values.offsets) * gram.with_one
        return np.asarray(self.weight @ (left - _blockwise(gram.products, self.size)))

    def _score(self) -> Score:
        """How answers pull at errors of everyone.

        At a temperature the likelihood given the errors is raised, not their own.
        """
        return Score(self.sums.eigen[0], self.sums.turned(self._residual()))

    def _axes_of_ones(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Along which axes (ones, ones) answers tell of errors of ones alone, and how well."""
        W = np.tensordot(self.weight, self.gram.products, 1)
        inside = [np.flatnonzero(bits) for bits in self.x.reshape(len(W), -1)]
        eigen = [_eigen(of[np.ix_(at, at)]) for of, at in zip(W, inside, strict=True)]
        widths = np.concatenate([values for values, _ in eigen])
        return widths, block_diag(*(vectors for _, vectors in eigen))

    def _draw_people(self, rng: np.random.Generator) -> None:
        """What people add besides their bits, these given.

        Several times: errors are long taken for second counts, and second counts for errors. The
        sums of the next round are those of the new ones.
        """
        from countleak.attack.posterior.kernels import draw_sizes

        few = self.kind.people(self.gram.n) <= FEW
        widths, axes = self._axes_of_ones() if few else (np.empty(0), np.empty((0, 0)))
        for cycle in range(CYCLES):
            if cycle:
                self._weigh(self.beta)
                draw_sizes(self._squares(), rng)
                if self.gram.noise.offset is UNKNOWN:
                    self._draw_offsets(rng)
            twice, is_one = int(self.twice.sum()), self.x == 1
            self.share = draw_share(twice, int(is_one.sum()) - twice, rng)
            self.size[:] = np.where(self.twice, 2.0, self.x)
            ones = Score(widths, self._residual()[is_one] @ axes) if few else None
            per_person, per_one = draw_spreads(self._score(), ones, rng)
            self.values = replace(
                self.values, per_person=per_person, per_one=per_one, twice=float(twice)
            )
            if ones is not None and per_one:
                self.size[is_one] += axes @ ones.draw(per_one, rng)

    def _draw_sigma(
        self, misfit: NDArray[np.float64], beta: float, rng: np.random.Generator
    ) -> None:
        """Inverse gamma, under a prior flat in log sigma."""
        count = self.gram.count
        shape, scale = beta * count / 2, beta * misfit / 2
        drawn = np.sqrt(np.maximum(scale, 1e-9) / rng.gamma(np.maximum(shape, 0.5)))
        sigma = np.maximum(np.where(count > 0, drawn, self.values.sigma), LEAST_SIGMA)
        self.values = replace(self.values, sigma=sigma)
