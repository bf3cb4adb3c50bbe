"""The posterior of bits within intervals by going through everything that fits.

People who are in the same queries are told apart by nothing: they form a group, of which only the
number of ones is known, and each of them has a 1 as likely as the others. Groups that no answer
ties together, once all that is proven is put in, are parts of their own. Of each part every
solution is listed and weighed, by how many bits it stands for and by the law of the noise; parts
have in common only the rate of ones, through the number of ones of all. So the probabilities are
those of all solutions, however many these are: nothing is sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import betaln, gammaln

from countleak.attack.noise import Values
from countleak.attack.posterior.evidence import Evidence
from countleak.attack.solvers.intervals import Box, CountIntervals

# Solutions of a part that are listed at most, and rows that are looked at to find them.
MOST, STEPS = 20_000, 50_000_000
# Likelihoods closer than this are the same.
SAME = 1e-9
# Solutions weighed at a time.
AT_A_TIME = 1000


@dataclass(frozen=True, eq=False)
class Enumerated:
    """The ``probability`` (n,) of a one, exact for those in ``people`` (n,); ``rate``, their mean.

    Those in ``people`` are fixed or belong to a part that was listed whole; ``possible`` (n, 2)
    says which bits they have in any solution. ``feasible`` is False where a part has none.
    """

    probability: NDArray[np.float64]
    people: NDArray[np.bool_]
    possible: NDArray[np.bool_]
    rate: float
    feasible: bool

    @property
    def complete(self) -> bool:
        """Whether that is everyone."""
        return bool(self.people.all())


@dataclass(frozen=True, eq=False)
class _Groups:
    """People who are in the same queries: ``of`` (n,) is everyone's group, -1 for the fixed.

    ``rows`` (r, g) are the intervals, ``pieces`` (k, g) the evidence; ``low`` and ``high`` (r,)
    bound what groups add to a row, ``base`` (k,) is what the fixed add to a piece.
    """

    of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    pieces: NDArray[np.int64]
    base: NDArray[np.int64]

    @classmethod
    def of_box(cls, intervals: CountIntervals, evidence: Evidence, box: Box) -> "_Groups":
        """The groups of those whom ``box`` leaves open."""
        pieces = evidence.block(0, evidence.n).astype(np.int8)
        left = ~box.fixed
        columns = np.vstack([intervals.A, pieces])[:, left]
        shapes, member, sizes = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
        of = np.full(left.size, -1)
        of[left] = member.ravel()
        shapes = shapes.astype(np.int64)
        m = len(intervals.A)
        ones = np.where(left, 0, box.lower).astype(np.int64)
        counted = intervals.A.astype(np.int64) @ ones
        return cls(
            of,
            sizes.astype(np.int64),
            shapes[:m],
            intervals.low - counted,
            intervals.high - counted,
            shapes[m:],
            pieces.astype(np.int64) @ ones,
        )


@dataclass(frozen=True, eq=False)
class _Part:
    """Every solution of the groups ``at``: ones per group (k, g), and weights (k,), greatest 1."""

    at: NDArray[np.int64]
    ones: NDArray[np.int64]
    weight: NDArray[np.float64]

    def polynomial(self) -> NDArray[np.float64]:
        """The weight of each number of ones."""
        return np.bincount(self.ones.sum(axis=1), self.weight).astype(np.float64)


def enumerate_bits(
    intervals: CountIntervals,
    evidence: Evidence,
    values: Values,
    box: Box,
    *,
    prior: float | None = None,
    known: NDArray[np.bool_] | None = None,
) -> Enumerated:
    """Probabilities under ``prior``, the rate of ones, integrated over all rates unless given.

    Bits fixed by ``box`` tell of the rate, unless they were ``known`` (n,) beforehand.
    """
    n = intervals.people
    groups = _Groups.of_box(intervals, evidence, box)
    table = evidence.table(values)
    parts: list[_Part] = []
    people = box.fixed.copy()
    for at in _parts(groups, evidence, table):
        part = _listed(groups, evidence, table, at)
        if part is None:
            continue
        parts.append(part)
        people |= np.isin(groups.of, at)
    counted = people if known is None else people & ~known
    fixed_ones = int(box.lower[box.fixed & counted].sum())
    possible = np.stack([box.lower == 0, box.upper == 1], axis=1)
    if any(not len(part.ones) for part in parts):
        return Enumerated(np.zeros(n), people, possible, 0.5, feasible=False)
    log_prior = _log_prior(int(counted.sum()), prior)[fixed_ones:]
    shares, total = _shares(parts, np.exp(log_prior - log_prior.max()))
    probability = box.lower.astype(np.float64)
    for part, share in zip(parts, shares, strict=True):
        for k, group in enumerate(part.at):
            inside = groups.of == group
            probability[inside] = share[k] / groups.sizes[group]
            possible[inside, 0] = (part.ones[:, k] < groups.sizes[group]).any()
            possible[inside, 1] = (part.ones[:, k] > 0).any()
    rate = prior or (1 + fixed_ones + total) / (2 + counted.sum())
    return Enumerated(probability, people, possible, float(rate), feasible=True)


def _parts(
    groups: _Groups, evidence: Evidence, table: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    """The groups that answers tie together, as sets of groups."""
    U, V = groups.rows, groups.pieces
    least, most = (U * groups.sizes).clip(max=0).sum(axis=1), (U * groups.sizes).clip(0).sum(axis=1)
    tight = (groups.low > least) | (groups.high < most)
    # A piece says nothing where no count that can be reached is likelier than another.
    least, most = (V * groups.sizes).clip(max=0).sum(axis=1), (V * groups.sizes).clip(0).sum(axis=1)
    changes = np.concatenate([[0], np.cumsum(np.abs(np.diff(table.ravel())) > SAME)])
    cell = evidence.line * evidence.width + evidence.reach + evidence.said - groups.base
    telling = changes[cell - least] != changes[cell - most]
    ties = np.abs(np.vstack([U[tight], V[telling]]))
    count, label = connected_components(ties.T @ ties > 0, directed=False)
    return [np.flatnonzero(label == k) for k in range(count)]


def _listed(
    groups: _Groups, evidence: Evidence, table: NDArray[np.float64], at: NDArray[np.int64]
) -> _Part | None:
    """Every solution of the groups ``at``; None where there are too many."""
    from countleak.attack.posterior.depth_first import every_fit

    sizes = groups.sizes[at]
    rows = (groups.rows[:, at] != 0).any(axis=1)
    U, low, high = groups.rows[np.ix_(rows, at)], groups.low[rows], groups.high[rows]
    # Rows that are about others as well cannot be broken, or these would be of the same part.
    others = np.delete(groups.rows[rows], at, axis=1)
    alone = ~(others != 0).any(axis=1)
    unique = np.unique(np.column_stack([U, low, high])[alone], axis=0)
    U, low, high = unique[:, :-2], unique[:, -2], unique[:, -1]
    ones = every_fit(np.ascontiguousarray(U), sizes, low, high, MOST, STEPS)
    if ones is None:
        return None
    pieces = (groups.pieces[:, at] != 0).any(axis=1)
    V = groups.pieces[np.ix_(pieces, at)]
    cell = (evidence.line * evidence.width + evidence.reach + evidence.said - groups.base)[pieces]
    log = (gammaln(sizes + 1) - gammaln(ones + 1) - gammaln(sizes - ones + 1)).sum(axis=1)
    flat = table.ravel()
    for begin in range(0, len(ones), AT_A_TIME):
        some = slice(begin, begin + AT_A_TIME)
        log[some] += flat[cell - ones[some] @ V.T].sum(axis=1)
    return _Part(at, ones, np.exp(log - log.max(initial=-np.inf)))


def _log_prior(n: int, prior: float | None) -> NDArray[np.float64]:
    """The log prior of bits with 0 to n ones of n."""
    k = np.arange(n + 1.0)
    if prior is not None:
        return np.asarray(k * np.log(prior) + (n - k) * np.log1p(-prior))
    return np.asarray(betaln(1 + k, 1 + n - k))


def _shares(
    parts: Sequence[_Part], prior: NDArray[np.float64]
) -> tuple[list[NDArray[np.float64]], float]:
    """The mean number of ones (g,) in each part's groups, and in all of them together.

    ``prior`` is that of 0, 1, ... ones in all parts.
    """
    polynomials = [part.polynomial() for part in parts]
    # What the parts from k on say of the number of ones in the parts before.
    after = [prior]
    for polynomial in reversed(polynomials):
        ahead = np.correlate(after[-1], polynomial)
        after.append(ahead / ahead.max())
    after.reverse()
    before, shares, total = np.ones(1), [], 0.0
    for k, (part, polynomial) in enumerate(zip(parts, polynomials, strict=True)):
        outside = np.correlate(after[k + 1][: before.size + polynomial.size - 1], before)
        weight = part.weight * outside[part.ones.sum(axis=1)]
        shares.append(weight @ part.ones / weight.sum())
        total += float(shares[-1].sum())
        before = np.convolve(before, polynomial)
        before /= before.max()
    return shares, total
