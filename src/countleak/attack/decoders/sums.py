"""The decoder of numeric secrets: everyone's number, from noisy sums over many subsets.

The numbers v of n people are spread around a mean, and the answers are their sums with noise:

    v_j ~ N(mu, tau^2)  within [low, high],      b = A v + N(0, sigma^2)

mu, tau and sigma make the answers likeliest (empirical Bayes, over the singular values of A); the
estimate is then the box's least squares of |b - Av|^2/sigma^2 + |v - mu|^2/tau^2, rescaled so that
[low, high] is [0, 1]. The second term is what keeps it sane with fewer answers than people. Sums
that are repeated, grossly wrong, off by a constant or with noise in common are dealt with before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from countleak.attack.correlation import distinct
from countleak.attack.decoders.known import known_values
from countleak.attack.decoders.sum_noise import Sound, Spread, make_sound
from countleak.attack.diagnosis import ENOUGH
from countleak.attack.guess import Guess, Intervals, Summed
from countleak.attack.noise import check_sigma
from countleak.attack.programs import Dmt
from countleak.attack.queries.ids import Id
from countleak.attack.solvers.machine import one_thread
from countleak.attack.transcript import Transcript
from countleak.errors import InputError, SolverError

# A bound that is not given lies this many standard errors beyond every estimate.
BEYOND = 2.0
# sigma^2/tau^2 is sought within this many powers of ten of the mean squared singular value.
POWERS = (-14.0, 3.0)


@dataclass(frozen=True)
class Sums:
    """Least squares within [``low``, ``high``], each estimated from the answers unless given.

    ``sigma``, the noise's SD, is estimated as well; ``known`` maps ids to numbers known beforehand;
    ``level`` is that of the intervals. Suppressed sums are left out: why is not known.
    """

    low: float | None = None
    high: float | None = None
    sigma: float | None = None
    known: Mapping[Id, float] = field(default_factory=dict)
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(f"bounds {self.low:g} to {self.high:g}; the first must be below")
        if self.sigma is not None:
            # Numbers may be in any unit.
            check_sigma(self.sigma, least=1e-10)
        if not 0 < self.level < 1:
            raise InputError(f"the level is {self.level:g}; it lies between 0 and 1")

    def decode(self, transcript: Transcript) -> Guess:
        """Fit the spread, then everyone's number within the bounds."""
        # The matrices are small: threads would wait for each other more than they would work.
        with one_thread():
            return self._decode(transcript)

    def _decode(self, transcript: Transcript) -> Guess:
        # What a system repeats of itself says nothing new.
        transcript = distinct(transcript)
        problem = Dmt().problem(transcript)
        A, b = problem.A.astype(np.float64), problem.b
        people, numbers = known_values(transcript.ids, self.known, np.float64)
        free = ~people
        if not free.any():
            raise InputError("everyone's number is known already; there is nothing to find out")
        if self.sigma is None and b.size < ENOUGH * free.sum():
            raise InputError(
                f"{b.size} sums about {free.sum()} people do not tell noise from numbers; give "
                f"sigma, or ask at least {int(ENOUGH * free.sum()) + 1}"
            )
        sums = Sound(A[:, free], b - A[:, people] @ numbers[people])
        if b.size >= ENOUGH * free.sum():
            answered = transcript.where(transcript.released).queries
            sums = make_sound(answered, sums.A, sums.b, self._fit)
        spread = self._fit(sums.A, sums.b)
        low, high = self._bounds(spread)
        values, error = numbers.copy(), np.zeros(numbers.size)
        values[free] = _within(sums.A, sums.b, spread, low, high)
        error[free] = spread.error
        reach = float(ndtri(0.5 + self.level / 2)) * error
        intervals = Intervals(
            error,
            np.where(people, numbers, np.maximum(values - reach, low)),
            np.where(people, numbers, np.minimum(values + reach, high)),
            self.level,
        )
        basis = Summed(
            decoder="sums",
            known=len(self.known),
            answers=b.size,
            sigma=spread.sigma,
            mean=spread.mean,
            sd=spread.sd,
            bounds=(low, high),
            offset=sums.offset or None,
            wrong_answers=sums.wrong or None,
        )
        claimed = np.ones(values.size, np.bool_)
        return Guess(transcript.ids, values, claimed, basis, intervals=intervals)

    def _fit(self, A: NDArray[np.float64], b: NDArray[np.float64]) -> Spread:
        return fit_spread(A, b, self.sigma)

    def _bounds(self, spread: Spread) -> tuple[float, float]:
        # Hardly anyone is beyond these.
        lowest = float((spread.estimate - BEYOND * spread.error).min())
        highest = float((spread.estimate + BEYOND * spread.error).max())
        low = self.low if self.low is not None else lowest
        high = self.high if self.high is not None else highest
        if not low < high:
            raise InputError(
                f"the answers put everyone between {lowest:g} and {highest:g}, outside the bounds; "
                "check them"
            )
        return low, high


def fit_spread(
    A: NDArray[np.float64], b: NDArray[np.float64], sigma: float | None = None
) -> Spread:
    """The mean, SD and noise that make answers b (m,) likeliest; ``sigma`` is found unless given.

    With r = sigma^2/tau^2 and A = U S V' the answers have covariance tau^2 (AA' + r I), so all
    that depends on r is sums over the singular values.
    """
    m, n = A.shape
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    inside, ones = U.T @ b, S * (Vt @ np.ones(n))
    outside = float(((b - U @ inside) ** 2).sum())
    squares = S**2

    def mean(r: float) -> float:
        return float((ones * inside / (squares + r)).sum() / (ones**2 / (squares + r)).sum())

    def form(r: float) -> float:
        away = inside - mean(r) * ones
        return float((away**2 / (squares + r)).sum() + (outside / r if m > S.size else 0.0))

    def cost(log_r: float) -> float:
        r = float(np.exp(log_r))
        logdet = float(np.log(squares + r).sum() + (m - S.size) * log_r)
        if sigma is None:
            return float(m * np.log(max(form(r), 1e-300) / m) + logdet)
        tau2 = sigma**2 / r
        return float(m * np.log(tau2) + form(r) / tau2 + logdet)

    centre = np.log(squares.mean())
    grid = centre + np.log(10) * np.linspace(*POWERS, 69)
    best = int(np.argmin([cost(at) for at in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    # Loaded here: the rest of countleak starts without it.
    from scipy.optimize import minimize_scalar

    r = float(np.exp(minimize_scalar(cost, bounds=ends, method="bounded").x))
    mu, tau2 = mean(r), (form(r) / m if sigma is None else sigma**2 / r)
    estimate = mu + Vt.T @ (S / (squares + r) * (inside - mu * ones))
    # Directions that no answer sees keep the whole variance.
    unseen = np.maximum(1.0 - (Vt**2).sum(axis=0), 0.0)
    variance = tau2 * ((Vt**2 * (r / (squares + r))[:, None]).sum(axis=0) + unseen)
    return Spread(mu, float(np.sqrt(tau2)), float(np.sqrt(r * tau2)), estimate, np.sqrt(variance))


def _within(
    A: NDArray[np.float64], b: NDArray[np.float64], spread: Spread, low: float, high: float
) -> NDArray[np.float64]:
    """The likeliest numbers (n,) between the bounds."""
    from scipy.optimize import lsq_linear

    n, width = A.shape[1], high - low
    # The spread around the mean is one more answer per person, of noise sd.
    ratio = spread.sigma / spread.sd
    rows = np.vstack([A, ratio * np.eye(n)])
    told = np.concatenate([b - low * A.sum(axis=1), np.full(n, ratio * (spread.mean - low))])
    Q, R = np.linalg.qr(rows)
    # Sums may be answered to many digits: an active set is exact where ADMM would crawl.
    found = lsq_linear(R, Q.T @ told / width, bounds=(0.0, 1.0), method="bvls", max_iter=20 * n)
    if not found.success:
        raise SolverError("least squares within the bounds did not settle; widen the bounds")
    return np.asarray(low + width * found.x)
