"""Digit queries: subsets picked by a digit of a power of the id, which Diffix let through.

    floor(c * pow((id * p), e) + 0.5) = floor(c * pow((id * p), e))

holds where the fractional part of ``c * (id * p)**e`` is below 1/2. Cohen and Nissim (section 2)
name a query by prime p, digit j, exponent e and modulus m: m = 5 is c = 10**j (the digit after
the j-th is 0-4), m = 2 is c = 5 * 10**(j-1) (the j-th digit is even). The paper's wording for
m = 5 does not fit its own SQL; the SQL counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.arithmetic import Arithmetic, Exact, Float64
from countleak.attack.queries.ids import are_integers
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

CONSTANTS = (5, 10, 50, 100, 500, 1000, 5000, 10000, 50000, 100000)
# 0.5, 0.6, ..., 1.9 without 1.0, as asked of Diffix; the simulations stop at 0.9.
ATTACK_EXPONENTS = tuple(tenths / 10 for tenths in range(5, 20) if tenths != 10)
SWEEP_EXPONENTS = tuple(tenths / 10 for tenths in range(5, 10))
MOST_PRIMES = 10_000
# Powers of larger ids lose the digits that the queries are about.
LARGEST_ID = 10**12


@dataclass(frozen=True)
class Digits:
    """A digit of a power of the id, as it was asked of Diffix."""

    name: str = "digits"
    needs: tuple[str, ...] = ("prime", "constant", "exponent")
    texts: tuple[str, ...] = ()
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        if len(key) > 1:
            raise InputError("digit queries take powers of one id column; ask subsets instead")
        prime, constant, exponent = (
            exp.convert(queries.parameters[name][position].item()) for name in self.needs
        )
        product = exp.Paren(this=exp.Mul(this=column(key[0]), expression=prime))
        power = exp.Mul(this=constant, expression=exp.Pow(this=product, expression=exponent))
        half = exp.Add(this=power, expression=exp.convert(0.5))
        return exp.EQ(this=exp.Floor(this=half), expression=exp.Floor(this=power.copy()))


def digit_queries(
    ids: NDArray[Any],
    *,
    primes: int = 25,
    exponents: Sequence[float] = ATTACK_EXPONENTS,
    constants: Sequence[int] = CONSTANTS,
    arithmetic: Arithmetic | None = None,
) -> Queries:
    """All digit queries of the first ``primes`` primes, every exponent and every constant."""
    if primes < 1 or not exponents or not constants:
        raise InputError(
            "a digit query needs a prime, an exponent and a constant; ask at least one"
        )
    if primes > MOST_PRIMES:
        raise InputError(f"{primes} primes; ask at most {MOST_PRIMES}")
    grid = [(e, p, c) for e in exponents for p in first_primes(primes) for c in constants]
    exponent, prime, constant = (np.array(values) for values in zip(*grid, strict=True))
    return digit_queries_of(ids, prime, constant, exponent, arithmetic=arithmetic)


def digit_queries_of(
    ids: NDArray[Any],
    prime: NDArray[np.int64],
    constant: NDArray[np.int64],
    exponent: NDArray[np.float64],
    *,
    arithmetic: Arithmetic | None = None,
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
    parameters = {"prime": prime, "constant": constant, "exponent": exponent}
    return Queries(ids, matrix, Digits(), parameters)


def fits_digits(ids: NDArray[Any]) -> bool:
    """Whether digit queries can be asked about people with such ids."""
    return are_integers(ids) and bool(1 <= ids.min() <= ids.max() <= LARGEST_ID)


def _check(
    ids: NDArray[Any],
    prime: NDArray[np.int64],
    constant: NDArray[np.int64],
    exponent: NDArray[np.float64],
) -> None:
    if not are_integers(ids):
        raise InputError(
            "digit queries take powers of whole-number ids, and these are not; ask subsets instead"
        )
    if ids.size and not fits_digits(ids):
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


def fragile(queries: Queries) -> NDArray[np.bool_]:
    """Marks (m,) the digit queries that float64 and exact arithmetic decide differently.

    For someone at least: a server and an attacker may then mean different people by them.
    """
    if not isinstance(queries.family, Digits):
        raise InputError(f"{queries.family.name} queries are not fragile; only digits can be")
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
        if all(candidate % p for p in takewhile(lambda p: p * p <= candidate, found)):  # noqa: B023
            found.append(candidate)
            yield candidate
