"""What noise the answers have in common, read off them: no truth is needed.

Questions asked again that got the same answer again say nothing new, and one of them is kept. For
the rest, what unconstrained least squares leaves over of the noise, (I - H) e, has the covariance
(I - H) C (I - H) whatever the secrets are: each kernel of ``covariance`` is judged by how much
likelier it makes that (restricted maximum likelihood). Errors per person look like secrets and
leave nothing over; the sampler finds them by the secrets being whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orth, qr, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import chdtrc

from countleak.attack.covariance import (
    LEAST_OWN,
    InTurn,
    Kernel,
    Overlap,
    SameParameter,
    SamePeople,
    Shared,
    correlation,
    row_labels,
    value_labels,
    whiten,
)
from countleak.attack.queries import Queries
from countleak.attack.transcript import Transcript

# Questions asked again are sticky where more than this share of them got the same answer.
STICKY = 0.9
# Chance alone would find a kernel in so many systems of independent noise.
CHANCE = 1e-3
# A kernel whose quadratic form is not this many SDs above its mean needs no closer look.
SCREEN = 2.5
# ... and of those that do, so many get one: a closer look takes eigenvectors.
CLOSER = 3
# More kinds of common noise than this are not told apart.
MOST_KERNELS = 3
# Covariances are estimated from so many answers at most: the work grows with the cube.
MOST_ANSWERS = 1200
# Of more answers than this the covariance is not written down.
MOST_WHITENED = 6000
# With fewer residuals left over there is nothing to see.
LEAST_LEFT = 40
# Residuals are clipped at so many scales, lest a few gross errors decide.
CLIP = 5.0
POWERS = (4, 16, 64)
LENGTHS = (2.0, 10.0, 50.0)


@dataclass(frozen=True)
class Repeats:
    """Questions asked again: how many, and whether they got the same answer.

    ``sticky`` is None where no question was asked twice.
    """

    again: int
    sticky: bool | None


def distinct(transcript: Transcript, sticky: bool | None = None) -> Transcript:
    """The answers, less those that repeat one to the same question, where the system repeats them.

    Questions are the same if asked in the same words, or else about the same people. Whether noise
    is ``sticky`` is read off the answers unless stated: of a question asked again in the same words
    the first answer is kept then, or all are.
    """
    if sticky is False:
        return transcript
    if sticky:
        _, first = np.unique(_questions(transcript, in_words=True), return_index=True)
        transcript = transcript.where(np.isin(np.arange(len(transcript)), first))
    for in_words in (True, False):
        labels = _questions(transcript, in_words)
        if _stickiness(transcript, labels).sticky:
            answered = [
                (label, repr(value))
                for label, value in zip(labels.tolist(), transcript.values.tolist(), strict=True)
            ]
            kept: dict[tuple[int, str], int] = {}
            for row, key in enumerate(answered):
                kept.setdefault(key, row)
            transcript = transcript.take(np.array(sorted(kept.values()), dtype=np.int64))
    return transcript


def repeats(transcript: Transcript) -> Repeats:
    """What became of questions asked again in the same words."""
    return _stickiness(transcript, _questions(transcript, in_words=True))


def _questions(transcript: Transcript, in_words: bool) -> NDArray[np.int64]:
    """A number (m,) for each question; two of the same people may differ in their words."""
    queries = transcript.queries
    columns = [row_labels(queries.matrix), transcript.about]
    if in_words:
        columns += [value_labels(values) for values in queries.parameters.values()]
    return row_labels(np.stack(columns, axis=1))


def _stickiness(transcript: Transcript, labels: NDArray[np.int64]) -> Repeats:
    answers: dict[int, list[str]] = {}
    for label, value in zip(labels.tolist(), transcript.values.tolist(), strict=True):
        answers.setdefault(label, []).append(repr(value))
    asked_again = [values for values in answers.values() if len(values) > 1]
    if not asked_again:
        return Repeats(0, None)
    same = sum(len(set(values)) == 1 for values in asked_again)
    again = sum(len(values) - 1 for values in asked_again)
    return Repeats(again, same > STICKY * len(asked_again))


def find_shared(
    parts: Sequence[tuple[Queries, NDArray[np.float64]]],
) -> tuple[Shared, ...]:
    """The noise that answers have in common, largest discovery first.

    Each part is queries, and what a fit left over of their answers (m,), in people; answers of one
    part have none in common with those of another.
    """
    parts = [part for part in map(_leading, parts) if part is not None]
    if not parts:
        return ()
    candidates = list(_candidates([queries for queries, _ in parts]))
    limit = CHANCE / max(1, len(candidates))
    shared: tuple[Shared, ...] = ()
    while len(shared) < MOST_KERNELS:
        views = [_View.of(queries, residual, shared) for queries, residual in parts]
        forms = [(kernel, [view.of_kernel(kernel) for view in views]) for kernel in candidates]
        excess = sorted(((_excess(form), at) for at, (_, form) in enumerate(forms)), reverse=True)
        closer = [forms[at] for size, at in excess[:CLOSER] if size > SCREEN]
        finds = [(*_share(form), kernel) for kernel, form in closer]
        if not finds:
            break
        gain, share, kernel = max(finds, key=lambda find: find[0])
        # A share cannot be negative, so half of the chance lies at none.
        if 0.5 * chdtrc(1, max(2 * gain, 0.0)) > limit or share < LEAST_OWN:
            break
        others = tuple(Shared(s.kernel, s.share * (1 - share)) for s in shared)
        shared = (*others, Shared(kernel, share))
        candidates.remove(kernel)
    return shared


def innovations(
    queries: Queries, residual: NDArray[np.float64], shared: Sequence[Shared]
) -> NDArray[np.float64]:
    """What is new in each residual (m,) given those before it, less what secrets could explain.

    Where much of the noise is shared, a few wrong secrets would leave more over than the noise.
    """
    if not shared or residual.size > MOST_WHITENED:
        return residual
    A, new = whiten(queries, queries.matrix, residual, shared)
    Q = orth(A)
    # An answer that decides the fit leaves less over.
    rest = np.maximum(1 - (Q**2).sum(axis=1), 1e-3)
    return np.asarray((new - Q @ (Q.T @ new)) / np.sqrt(rest))


def _leading(
    part: tuple[Queries, NDArray[np.float64]],
) -> tuple[Queries, NDArray[np.float64]] | None:
    """The first answers of a part, their residuals clipped; None where too few are left over."""
    queries, residual = part
    n = queries.ids.size
    most = min(residual.size, max(MOST_ANSWERS, min(2 * n, 2 * MOST_ANSWERS)))
    if most - n - 1 < LEAST_LEFT:
        return None
    centred = residual[:most] - np.median(residual[:most])
    scale = 1.4826 * float(np.median(np.abs(centred)))
    if scale <= 0:
        return None
    clipped = np.clip(centred / scale, -CLIP, CLIP)
    return (queries.take(np.arange(most)) if most < len(queries) else queries), clipped


def _candidates(parts: Sequence[Queries]) -> Iterator[Kernel]:
    """The kernels that may be told from noise that no two answers share."""
    if any(np.unique(row_labels(part.matrix)).size < len(part) for part in parts):
        yield SamePeople()
    yield from map(Overlap, POWERS)
    yield from map(InTurn, LENGTHS)
    # Of a parameter with a value for each query there is nothing in common.
    names = [
        name
        for name in parts[0].parameters
        if all(
            2 <= 1 + value_labels(part.parameters[name]).max() <= 0.75 * len(part) for part in parts
        )
    ]
    yield from (SameParameter((name,)) for name in names)
    # Conjunctions hold conditions of one kind in several parameters.
    for k, name in enumerate(names):
        values = parts[0].parameters[name]
        alike = [
            other for other in names[k + 1 :] if _mostly_among(parts[0].parameters[other], values)
        ]
        if alike:
            yield SameParameter((name, *alike))


def _distinct_values(queries: Queries, name: str) -> int:
    return 1 + int(value_labels(queries.parameters[name]).max())


def _mostly_among(values: NDArray[Any], others: NDArray[Any]) -> bool:
    """Whether most of the values occur among the others."""
    own = set(values.tolist())
    return 2 * len(own & set(others.tolist())) > len(own)


@dataclass(frozen=True, eq=False)
class _View:
    """Residuals of unit variance under what is known: ``left`` (m,), less all that secrets explain.

    ``explained`` (m, r) is an orthonormal basis of that, ``L`` the Cholesky factor of the noise
    known to be shared, None where none is.
    """

    queries: Queries
    left: NDArray[np.float64]
    explained: NDArray[np.float64]
    L: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, queries: Queries, residual: NDArray[np.float64], shared: Sequence[Shared]
    ) -> "_View":
        columns = np.column_stack([queries.matrix, np.ones(len(queries))])
        L: NDArray[np.float64] | None = None
        if shared:
            L = np.asarray(np.linalg.cholesky(correlation(shared, queries)), dtype=np.float64)
            columns = solve_triangular(L, columns, lower=True)
            residual = solve_triangular(L, residual, lower=True)
        U = orth(columns)
        return cls(queries, residual - U @ (U.T @ residual), U, L)

    @property
    def freedom(self) -> int:
        """How many dimensions are left over."""
        return int(self.left.size - self.explained.shape[1])

    @cached_property
    def basis(self) -> NDArray[np.float64]:
        """An orthonormal basis (m, d) of what is left over."""
        return np.asarray(qr(self.explained)[0][:, self.explained.shape[1] :])

    def of_kernel(self, kernel: Kernel) -> "_Form":
        """What a kernel predicts of the residuals."""
        K = kernel.matrix(self.queries)
        if self.L is not None:
            half = solve_triangular(self.L, K, lower=True)
            K = solve_triangular(self.L, half.T, lower=True)
        return _Form(self, K)


@dataclass(frozen=True, eq=False)
class _Form:
    """The covariance (m, m) that a kernel predicts of the residuals of a view."""

    view: _View
    covariance: NDArray[np.float64]

    def moments(self) -> tuple[float, float, float]:
        """left'K left, and the trace of PK and of (PK)^2, P the projection on what is left over."""
        K, U = self.covariance, self.view.explained
        KU = K @ U
        trace = float(np.trace(K)) - float((U * KU).sum())
        inside = U.T @ KU
        spread = float((K**2).sum()) - 2 * float((KU**2).sum()) + float((inside**2).sum())
        return float(self.view.left @ K @ self.view.left), trace, spread

    def spectrum(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The variances (d,) predicted along principal directions, and the squares met there."""
        basis = self.view.basis
        values, vectors = np.linalg.eigh(basis.T @ self.covariance @ basis)
        return np.maximum(values, 0.0), (self.view.left @ basis @ vectors) ** 2


def _excess(forms: Sequence[_Form]) -> float:
    """How far residuals go together as the kernel says, in SDs under independence (score test)."""
    freedom = sum(form.view.freedom for form in forms)
    variance = sum(float(form.view.left @ form.view.left) for form in forms) / freedom
    square, trace, spread = np.sum([form.moments() for form in forms], axis=0)
    deviation = variance * np.sqrt(2 * max(spread - trace**2 / freedom, 1e-12))
    return float((square - variance * trace) / deviation)


def _share(forms: Sequence[_Form]) -> tuple[float, float]:
    """What the likeliest share of a kernel adds to the log-likelihood, and that share."""
    spectra = [form.spectrum() for form in forms]
    ahead, square = (np.concatenate(parts) for parts in zip(*spectra, strict=True))

    def misfit(share: float) -> float:
        variance = 1 - share + share * ahead
        return float(0.5 * np.log(variance).sum()) + 0.5 * square.size * float(
            np.log((square / variance).mean())
        )

    best = minimize_scalar(misfit, bounds=(0.0, 0.999), method="bounded")
    return misfit(0.0) - float(best.fun), float(best.x)
