"""How the noise of one answer goes with that of another: the covariance of m answers.

    C = sigma^2 R + tau^2 A A'        R = (1 - sum of shares) I + sum of share_k K_k

Every K_k is a kernel, a correlation matrix that depends on the queries alone: 1 for answers that
have all of that noise in common, 0 for those that have nothing of it in common. ``tau`` is the SD
of a fixed error per person, which enters every count the person is in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from countleak.attack.queries import Queries
from countleak.shares import percent

# Noise has this share at least that no other answer has: a covariance that is all but singular
# would make differences between answers exact.
LEAST_OWN = 0.005


class Kernel(Protocol):
    """What makes two answers have noise in common."""

    @property
    def words(self) -> str:
        """Which answers have it in common, in words."""
        ...

    def matrix(self, queries: Queries) -> NDArray[np.float64]:
        """How much of it (m, m) two answers have in common, from 0 to 1."""
        ...


@dataclass(frozen=True)
class SamePeople:
    """Answers about the same people."""

    @property
    def words(self) -> str:
        return "answers about the same people"

    def matrix(self, queries: Queries) -> NDArray[np.float64]:
        return _alike(row_labels(queries.matrix))


@dataclass(frozen=True)
class Overlap:
    """Answers about nearly the same people: the cosine of their rows, to a ``power``.

    Half of two random halves overlap, and the power makes that next to nothing. A product of
    covariances is one (Schur), so any power is.
    """

    power: int

    @property
    def words(self) -> str:
        return "answers about nearly the same people"

    def matrix(self, queries: Queries) -> NDArray[np.float64]:
        rows = queries.matrix.astype(np.float64)
        length = np.sqrt((rows**2).sum(axis=1))
        rows /= np.where(length > 0, length, 1.0)[:, None]
        cosine = np.clip(rows @ rows.T, -1.0, 1.0)
        np.fill_diagonal(cosine, 1.0)
        return np.asarray(cosine**self.power)


@dataclass(frozen=True)
class SameParameter:
    """Answers to queries with a value of one of ``parameters`` in common.

    A condition has noise of its own, whichever of the parameters holds it.
    """

    parameters: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"answers alike in {' or '.join(self.parameters)}"

    def matrix(self, queries: Queries) -> NDArray[np.float64]:
        values = np.concatenate([queries.parameters[name] for name in self.parameters])
        labels = value_labels(values).reshape(len(self.parameters), -1)
        held = np.zeros((len(queries), int(labels.max()) + 1))
        for label in labels:
            held[np.arange(len(queries)), label] += 1
        held /= np.sqrt((held**2).sum(axis=1))[:, None]
        return np.asarray(held @ held.T, dtype=np.float64)


@dataclass(frozen=True)
class InTurn:
    """Answers given one after the other: what they have in common fades over ``length`` of them."""

    length: float

    @property
    def words(self) -> str:
        return f"answers within about {self.length:g} of each other in time"

    def matrix(self, queries: Queries) -> NDArray[np.float64]:
        place = np.arange(len(queries), dtype=np.float64)
        return np.asarray(np.exp(-np.abs(place[:, None] - place) / self.length))


@dataclass(frozen=True)
class Shared:
    """A ``share`` of the variance that answers have in common as ``kernel`` says."""

    kernel: Kernel
    share: float

    def __str__(self) -> str:
        return f"{percent(self.share, 0)} of the variance is shared by {self.kernel.words}"


def correlation(shared: Sequence[Shared], queries: Queries) -> NDArray[np.float64]:
    """The correlation R (m, m) of the noise of all answers, errors per person apart."""
    total = sum(part.share for part in shared)
    squeeze = min(1.0, (1 - LEAST_OWN) / total) if total else 1.0
    R = np.eye(len(queries)) * (1 - squeeze * total)
    for part in shared:
        R += squeeze * part.share * part.kernel.matrix(queries)
    return R


def whiten(
    queries: Queries,
    A: NDArray[Any],
    b: NDArray[np.float64],
    shared: Sequence[Shared],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows A (m, n) and answers b (m,) with L^-1 applied, R = LL': noise is independent then."""
    L = np.linalg.cholesky(correlation(shared, queries))
    return solve_triangular(L, A.astype(np.float64), lower=True), solve_triangular(L, b, lower=True)


def effective_share(
    queries: Queries, shared: Sequence[Shared], sigma: float, per_person: float
) -> float:
    """How much answers say next to as many with noise of their own: the inverse design effect.

    The mean over people of the variance that least squares claims, over the one it has (sandwich).
    """
    A = queries.matrix.astype(np.float64)
    inverse = np.linalg.pinv(A.T @ A, hermitian=True)
    claimed = sigma**2 * np.diag(inverse)
    actual = claimed + per_person**2
    if shared:
        estimator = A @ inverse
        R = correlation(shared, queries)
        actual = sigma**2 * np.einsum("ij,ij->j", estimator, R @ estimator) + per_person**2
    # Nobody is known better than by answers of their own noise, whatever cancels by chance.
    ratio = np.divide(claimed, actual, out=np.ones_like(claimed), where=actual > 0)
    return float(np.minimum(ratio, 1.0).mean())


def value_labels(values: NDArray[Any]) -> NDArray[np.int64]:
    """A number (m,) for each value, 0, 1, ..., equal where values are."""
    # Values of several types have no order.
    ordered = np.array([repr(v) for v in values.tolist()]) if values.dtype == object else values
    return np.asarray(np.unique(ordered, return_inverse=True)[1].ravel(), dtype=np.int64)


def row_labels(matrix: NDArray[Any]) -> NDArray[np.int64]:
    """A number (m,) for each row, 0, 1, ..., equal where rows are."""
    packed = np.packbits(matrix != 0, axis=1) if np.isin(matrix, (0, 1)).all() else matrix
    rows = np.ascontiguousarray(packed)
    # As one text of bytes each they are compared at once, and not column by column.
    texts = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.asarray(np.unique(texts, return_inverse=True)[1].ravel(), dtype=np.int64)


def _alike(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(labels[:, None] == labels, dtype=np.float64)
