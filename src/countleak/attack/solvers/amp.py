"""Approximate message passing: the probability of every bit, in a few products with the matrix.

A round takes the residuals' score through the channel of the noise, sends it back to the people,
and has each person's bit then in normal noise of known size tau, r = x + tau Z, however many
people there are (Donoho, Maleki, Montanari 2009; Rangan 2011 for other noise than normal):

    e = a - level - A p + (n mean(p (1 - p)) / (m s tau^2)) g    residuals, with Onsager's term
    g, s = score of e and its mean slope                          under e = noise + N(0, V)
    r = p + A'g / (m v s),   tau^2 = mean(g^2) / (m v s^2)
    p = Pr(x = 1 | r)

with A the centred matrix, v the variance of its entries and V = v sum p (1 - p). The level of the
answers, the noise and the rate of ones are estimated on the way. It holds for rows that are as good
as independent; for others it may not settle, or settle on a tau that is wrong. ``Passed`` says
which: rounds must come to rest, and the spread of r around 0 and 1, mean(r^2 - r), must be tau^2.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from countleak.attack.solvers.channels import Channel, Normal
from countleak.attack.solvers.products import Centred, Products, on_host
from countleak.progress import Progress, silent

ROUNDS = 150
# tau^2 from which the rate of ones is averaged over, by so many of the people.
BLURRED, SAMPLE = 0.2, 10_000
# Shares of the new messages that are tried in turn, until they settle.
DAMPINGS = (1.0, 0.6, 0.3)
# Probabilities that move less per round, on average, have stopped.
STOPPED = 1e-5
# tau^2 that grew by more, over its least, is running away.
RUNAWAY = 3.0
# How far the spread of r may differ from tau^2: so many standard errors, and this share.
ERRORS, SHARE = 4.0, 0.1


@dataclass(frozen=True, eq=False)
class Passed:
    """What message passing ends with: the ``probability`` (n,) of a one, if ``doubt`` is empty.

    ``tau`` is the noise of each bit, ``level`` what all answers have in common, ``density`` the
    share of people that a query counts, ``rate`` that of ones, ``residuals`` (m,) what is left of
    the answers as if each had not been used, with an error of variance ``blur`` of the fit.
    """

    probability: NDArray[np.float64]
    channel: Channel
    residuals: NDArray[np.float64]
    blur: float
    tau: float
    rate: float
    level: float
    density: float
    rounds: int
    doubt: str

    @property
    def settled(self) -> bool:
        """Whether the probabilities can be stood by."""
        return not self.doubt

    @property
    def offset(self) -> float:
        """What all answers are off by."""
        return self.level - self.density * float(self.probability.sum())


@dataclass(frozen=True)
class MessagePassing:
    """Message passing with ``channel`` for the noise, the rate of ones ``prior`` unless unknown."""

    channel: Channel = field(default_factory=Normal)
    prior: float | None = None
    rounds: int = ROUNDS
    progress: Progress = silent

    def solve(
        self, products: Products, b: NDArray[np.float64], start: NDArray[np.float64] | None = None
    ) -> Passed:
        """The probabilities of all bits given answers b (m,), from ``start`` (n,) or nothing."""
        centred = Centred(products)
        for damping in DAMPINGS:
            found = self._passed(centred, b, damping, start)
            if found.settled:
                break
        return found

    def _passed(
        self,
        A: Centred,
        b: NDArray[np.float64],
        damping: float,
        start: NDArray[np.float64] | None,
    ) -> Passed:
        m, n = A.shape
        rate = 0.5 if self.prior is None else self.prior
        p = A.arrays.full(n, rate) if start is None else start
        level = float(b.mean()) if start is None else float((b - A.dot(p)).mean())
        g, onsager, channel = A.arrays.zeros(m), 0.0, self.channel
        least, change, tau2, V, r, e = np.inf, np.inf, np.inf, 0.0, p, b
        done = 0
        for done in range(1, self.rounds + 1):
            V = max(A.variance * float((p * (1 - p)).sum()), 1e-9)
            e = b - level - A.dot(p) + onsager * g
            channel = channel.fitted(e, V)
            new, slope = channel.score(e, V)
            slope = max(slope, 1e-12)
            # A step to the likeliest level, which all answers have in common.
            level += float(new.mean()) / slope
            g = damping * (new - new.mean()) + (1 - damping) * g
            tau2 = max(float((g * g).mean()) / (m * A.variance * slope**2), 1e-6)
            r = p + A.tdot(g) / (m * A.variance * slope)
            blurred = self.prior is None and tau2 > BLURRED
            if blurred:
                rate = _rate(on_host(r[:: -(-n // SAMPLE)]))
                r = r - r.mean() + rate
            likelier = _posterior(r, tau2, rate)
            change = float(np.abs(likelier - p).mean())
            p = damping * likelier + (1 - damping) * p
            if self.prior is None and not blurred:
                rate = float(np.clip(likelier.mean(), 0.5 / n, 1 - 0.5 / n))
            onsager = n * float((likelier * (1 - likelier)).mean()) / (m * slope * tau2)
            least = min(least, tau2)
            self.progress(done, self.rounds)
            if change < STOPPED or not np.isfinite(tau2) or tau2 > RUNAWAY * least:
                break
        return Passed(
            p, channel, e, V, sqrt(tau2), rate, level, A.density, done, _doubt(r, tau2, change)
        )


def _posterior(r: NDArray[np.float64], tau2: float, rate: float) -> NDArray[np.float64]:
    """Pr(x = 1 | r) for bits of that rate, seen through normal noise of variance tau2."""
    odds = np.clip((r - 0.5) / tau2 + np.log(rate / (1 - rate)), -700, 700)
    p: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
    return p


def _rate(r: NDArray[np.float64]) -> float:
    """The rate of ones to expect by the shape of r alone, all rates being as likely beforehand.

    Where bits are hardly seen through the noise, what all r have in common follows the rate that
    was assumed, and says nothing of it.
    """
    rates = np.linspace(0.01, 0.99, 99)
    centred = r - r.mean()
    spread = float((centred * centred).mean())
    tau2 = np.maximum(spread - rates * (1 - rates), spread / 100)
    one = np.log(rates) - (centred[:, None] - (1 - rates)) ** 2 / (2 * tau2)
    zero = np.log(1 - rates) - (centred[:, None] + rates) ** 2 / (2 * tau2)
    likelihood = (np.logaddexp(one, zero) - np.log(tau2) / 2).sum(axis=0)
    weight = np.exp(likelihood - likelihood.max())
    return float(rates @ weight / weight.sum())


def _doubt(r: NDArray[np.float64], tau2: float, change: float) -> str:
    """Why the messages cannot be believed; empty where they can."""
    if not change < 100 * STOPPED:
        return "message passing did not settle"
    # Of a bit in normal noise r^2 - r is tau^2 on average, whatever the rate of ones.
    spread = float((r * r - r).mean())
    error = sqrt(tau2 * (1 + 2 * tau2) / r.size)
    if abs(spread - tau2) > ERRORS * error + SHARE * tau2:
        seen, expected = sqrt(max(spread, 0.0)), sqrt(tau2)
        return (
            f"messages spread by {seen:.3g} around the bits where {expected:.3g} was expected: the "
            "queries are not as good as random"
        )
    return ""
