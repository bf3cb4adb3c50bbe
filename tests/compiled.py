"""Compiles what Numba compiles, before tests that run side by side would each wait for it.

It needs nothing but what the package itself needs: `python -m tests.compiled`.
"""

from time import monotonic

import numpy as np
from scipy.sparse import csr_array

import countleak as cl
from countleak.attack.ledger import Ledger, Limits
from countleak.attack.ledger.bounds import Bounder
from countleak.attack.ledger.component import Clock, Component
from countleak.attack.ledger.posterior import draws_of
from countleak.attack.ledger.row_space import RowSpace
from countleak.attack.posterior.sphere import search
from countleak.attack.programs import Objective, Problem
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.rows import Packed
from countleak.attack.solvers.interior import InteriorPoint


def compile_all() -> None:
    """Run everything that is compiled once, on little."""
    rng = np.random.default_rng(0)
    _compile_solver(rng)
    _compile_sampler(rng)
    _compile_products(rng)
    _compile_ledger(rng)


def _compile_solver(rng: np.random.Generator) -> None:
    A = rng.integers(0, 2, (160, 12)).astype(np.int8)
    b = A @ rng.integers(0, 2, 12) + rng.normal(0, 1.0, 160)
    solver = InteriorPoint()
    solver.solve(Problem(A, b, Objective.L1))
    solver.solve(Problem(A, b, Objective.L1, 5.0))
    solver.solve(Problem(A, b, Objective.NONE, 5.0))


def _compile_sampler(rng: np.random.Generator) -> None:
    bank = cl.generated_bank(seed=7).between(2000, 2200)
    queries = cl.random_subsets(bank.ids, 60, rng)
    for secret in (cl.Bit("status = 'C'"), cl.Category("status", ("A", "B", "C", "D"))):
        cl.reconstruct(queries, cl.Simulated(bank, secret, cl.Gaussian(1.0)), secret=secret)
    search(rng.integers(0, 2, (25, 9)).astype(float), rng.normal(9, 3, 25), np.zeros(9), 100)


def _compile_products(rng: np.random.Generator) -> None:
    matrix = rng.integers(0, 2, (128, 64), dtype=np.int8)
    for rows in (Packed.of([matrix], 128, 64), HashedRows(5, np.arange(128), np.arange(64))):
        rows.tdot(rows.dot(np.ones(64)))


def _compile_ledger(rng: np.random.Generator) -> None:
    rows = np.packbits(rng.integers(0, 2, (40, 64), np.uint8), axis=1, bitorder="little")
    RowSpace(rows.view(np.uint64), 64).pinned(np.ones(64, np.int64), 1)
    # Nine counts in a square that sum to 6 along every row and column.
    cells = np.arange(9).reshape(3, 3)
    lines = np.array([np.isin(np.arange(9), line) for line in (*cells, *cells.T)]).astype(float)
    ledger = Ledger(csr_array(lines), np.full(6, 6.0), np.full(6, 6.0))
    Bounder(ledger).interval(np.array([0]))
    limits = Limits(np.zeros(9), np.full(9, 6.0))
    draws_of(Component(ledger, limits, Clock(monotonic() + 60)), np.ones(9), rng)


if __name__ == "__main__":
    compile_all()
