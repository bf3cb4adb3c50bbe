"""Least squares over the box, with a standard error for everyone.

Under Gaussian noise the squared loss wastes nothing, where the paper's sum of absolute residuals
wastes a factor pi/2 in variance, a third of the queries. It trusts every answer, so a few that
are grossly wrong ruin it: see ``robust``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from countleak.attack.guess import Guess, Squares, bits_from
from countleak.attack.noise import check_sigma
from countleak.attack.programs import Dmt
from countleak.attack.solvers.box import BoxSquares
from countleak.attack.solvers.products import Centred
from countleak.attack.solvers.squares import NormalEquations, box_least_squares
from countleak.attack.transcript import Transcript

# More people than this are fitted by products alone: their Gram matrix would be large.
MOST_PEOPLE = 5000


@dataclass(frozen=True)
class LeastSquares:
    """Round the least-squares solution; ``sigma`` is estimated from the residuals if not given.

    The probability of a one is Phi((x - 1/2) / standard error): cautious rather than calibrated.
    """

    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None:
            check_sigma(self.sigma)

    def decode(self, transcript: Transcript) -> Guess:
        """Fit, estimate the noise, and turn both into a probability for everyone."""
        if transcript.ids.size > MOST_PEOPLE:
            return self._decode_many(transcript.where(transcript.released))
        problem = Dmt().problem(transcript)
        A, b = problem.A.astype(np.float64), problem.b
        fit = box_least_squares(NormalEquations.of(A, b))
        sigma = self.sigma or residual_scale(fit.x, fit.squares, b.size)
        error = standard_errors(A, sigma)
        basis = Squares(
            decoder="least squares",
            sigma=sigma,
            mean_standard_error=float(error.mean()),
            squares=fit.squares,
            gap=fit.gap,
            iterations=fit.iterations,
        )
        return bits_from(transcript.ids, ndtr((fit.x - 0.5) / error), basis)

    def _decode_many(self, released: Transcript) -> Guess:
        """The same by products alone, with the standard error that rows as good as random leave."""
        fit = BoxSquares().solve(released.queries.rows, released.b)
        m, free = len(released), int(((fit.x > 1e-6) & (fit.x < 1 - 1e-6)).sum())
        sigma = self.sigma or residual_scale(fit.x, fit.squares, m)
        variance = Centred(released.queries.rows).variance
        error = float(np.sqrt(1 / (variance * max(m - free, 1) / sigma**2 + 4)))
        basis = Squares(
            decoder="least squares",
            sigma=sigma,
            mean_standard_error=error,
            squares=fit.squares,
            gap=fit.gap,
            iterations=fit.iterations,
        )
        return bits_from(released.ids, ndtr((fit.x - 0.5) / error), basis)


def residual_scale(x: NDArray[np.float64], squares: float, m: int) -> float:
    """The noise's SD from the squared residuals at x: those at a bound cost no freedom."""
    free = int(((x > 1e-6) & (x < 1 - 1e-6)).sum())
    return float(np.sqrt(squares / max(m - free, 1))) or 0.05


def standard_errors(A: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Standard errors (n,) of a fit of bits to answers of noise sigma.

    The square roots of the diagonal of (A'A/sigma^2 + 4 I)^-1: a bit's own variance, 1/4 at most,
    is what keeps this finite with fewer answers than people.
    """
    n = A.shape[1]
    spread = np.linalg.inv(A.T @ A / sigma**2 + 4 * np.eye(n))
    return np.sqrt(np.maximum(np.diag(spread), 1e-12))
