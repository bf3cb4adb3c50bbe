"""What residuals say under a law of noise, when the fit is itself uncertain by a normal error.

A residual e = w + N(0, V) is noise w blurred by the error of all other bits. A channel gives the
score g = -(log f)'(e) of its density f, and its slope, the mean of g': message passing takes the
answers in through these alone. What is unknown of the noise is read off the residuals.
"""

from dataclasses import dataclass, replace
from math import inf, log, pi, sqrt
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

# Noise of a smaller variance is none: counts are whole.
LEAST_VARIANCE = 1e-3
# Parts of a mixture as it starts: shares, and variances next to that of all residuals.
SHARES, SPREADS = (0.9, 0.1), (0.5, 9.0)
# Steps towards the likeliest mixture a round.
STEPS = 3


class Channel(Protocol):
    """How an answer's residual weighs, under one law of noise."""

    name: ClassVar[str]

    @property
    def sigma(self) -> float:
        """The SD of the noise, in people."""
        ...

    def fitted(self, e: NDArray[np.float64], V: float) -> Self:
        """The channel with what is unknown of it read off residuals e (m,)."""
        ...

    def score(self, e: NDArray[np.float64], V: float) -> tuple[NDArray[np.float64], float]:
        """g (m,) and its mean slope."""
        ...

    def log_likelihood(self, e: NDArray[np.float64], V: float) -> float:
        """The mean logarithm of the density at e (m,)."""
        ...


@dataclass(frozen=True)
class Normal:
    """Normal noise of a ``variance``; ``stated`` if that is known."""

    variance: float = inf
    stated: bool = False
    name: ClassVar[str] = "normal"

    @property
    def sigma(self) -> float:
        return sqrt(self.variance)

    def fitted(self, e: NDArray[np.float64], V: float) -> Self:
        if self.stated:
            return self
        return replace(self, variance=max(float((e * e).mean()) - V, LEAST_VARIANCE))

    def score(self, e: NDArray[np.float64], V: float) -> tuple[NDArray[np.float64], float]:
        total = self.variance + V
        return e / total, 1 / total

    def log_likelihood(self, e: NDArray[np.float64], V: float) -> float:
        total = self.variance + V
        return -float((e * e).mean()) / (2 * total) - log(2 * pi * total) / 2


@dataclass(frozen=True)
class Rounded:
    """Rounding to multiples of ``base``, and normal noise of a ``variance`` before it."""

    base: int
    variance: float = inf
    name: ClassVar[str] = "rounded"

    @property
    def sigma(self) -> float:
        return sqrt(self.base**2 / 12 + self.variance)

    def fitted(self, e: NDArray[np.float64], V: float) -> Self:
        left = float((e * e).mean()) - V - self.base**2 / 12
        return replace(self, variance=max(left, LEAST_VARIANCE))

    def score(self, e: NDArray[np.float64], V: float) -> tuple[NDArray[np.float64], float]:
        sd = sqrt(self.variance + V)
        # The density is symmetric: signs go back on at the end, so that tails keep their digits.
        low, high = (np.abs(e) - self.base / 2) / sd, (np.abs(e) + self.base / 2) / sd
        mass = _log_between(low, high)
        at_low = np.exp(-(low**2) / 2 - mass) / sqrt(2 * pi)
        at_high = np.exp(-(high**2) / 2 - mass) / sqrt(2 * pi)
        g = (at_low - at_high) / sd
        slope = g * g - (low * at_low - high * at_high) / sd**2
        return np.sign(e) * g, float(slope.mean())

    def log_likelihood(self, e: NDArray[np.float64], V: float) -> float:
        sd = sqrt(self.variance + V)
        low, high = (np.abs(e) - self.base / 2) / sd, (np.abs(e) + self.base / 2) / sd
        return float(_log_between(low, high).mean()) - log(self.base)


def _log_between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(Phi(high) - Phi(low)) where high > |low|."""
    above_low, above_high = log_ndtr(-low), log_ndtr(-high)
    return np.asarray(above_low + np.log(-np.expm1(np.minimum(above_high - above_low, -1e-12))))


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of a ``variance``; ``stated`` if that is known."""

    variance: float = inf
    stated: bool = False
    name: ClassVar[str] = "Laplace"

    @property
    def sigma(self) -> float:
        return sqrt(self.variance)

    def fitted(self, e: NDArray[np.float64], V: float) -> Self:
        if self.stated:
            return self
        return replace(self, variance=max(float((e * e).mean()) - V, LEAST_VARIANCE))

    def score(self, e: NDArray[np.float64], V: float) -> tuple[NDArray[np.float64], float]:
        scale, sd = sqrt(self.variance / 2), sqrt(max(V, 1e-3 * self.variance))
        left, right, log_sum = self._parts(e, V)
        # The two halves of the law, blurred: f' = (left - right) / scale.
        p, q = np.exp(left - log_sum), np.exp(right - log_sum)
        g = (p - q) / scale
        edge = np.exp(-(e * e) / (2 * sd * sd) - log_sum) / (scale * sd * sqrt(2 * pi))
        slope = g * g - 1 / scale**2 + edge / scale
        return g, float(slope.mean())

    def _parts(
        self, e: NDArray[np.float64], V: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Logarithms of what noise above 0, noise below 0 and both give to the density at e."""
        scale, sd = sqrt(self.variance / 2), sqrt(max(V, 1e-3 * self.variance))
        parts = []
        for side in (e, -e):
            z = sd / scale - side / sd
            # exp(z^2/2) Phi(-z), which overflows for no z; e^2 is put back.
            with np.errstate(over="ignore"):
                tail = np.where(
                    z > -5,
                    np.log(erfcx(np.maximum(z, -5) / sqrt(2)) / 2),
                    z * z / 2 + log_ndtr(-z),
                )
            parts.append(tail - side * side / (2 * sd * sd) - log(2 * scale))
        return parts[0], parts[1], np.logaddexp(parts[0], parts[1])

    def log_likelihood(self, e: NDArray[np.float64], V: float) -> float:
        return float(self._parts(e, V)[2].mean())


@dataclass(frozen=True)
class Mixed:
    """Normal noise of several variances: usual answers, and ``shares`` of wilder ones.

    Stands for any symmetric law with tails; ``totals`` are the variances of residuals.
    """

    shares: tuple[float, ...] = ()
    totals: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()
    name: ClassVar[str] = "mixed"

    @property
    def sigma(self) -> float:
        return sqrt(sum(w * v for w, v in zip(self.shares, self.variances, strict=True)))

    def fitted(self, e: NDArray[np.float64], V: float) -> Self:
        square = e * e
        all_of = float(square.mean())
        shares = np.array(self.shares or SHARES)
        totals = np.array(self.totals or [spread * all_of for spread in SPREADS])
        for _ in range(STEPS):
            parts = self._responsible(square, shares, totals)
            weight = parts.sum(axis=1)
            shares = np.maximum(weight / e.size, 1e-9)
            totals = np.maximum((parts @ square) / np.maximum(weight, 1e-9), V + LEAST_VARIANCE)
        shares /= shares.sum()
        return replace(
            self,
            shares=tuple(shares.tolist()),
            totals=tuple(totals.tolist()),
            variances=tuple((totals - V).tolist()),
        )

    @staticmethod
    def _responsible(
        square: NDArray[np.float64], shares: NDArray[np.float64], totals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How likely each part (k, m) is to have made a residual of such a square."""
        logs = np.log(shares / np.sqrt(totals))[:, None] - square / (2 * totals[:, None])
        parts = np.exp(logs - logs.max(axis=0))
        return np.asarray(parts / parts.sum(axis=0))

    def score(self, e: NDArray[np.float64], V: float) -> tuple[NDArray[np.float64], float]:
        totals = np.array(self.variances) + V
        parts = self._responsible(e * e, np.array(self.shares), totals)
        first, second = (1 / totals) @ parts, (1 / totals**2) @ parts
        slope = first - e * e * (second - first * first)
        return e * first, float(slope.mean())

    def log_likelihood(self, e: NDArray[np.float64], V: float) -> float:
        totals, shares = np.array(self.variances) + V, np.array(self.shares)
        logs = np.log(shares / np.sqrt(2 * pi * totals))[:, None] - e * e / (2 * totals[:, None])
        top = logs.max(axis=0)
        return float((top + np.log(np.exp(logs - top).sum(axis=0))).mean())
