"""How likely each whole solution of a component of (L) is: all are weighed, or chains walk them.

A priori counts are independent and Poisson with rates ``rate`` (n,); what was published leaves

    Pr(x) ~ product of rate_j^x_j / x_j!   over whole x that solve (L).                        (B)

Up to MOST_POINTS solutions are enumerated, which is exact up to rounding. Beyond, chains walk along
moves that leave every exact row as it is: a basis of the whole numbers in the kernel of A, made
short by LLL (Diaconis and Sturmfels, 1998, say which moves are needed; a basis and sums of three of
it may not be all of those). So chains start far apart, and are believed only if they agree.
"""

from dataclasses import dataclass

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from countleak.attack.ledger.component import Component

MOST_POINTS = 100_000
MOST_STEPS = 20_000_000
# Of more cells the kernel takes too long.
MOST_CELLS = 300
CHAINS, DRAWS, BURN = 4, 2000, 500
# Steps per draw and cell; more where fewer did not make the chains agree.
EFFORTS = (1, 8)
# Chains whose split R-hat is above this do not agree (Gelman and others, 2013).
LARGEST_R_HAT = 1.05


@dataclass(frozen=True, eq=False)
class Draws:
    """Solutions of a component: ``points`` (k, n), how much each weighs, and how they were made.

    ``chain`` (k,) says which chain drew each; None where these are all solutions there are.
    """

    points: NDArray[np.int32]
    weight: NDArray[np.float64]
    chain: NDArray[np.int64] | None = None

    @property
    def enumerated(self) -> bool:
        """Whether these are all solutions."""
        return self.chain is None

    def counts(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """How likely it is that the cells add up to 0, 1, 2, ..."""
        sums = self.points[:, cells].sum(axis=1)
        return np.asarray(np.bincount(sums, weights=self.weight), np.float64)

    def agree(self, cells: NDArray[np.int64]) -> bool:
        """Whether all chains say the same of the sum of the cells."""
        if self.chain is None:
            return True
        sums = self.points[:, cells].sum(axis=1).reshape(2 * CHAINS, -1).astype(np.float64)
        return bool(r_hat(sums) <= LARGEST_R_HAT)


def draws_of(part: Component, rate: NDArray[np.float64], rng: np.random.Generator) -> Draws | str:
    """Solutions by (B); or in words why none can be had that one could stand by."""
    if not np.isfinite(part.limits.high).all():
        return "a count has no upper limit"
    points = every_point(part)
    if points is not None:
        from countleak.attack.ledger.lattice_kernels import log_weights

        logs = log_weights(points, np.log(rate))
        weight = np.exp(logs - logs.max())
        return Draws(points, weight / weight.sum())
    if part.ledger.cells > MOST_CELLS:
        return f"{part.ledger.cells} groups hang together, more than {MOST_CELLS}"
    said: Draws | str = "time ran out"
    for effort in EFFORTS:
        if isinstance(said, Draws) or part.clock.left <= 0:
            break
        said = _chains(part, rate, rng, effort)
    return said


def every_point(part: Component, most: int = MOST_POINTS) -> NDArray[np.int32] | None:
    """All solutions of a component (k, n); None where there are too many."""
    # Loaded here: compiled code takes a third of a second to load.
    from countleak.attack.ledger.lattice_kernels import enumerate_points

    order = _nearby(csr_array(part.ledger.A))
    A = csc_array(part.ledger.A[:, order])
    room = np.zeros((most, order.size), np.int32)
    found = enumerate_points(
        A.indptr.astype(np.int64),
        A.indices.astype(np.int64),
        part.ledger.low,
        part.ledger.high,
        part.limits.low[order],
        part.limits.high[order],
        room,
        MOST_STEPS,
    )
    if found < 0:
        return None
    points = np.zeros((found, order.size), np.int32)
    points[:, order] = room[:found]
    return points


def _nearby(A: csr_array) -> NDArray[np.int64]:
    """The cells in an order in which rows are complete soon: those of the smallest rows first."""
    sizes = np.diff(A.indptr)
    order: dict[int, None] = {}
    left = set(range(A.shape[0]))
    members = [set(A.indices[A.indptr[i] : A.indptr[i + 1]].tolist()) for i in left]
    while left:
        row = min(left, key=lambda i: (len(members[i] - order.keys()), sizes[i], i))
        left.discard(row)
        order.update(dict.fromkeys(sorted(members[row])))
    order.update(dict.fromkeys(range(A.shape[1])))
    return np.array(list(order), np.int64)


def kernel_basis(A: NDArray[np.int64]) -> NDArray[np.int64]:
    """Short moves (k, n) that generate all whole d with A d = 0."""
    m, n = A.shape
    if m == 0:
        return np.eye(n, dtype=np.int64)
    # Rows of [A' 1] in Hermite form whose first part is 0 generate the kernel.
    stacked = np.hstack([A.T, np.eye(n, dtype=np.int64)])
    hermite = fmpz_mat(stacked.tolist()).hnf().tolist()
    moves = [[int(v) for v in row[m:]] for row in hermite if not any(row[:m])]
    if not moves:
        return np.zeros((0, n), np.int64)
    return np.array([[int(v) for v in row] for row in fmpz_mat(moves).lll().tolist()], np.int64)


def _chains(
    part: Component, rate: NDArray[np.float64], rng: np.random.Generator, effort: int
) -> Draws | str:
    """Draws of four chains that agree, so many steps per draw and cell; or why there are none."""
    from countleak.attack.ledger.lattice_kernels import walk

    A = part.ledger.A.toarray().astype(np.int64)
    exact = part.ledger.low == part.ledger.high
    basis = kernel_basis(A[exact])
    if not len(basis):
        return "there are no moves between the counts that fit"
    effect = (basis @ A[~exact].T).astype(np.float64)
    n, draws, cost = part.ledger.cells, [], np.zeros(part.ledger.cells)
    for chain in range(CHAINS):
        cost = -cost if chain % 2 else rng.normal(size=n)
        start = part.cheap(cost)
        if start is None:
            return "time ran out"
        x = start.copy()
        sums = A[~exact] @ x
        slack = np.array([sums - part.ledger.low[~exact], part.ledger.high[~exact] - sums])
        steps = (DRAWS + BURN) * max(n, 20) * effort
        chosen = rng.integers(len(basis), size=(steps, 3))
        signs = rng.choice([-1.0, 1.0], size=(steps, 3))
        signs[:, 1:] *= rng.random((steps, 2)) < 1 / 3
        mine = np.zeros((DRAWS + BURN, n), np.int32)
        limits = part.limits
        walk(basis.astype(np.float64), effect, slack, x, limits.low, limits.high, np.log(rate),
             chosen, signs, rng.random(steps), mine)  # fmt: skip
        draws.append(mine[BURN:])
    points = np.concatenate(draws)
    split = points.reshape(2 * CHAINS, -1, n).astype(np.float64)
    worst = max(r_hat(split[:, :, j]) for j in range(n))
    if not worst <= LARGEST_R_HAT:
        return f"chains that start far apart do not agree (R-hat {worst:.3g})"
    return Draws(points, np.full(len(points), 1 / len(points)), np.repeat(range(CHAINS), DRAWS))


def r_hat(chains: NDArray[np.float64]) -> float:
    """The split R-hat of a quantity that halves of chains drew (2 c, k): 1 where they agree."""
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((chains.shape[1] - 1) / chains.shape[1] + between / within))
