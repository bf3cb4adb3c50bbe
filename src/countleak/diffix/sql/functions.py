"""The functions a question may use, what each takes and gives, and how we write it in SQL.

They are written so that no row can raise an error: an error would answer a question about that
row without any noise. Numbers are computed in doubles, by casts, so that every database agrees.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from countleak.diffix.sql.statement import Kind

# A result that could pass this has its operands cut off at LARGE; its fourth power is no more.
SAFE, LARGE = 1e300, 1e60
ZERO = "CAST(0 AS DOUBLE PRECISION)"
HALF = "CAST(0.5 AS DOUBLE PRECISION)"
MOST_EXPONENT = 4
# Constants between these, or 0, keep products and quotients of doubles inside their range.
SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-15, 1e15


@dataclass(frozen=True)
class Function:
    """``takes`` kinds of arguments, of which those in ``fixed`` must be constants; ``gives``.

    ``size`` is the largest magnitude of the result, given those of the arguments.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    write: Callable[..., str]
    fixed: tuple[int, ...] = ()
    simple_text: bool = False
    size: Callable[..., float] = lambda value: value + 1


def cut_off(operand: str) -> str:
    """A number in SQL, no further from 0 than LARGE."""
    large = f"CAST({LARGE:g} AS DOUBLE PRECISION)"
    return f"least(greatest({operand}, -{large}), {large})"


def _power(base: str, exponent: str) -> str:
    # A negative base has no power but a whole one, and the exponent need not be whole.
    return f"power(greatest({base}, {ZERO}), {exponent})"


def _power_size(base: float, exponent: float) -> float:
    return math.inf if base > LARGE else max(base, 1.0) ** exponent


def _quotient_size(numerator: float, divisor: float) -> float:
    return numerator / divisor


def _by_size(value: float, width: float) -> float:
    # The quotient must stay a double too.
    return max(value + width, value / width)


N, T = Kind.NUMBER, Kind.TEXT

FUNCTIONS: dict[str, Function] = {
    "+": Function((N, N), N, lambda a, b: f"({a} + {b})", size=lambda a, b: a + b),
    "-": Function((N, N), N, lambda a, b: f"({a} - {b})", size=lambda a, b: a + b),
    "*": Function((N, N), N, lambda a, b: f"({a} * {b})", size=lambda a, b: a * b),
    "/": Function((N, N), N, lambda a, b: f"({a} / {b})", (1,), size=_quotient_size),
    "pow": Function((N, N), N, _power, (1,), size=_power_size),
    "sqrt": Function((N,), N, lambda a: f"sqrt(greatest({a}, {ZERO}))"),
    "abs": Function((N,), N, lambda a: f"abs({a})"),
    "floor": Function((N,), N, lambda a: f"floor({a})"),
    "ceil": Function((N,), N, lambda a: f"ceil({a})"),
    # Databases disagree about halves; this rounds them up.
    "round": Function((N,), N, lambda a: f"floor({a} + {HALF})"),
    "trunc": Function((N,), N, lambda a: f"trunc({a})"),
    "length": Function((T,), N, lambda a: f"CAST(length({a}) AS DOUBLE PRECISION)"),
    "lower": Function((T,), T, lambda a: f"lower({a})", simple_text=True),
    "upper": Function((T,), T, lambda a: f"upper({a})", simple_text=True),
    "trim": Function((T,), T, lambda a: f"trim({a})", simple_text=True),
    "ltrim": Function((T,), T, lambda a: f"ltrim({a})", simple_text=True),
    "rtrim": Function((T,), T, lambda a: f"rtrim({a})", simple_text=True),
    "left": Function(
        (T, N), T, lambda a, k: f"left({a}, CAST({k} AS INTEGER))", (1,), simple_text=True
    ),
    "right": Function(
        (T, N), T, lambda a, k: f"right({a}, CAST({k} AS INTEGER))", (1,), simple_text=True
    ),
    "substring": Function(
        (T, N, N),
        T,
        lambda a, i, k: f"substring({a}, CAST({i} AS INTEGER), CAST({k} AS INTEGER))",
        (1, 2),
        simple_text=True,
    ),
    # The generalisations of the successor, which takes no others.
    "floor_by": Function((N, N), N, lambda a, w: f"(floor({a} / {w}) * {w})", (1,), size=_by_size),
    "round_by": Function(
        (N, N), N, lambda a, w: f"(floor({a} / {w} + {HALF}) * {w})", (1,), size=_by_size
    ),
}
