"""Digit queries: subsets picked by a digit of a power of the id, which Diffix let through.

    floor(c * pow((id * p), e) + 0.5) = floor(c * pow((id * p), e))

holds where the fractional part of ``c * (id * p)**e`` is below 1/2. Cohen and Nissim (section 2)
name a query by prime p, digit j, exponent e and modulus m; see ``PaperName`` for how that maps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64
from countleak.errors import InputError

CONSTANTS = (5, 10, 50, 100, 500, 1000, 5000, 10000, 50000, 100000)
# 0.5, 0.6, ..., 1.9 without 1.0, as asked of Diffix; the simulations stop at 0.9.
ATTACK_EXPONENTS = tuple(tenths / 10 for tenths in range(5, 20) if tenths != 10)
SWEEP_EXPONENTS = tuple(tenths / 10 for tenths in range(5, 10))


@dataclass(frozen=True)
class PaperName:
    """A digit query in the paper's words: prime ``p``, digit ``j`` of 1-5, exponent ``e``, ``m``.

    m = 5 is c = 10**j (the digit after the j-th is 0-4), m = 2 is c = 5 * 10**(j-1) (the j-th
    digit is even). The paper's wording for m = 5 does not fit its own SQL; the SQL counts.
    """

    p: int
    j: int
    e: float
    m: int

    @property
    def constant(self) -> int:
        """The constant c of the SQL."""
        if self.m not in (2, 5) or not 1 <= self.j <= 5:
            raise InputError(f"{self}: m must be 2 or 5 and j from 1 to 5")
        return int(10**self.j if self.m == 5 else 5 * 10 ** (self.j - 1))

    @classmethod
    def of(cls, prime: int, constant: int, exponent: float) -> "PaperName":
        """The paper's name of the query with these parameters."""
        for j in range(1, 6):
            for m in (2, 5):
                name = cls(prime, j, exponent, m)
                if name.constant == constant:
                    return name
        raise InputError(f"constant {constant} has no name in the paper; it uses {CONSTANTS}")


def digit_queries(
    ids: NDArray[np.int64],
    *,
    primes: int = 25,
    exponents: Sequence[float] = ATTACK_EXPONENTS,
    constants: Sequence[int] = CONSTANTS,
    arithmetic: Arithmetic | None = None,
    column: str = "client_id",
) -> Queries:
    """All digit queries of the first ``primes`` primes, every exponent and every constant."""
    if primes < 1 or not exponents or not constants:
        raise InputError(
            "a digit query needs a prime, an exponent and a constant; ask at least one"
        )
    grid = [(e, p, c) for e in exponents for p in first_primes(primes) for c in constants]
    exponent, prime, constant = (np.array(values) for values in zip(*grid, strict=True))
    return digit_queries_of(ids, prime, constant, exponent, arithmetic=arithmetic, column=column)


def digit_queries_of(
    ids: NDArray[np.int64],
    prime: NDArray[np.int64],
    constant: NDArray[np.int64],
    exponent: NDArray[np.float64],
    *,
    arithmetic: Arithmetic | None = None,
    column: str = "client_id",
) -> Queries:
    """The digit queries with these parameters, each (m,), in this order."""
    arithmetic = arithmetic or Float64()
    _check(ids, prime, constant, exponent)
    matrix = np.empty((prime.size, ids.size), dtype=np.int8)
    pairs, group = np.unique(np.column_stack([prime, exponent]), axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(pairs) + 1))
    for (p, e), start, stop in zip(pairs, starts[:-1], starts[1:], strict=True):
        rows = order[start:stop]
        matrix[rows] = arithmetic.holds(ids * int(p), float(e), constant[rows])
    where = tuple(
        predicate(column, *row)
        for row in zip(prime.tolist(), constant.tolist(), exponent.tolist(), strict=True)
    )
    parameters = {"prime": prime, "constant": constant, "exponent": exponent}
    return Queries(ids, matrix, "digits", parameters, where)


def _check(
    ids: NDArray[np.int64],
    prime: NDArray[np.int64],
    constant: NDArray[np.int64],
    exponent: NDArray[np.float64],
) -> None:
    if ids.size and not 1 <= ids.min() <= ids.max() <= 10**12:
        raise InputError(
            f"ids from {ids.min()} to {ids.max()}: digit queries take powers, so ids must lie "
            "between 1 and 10^12"
        )
    if prime.min() < 1 or constant.min() < 1 or prime.max() > 10**6 or constant.max() > 10**9:
        raise InputError("a digit query's factor or constant is out of range")
    for e in np.unique(exponent).tolist():
        # More decimals than the SQL text shows would mean other people to the server than to us.
        if not 0 < e <= 5 or round(e, 3) != e:
            raise InputError(f"exponent {e:g}: it must lie in (0, 5] and have at most 3 decimals")


def predicate(column: str, prime: int, constant: int, exponent: float) -> str:
    """The query in SQL, to the letter as it was asked of Diffix."""
    left = f"floor({constant} * pow(({column} * {prime}),{exponent:g}) + 0.5)"
    return f"{left} = floor({constant} * pow(({column} * {prime}), {exponent:g}))"


def float64_predicate(column: str, prime: int, constant: int, exponent: float) -> str:
    """The query in SQL with casts that make PostgreSQL compute in doubles, as DuckDB does."""
    power = f"{constant}::float8 * pow(({column} * {prime})::float8, {exponent:g}::float8)"
    return f"floor({power} + 0.5::float8) = floor({power})"


def fragile(queries: Queries) -> NDArray[np.bool_]:
    """Marks (m,) the digit queries that float64 and exact arithmetic decide differently.

    For someone at least: a server and an attacker may then mean different people by them.
    """
    if queries.family != "digits":
        raise InputError(f"{queries.family} queries are not fragile; only digit queries can be")
    by_exact, by_float = (
        digit_queries_of(
            queries.ids,
            queries.parameters["prime"],
            queries.parameters["constant"],
            queries.parameters["exponent"],
            arithmetic=arithmetic,
        ).matrix
        for arithmetic in (Exact(), Float64())
    )
    return np.asarray((by_exact != by_float).any(axis=1))


def first_primes(k: int) -> list[int]:
    """The first k primes."""
    return list(islice(_primes(), k))


def _primes() -> Iterable[int]:
    found: list[int] = []
    for candidate in count(2):
        if all(candidate % p for p in found if p * p <= candidate):
            found.append(candidate)
            yield candidate
