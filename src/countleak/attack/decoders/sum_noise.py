"""What of the noise of sums would break a plain fit, found from what the fit leaves over.

Some sums may have nothing to do with the numbers, all may be off by a constant, and some may have
noise in common. The first are left out, the second is a column of its own, and the last is made
independent (``covariance.whiten``).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from countleak.attack.correlation import MOST_WHITENED, find_shared
from countleak.attack.covariance import whiten
from countleak.attack.diagnosis import SURELY
from countleak.attack.posterior.fit import TAIL, has_heavy_tails
from countleak.attack.queries import Queries

# Rounds of reweighting towards least absolute residuals, and of leaving out what is then gross.
REWEIGHTED, LEFT_OUT = 40, 5
# Residuals below this many scales count by their squares.
SQUARED = 1.0


@dataclass(frozen=True, eq=False)
class Spread:
    """Numbers around ``mean`` with ``sd``, seen through noise of ``sigma``.

    ``estimate`` (n,) and ``error`` (n,) are everyone's posterior mean and SD without any bounds.
    """

    mean: float
    sd: float
    sigma: float
    estimate: NDArray[np.float64]
    error: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sound:
    """Sums with independent noise of one size: b (k,) of rows A (k, n), and what was wrong before.

    ``wrong`` is the share of sums left out, ``offset`` what all were off by, 0 where that is no
    more than chance.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    wrong: float = 0.0
    offset: float = 0.0


Fit = Callable[[NDArray[np.float64], NDArray[np.float64]], Spread]


def make_sound(queries: Queries, A: NDArray[np.float64], b: NDArray[np.float64], fit: Fit) -> Sound:
    """The sums b (m,) of rows A (m, n) as ``fit`` may take them."""
    kept = _trusted(A, b, fit)
    queries, A, b = queries.take(np.flatnonzero(kept)), A[kept], b[kept]
    one = np.ones(b.size)
    residual = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
    shared = find_shared([(queries, residual)]) if b.size <= MOST_WHITENED else ()
    if shared:
        both = np.column_stack([A, one])
        both, b = whiten(queries, both, b, shared)
        A, one = both[:, :-1], both[:, -1]
    offset, error = _offset(A, b, one, fit(A, b))
    wrong = 1 - float(kept.mean())
    if abs(offset) <= SURELY * error:
        return Sound(A, b, wrong)
    # A reflection turns the column of the offset into one coordinate, which is given up.
    mirror = one / np.linalg.norm(one)
    mirror[0] -= 1.0
    mirror /= max(float(np.linalg.norm(mirror)), 1e-12)
    turned = [x - 2 * np.multiply.outer(mirror, mirror @ x) for x in (A, b)]
    return Sound(turned[0][1:], turned[1][1:], wrong, offset)


def _trusted(A: NDArray[np.float64], b: NDArray[np.float64], fit: Fit) -> NDArray[np.bool_]:
    """Which sums (m,) are not grossly wrong: all, unless residuals are further out than noise."""
    everything = np.ones(b.size, np.bool_)
    spread = fit(A, b)
    if not has_heavy_tails(b - A @ spread.estimate):
        return everything
    residual, scale = _least_absolute(A, b, spread)
    kept = np.abs(residual) < TAIL * scale
    for _ in range(LEFT_OUT):
        if kept.sum() <= A.shape[1]:
            return everything
        spread = fit(A[kept], b[kept])
        now = np.abs(b - A @ spread.estimate) < TAIL * spread.sigma
        if (now == kept).all():
            break
        kept = now
    return kept


def _least_absolute(
    A: NDArray[np.float64], b: NDArray[np.float64], spread: Spread
) -> tuple[NDArray[np.float64], float]:
    """Residuals (m,) of numbers around the mean that keep the absolute ones small, and their scale.

    By iteratively reweighted least squares (Huber 1964).
    """
    centred, weight = b - spread.mean * A.sum(axis=1), np.ones(b.size)
    residual, scale = centred, spread.sigma
    for _ in range(REWEIGHTED):
        G = (A.T * weight) @ A
        ridge = (scale / spread.sd) ** 2 * np.eye(A.shape[1])
        factor = cho_factor(G + ridge)
        residual = centred - A @ cho_solve(factor, A.T @ (weight * centred))
        # Numbers fitted take a share of the noise with them.
        freedom = max(1 - float(np.trace(cho_solve(factor, G))) / b.size, 0.05)
        scale = 1.4826 * float(np.median(np.abs(residual))) / np.sqrt(freedom)
        scale = max(scale, 1e-12 * float(np.abs(b).max()))
        weight = 1 / np.maximum(np.abs(residual) / (SQUARED * scale), 1.0)
    return residual, scale


def _offset(
    A: NDArray[np.float64], b: NDArray[np.float64], one: NDArray[np.float64], spread: Spread
) -> tuple[float, float]:
    """What all sums are off by and its standard error, the mean of the numbers being unknown too.

    Generalised least squares under the covariance tau^2 AA' + sigma^2 I, by Woodbury.
    """
    X = np.column_stack([A.sum(axis=1), one])
    ridge = (spread.sigma / spread.sd) ** 2
    factor = cho_factor(A.T @ A + ridge * np.eye(A.shape[1]))
    weighed = (X - A @ cho_solve(factor, A.T @ X)) / spread.sigma**2
    covariance = np.linalg.pinv(X.T @ weighed, hermitian=True)
    return float((covariance @ (weighed.T @ b))[1]), float(np.sqrt(max(covariance[1, 1], 0.0)))
