"""Groups of queries whose noise differs: by a parameter, their size or the value asked about."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from countleak.attack.covariance import SameParameter, Shared
from countleak.attack.transcript import Transcript

# A group of queries is odd when its noise is this much larger than the typical group's ...
ODD = 1.25
# ... and chance alone would make it so less often than this.
ODDS = 1e-3
# What tells queries apart besides their parameters: the value of the secret they are about, and
# how many people, in so many groups from the smallest sets to the largest.
VALUE, SIZE, SIZES = "value", "size", 6
# Of noise that so few answers have for themselves nothing is known.
LEAST_ANSWERED = 30


@dataclass(frozen=True)
class Group:
    """Queries that share a value of a parameter: their noise, and whether it is odd."""

    value: float
    answers: int
    sigma: float
    odd: bool


def unequal_groups(
    transcript: Transcript, residual: NDArray[np.float64], shared: tuple[Shared, ...]
) -> tuple[str | None, tuple[Group, ...]]:
    """The parameter by whose values the noise differs most, if by more than chance.

    Queries alike in a parameter that have noise in common have one noise each, not a size of it.
    """
    kernels = [part.kernel for part in shared]
    common = {name for k in kernels if isinstance(k, SameParameter) for name in k.parameters}
    tame = np.clip(residual, -4 * residual.std(), 4 * residual.std())
    parameters = {SIZE: group_labels(transcript, SIZE), **transcript.queries.parameters}
    if transcript.names:
        parameters[VALUE] = group_labels(transcript, VALUE)
    # Residuals come value by value.
    order = np.argsort(transcript.about[transcript.released], kind="stable")
    labels = {
        name: values[transcript.released][order]
        for name, values in parameters.items()
        if values.dtype.kind in "iuf" and name not in common
    }
    most = max(2, min(60, tame.size // 15))
    labels = {name: at for name, at in labels.items() if 2 <= np.unique(at).size <= most}
    best, limit = None, ODDS / max(1, len(labels))
    for name, at in labels.items():
        p = _unequal(tame, at)
        if p < limit:
            best, limit = name, p
    return (None, ()) if best is None else (best, tuple(_noise_of_groups(tame, labels[best])))


def group_labels(transcript: Transcript, by: str) -> NDArray[np.int64]:
    """The group (m,) of each query, told apart by a parameter, by its value or by its size."""
    if by == SIZE and by not in transcript.queries.parameters:
        sizes = transcript.queries.sizes
        limits = np.unique(np.quantile(sizes, np.arange(1, SIZES) / SIZES))
        return np.unique(np.searchsorted(limits, sizes), return_inverse=True)[1]
    if by == VALUE and transcript.names:
        answered = np.bincount(transcript.about[transcript.released], minlength=transcript.blocks)
        # Values that are hardly ever answered share one noise.
        group = np.where(answered < LEAST_ANSWERED, transcript.blocks, np.arange(answered.size))
        return np.unique(group[transcript.about], return_inverse=True)[1]
    return transcript.queries.groups_by(by)


def _unequal(residual: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    """The chance of such unequal variances among groups of equal noise (likelihood ratio)."""
    parts = [residual[labels == value] for value in np.unique(labels)]
    common = max((residual**2).mean(), 1e-9)
    ratio = sum(part.size * np.log(common / max((part**2).mean(), 1e-9)) for part in parts)
    return float(chdtrc(len(parts) - 1, max(ratio, 0.0)))


def _noise_of_groups(residual: NDArray[np.float64], labels: NDArray[np.float64]) -> Iterator[Group]:
    values = np.unique(labels)
    variance = np.array([(residual[labels == value] ** 2).mean() for value in values])
    usual = float(np.median(variance))
    for value, own in zip(values.tolist(), variance, strict=True):
        size = int((labels == value).sum())
        chance = fdtrc(size, max(residual.size - size, 1), own / usual)
        odd = bool(np.sqrt(own / usual) > ODD and chance < ODDS)
        yield Group(value, size, float(np.sqrt(own)), odd)
