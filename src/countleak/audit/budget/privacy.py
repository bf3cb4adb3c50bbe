"""The same budget read as differential privacy: epsilon at a delta, and the noise one would need.

One person changes each count by 1 at most. Differential privacy is about the worst case, so she is
taken to be in all m of them, although a random subset holds her half of the time; rounding an
answer afterwards changes nothing. m counts under normal noise are one release of SD
s = sigma / sqrt(m), exactly (Balle and Wang 2018, theorem 8):

    delta = Phi(1/(2s) - epsilon s) - exp(epsilon) Phi(-1/(2s) - epsilon s)

m counts under Laplace noise have no such formula; Google's dp-accounting composes them numerically,
as privacy loss distributions rounded to the safe side.
"""

from math import exp, inf, log, log1p, sqrt
from typing import Any

from scipy.special import log_ndtr

from countleak.audit.budget.bisection import turning_point
from countleak.audit.budget.evolution import check_answers
from countleak.audit.targets.simulated import Gaussian, Laplace, Mechanism, SimulatedDiffix
from countleak.errors import InputError, MissingExtra, NoPrediction

# Steps into which one Laplace answer's greatest loss is cut: an error under 0.1% of epsilon.
CUTS = 64
# A smaller epsilon is that of no answers at all, a larger one promises nothing.
LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e6
# What numerical composition takes: Laplace answers, and the loss of each.
MOST_COMPOSED, MOST_LOSS = 10**5, 100.0


def epsilon_of(mechanism: Mechanism, queries: int, delta: float) -> float | None:
    """The epsilon of so many answers at ``delta``; missing where none is enough.

    Bounded noise and rounding rule some answers out for certain: no differential privacy at all.
    """
    check_answers(mechanism, queries)
    _check_delta(delta)
    if isinstance(mechanism, Gaussian | SimulatedDiffix):
        s = mechanism.sigma / sqrt(queries)
        if _log_delta(s, 0.0) <= log(delta):
            return 0.0
        # The loss is normal with mean and variance 1/(2s^2) and 1/s^2: 40 SD leave no delta.
        enough = 1 / (2 * s * s) + 40 / s
        return turning_point(lambda e: _log_delta(s, e) > log(delta), 0.0, enough)
    if isinstance(mechanism, Laplace):
        return _laplace(mechanism.sigma, queries, delta)
    return None


def sigma_for_epsilon(
    mechanism: Mechanism, queries: int, epsilon: float, delta: float
) -> float | None:
    """The standard deviation with which so many answers would have cost ``epsilon``.

    Missing for mechanisms that are never differentially private.
    """
    check_answers(mechanism, queries)
    _check_delta(delta)
    _check_epsilon(epsilon)
    if isinstance(mechanism, Gaussian | SimulatedDiffix):
        logs = turning_point(
            lambda u: _log_delta(exp(u), epsilon) > log(delta), log(1e-9), log(1e9)
        )
        return exp(logs) * sqrt(queries)
    if isinstance(mechanism, Laplace):
        if epsilon > MOST_LOSS:
            raise NoPrediction(
                f"an epsilon of {epsilon:g} is beyond what Laplace noise is read for; choose one "
                f"up to {MOST_LOSS:g}"
            )
        # Simple composition always suffices; one answer alone costs nearly its loss.
        enough = log(sqrt(2) * queries / epsilon)
        least = max(enough - log(queries) - 3, log(sqrt(2) / MOST_LOSS))
        logs = turning_point(
            lambda u: _laplace(exp(u), queries, delta) > epsilon, least, enough, halvings=18
        )
        return exp(logs)
    return None


def sigma_of_one_answer(mechanism: Mechanism, epsilon: float, delta: float) -> float | None:
    """The standard deviation of a single answer that costs ``epsilon``.

    Laplace noise is pure, with scale 1/epsilon and no delta; normal noise costs it at ``delta``.
    Missing for mechanisms that are never differentially private.
    """
    _check_epsilon(epsilon)
    if isinstance(mechanism, Laplace):
        return sqrt(2) / epsilon
    return sigma_for_epsilon(mechanism, 1, epsilon, delta)


def _log_delta(s: float, epsilon: float) -> float:
    """log delta of one normal release of SD s, in logarithms so that small ones keep digits."""
    above = float(log_ndtr(1 / (2 * s) - epsilon * s))
    below = epsilon + float(log_ndtr(-1 / (2 * s) - epsilon * s))
    # Rounding may put the second above the first, where both are next to nothing.
    share = -exp(min(below - above, 0.0))
    return above + log1p(share) if share > -1 else -inf


def _laplace(sigma: float, queries: int, delta: float) -> float:
    try:
        import dp_accounting
    except ImportError:
        raise MissingExtra(
            "the reading of Laplace noise as differential privacy", "privacy"
        ) from None
    accounting: Any = dp_accounting
    scale = sigma / sqrt(2)
    if queries > MOST_COMPOSED or 1 / scale > MOST_LOSS * (1 + 1e-9):
        raise NoPrediction(
            f"{queries} answers with Laplace noise of SD {sigma:g} are beyond what is read as "
            f"differential privacy; plan with up to {MOST_COMPOSED:.0e}, and SD "
            f"{sqrt(2) / MOST_LOSS:.2g} or more"
        )
    # One answer loses 1/scale at most; a grid in proportion costs the same for every scale.
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=1 / scale / CUTS)
    accountant.compose(accounting.LaplaceDpEvent(scale), queries)
    return float(min(accountant.get_epsilon(delta), queries / scale))


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta:g}; it must lie between 0 and 1, like 1e-6")


def _check_epsilon(epsilon: float) -> None:
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InputError(
            f"epsilon is {epsilon:g}; it must be a number from {LEAST_EPSILON:g} to "
            f"{MOST_EPSILON:g}"
        )
