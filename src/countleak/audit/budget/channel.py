"""One person's bit through a normal channel, r = X + tau Z: what each kind of decoder gets right.

X is 1 with probability ``prior``, Z standard normal. A box decoder answers
c = clip(r - shift, 0, 1) and rounds at 1/2; the posterior is p = Pr(X = 1 | r).
"""

from dataclasses import dataclass
from math import erfc, exp, log, pi, sqrt

import numpy as np
from scipy.special import expit

from countleak.audit.budget.bisection import turning_point

# A grid over Z; the trapezoid rule on it is exact to 1e-12 for every tau above 0.05.
GRID = np.linspace(-9.0, 9.0, 1201)
MASS = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()


def cdf(z: float) -> float:
    """The standard normal distribution function."""
    return erfc(-z / sqrt(2)) / 2


def _phi(z: float) -> float:
    return exp(-z * z / 2) / sqrt(2 * pi)


@dataclass(frozen=True)
class Boxed:
    """A box decoder's mean square error, share of people strictly inside, share rounded right."""

    error: float
    inside: float
    accuracy: float


def boxed(tau: float, prior: float, pinned: bool) -> Boxed:
    """The error and accuracy of clipping; ``pinned`` where the answers also tell the total.

    The shift then makes the estimates add up to the true total, E c = prior.
    """
    shift = _shift(tau, prior) if pinned and prior != 0.5 else 0.0
    error = inside = 0.0
    for bit, chance in ((0, 1 - prior), (1, prior)):
        off = -shift
        low, high = (-bit + shift) / tau, (1 - bit + shift) / tau
        between = cdf(high) - cdf(low)
        square = (
            (off * off + tau * tau) * between
            + 2 * off * tau * (_phi(low) - _phi(high))
            + tau * tau * (low * _phi(low) - high * _phi(high))
        )
        error += chance * (square + bit * cdf(low) + (1 - bit) * cdf(-high))
        inside += chance * between
    accuracy = (1 - prior) * cdf((0.5 + shift) / tau) + prior * cdf((0.5 - shift) / tau)
    # For a very large tau the terms cancel to all their digits; the error of a bit is at most 1.
    return Boxed(min(max(error, 0.0), 1.0), inside, accuracy)


def _shift(tau: float, prior: float) -> float:
    """The shift with E clip(r - shift, 0, 1) = prior; the mean falls with it."""
    widest = 1 + 10 * tau
    return turning_point(lambda shift: _mean(tau, prior, shift) > prior, -widest, widest)


def _mean(tau: float, prior: float, shift: float) -> float:
    total = 0.0
    for bit, chance in ((0, 1 - prior), (1, prior)):
        place = bit - shift
        low, high = -place / tau, (1 - place) / tau
        total += chance * (
            place * (cdf(high) - cdf(low)) + tau * (_phi(low) - _phi(high)) + cdf(-high)
        )
    return total


def posterior_error(tau: float, prior: float) -> float:
    """E p (1 - p), the least mean square error any estimate of X has."""
    odds = log(prior / (1 - prior))
    total = 0.0
    for bit, chance in ((0, 1 - prior), (1, prior)):
        p = expit(odds + (bit - 0.5 + tau * GRID) / tau**2)
        total += chance * float(MASS @ (p * (1 - p)))
    return total


def posterior_accuracy(tau: float, prior: float) -> float:
    """The share right when whichever bit is likelier is guessed: the most any guess gets."""
    cut = 0.5 - tau**2 * log(prior / (1 - prior))
    return (1 - prior) * cdf(cut / tau) + prior * cdf((1 - cut) / tau)
