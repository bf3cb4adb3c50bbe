"""How large and how small the numbers of an expression can be, known before a row is read.

Databases raise errors at overflow and at underflow, and an error that a row causes answers a
question about that row without any noise. So the numbers of columns are read within bounds, and an
expression whose values could still leave the doubles is refused, whatever the rows hold.

Magnitudes are decimal logarithms: that of the least value other than 0, and that of the largest.
"""

import math
from dataclasses import dataclass

from countleak.errors import Refused

# A column's numbers beyond LARGEST are read as LARGEST, those within SMALLEST of 0 as 0; single
# precision holds both.
SMALLEST, LARGEST = 1e-30, 1e30
# The doubles reach from 1e-308 to 1e308; the rest is room for what a function computes on its way.
LEAST, MOST = -290.0, 290.0
# A difference of doubles is no smaller than the last bit of the smaller one.
LAST_BIT = math.log10(2.0**-53)
DOUBLED = math.log10(2.0)


@dataclass(frozen=True)
class Magnitude:
    """The logarithms of the ``least`` value other than 0 and of the ``most``."""

    least: float
    most: float

    @property
    def checked(self) -> "Magnitude":
        """The magnitude, where doubles can hold it."""
        if self.most > MOST or self.least < LEAST:
            raise Refused(
                "The values of an expression could become too large or too small to compute; use "
                "fewer products and smaller exponents."
            )
        return self


OF_WHOLE = Magnitude(0.0, 63 * DOUBLED)
OF_NUMBER = Magnitude(math.log10(SMALLEST), math.log10(LARGEST))
OF_LENGTH = Magnitude(0.0, 6.0)
OF_DAYS = Magnitude(0.0, 8.0)


def of_constant(value: float) -> Magnitude:
    """The magnitude of a constant; that of 0 is below all."""
    log = math.log10(abs(value)) if value else -math.inf
    return Magnitude(0.0 if not value else log, log)


def added(one: Magnitude, other: Magnitude) -> Magnitude:
    """The magnitude of a sum or a difference."""
    return Magnitude(min(one.least, other.least) + LAST_BIT, max(one.most, other.most) + DOUBLED)


def multiplied(one: Magnitude, other: Magnitude) -> Magnitude:
    """The magnitude of a product."""
    return Magnitude(one.least + other.least, one.most + other.most)


def divided(one: Magnitude, other: Magnitude) -> Magnitude:
    """The magnitude of a quotient."""
    return Magnitude(one.least - other.most, one.most - other.least)


def raised(base: Magnitude, exponent: Magnitude) -> Magnitude:
    """The magnitude of a power with a constant exponent that is not negative."""
    power = 10.0**exponent.most
    return Magnitude(min(base.least, 0.0) * power, max(base.most, 0.0) * power)


def rooted(value: Magnitude) -> Magnitude:
    """The magnitude of a square root."""
    return Magnitude(value.least / 2, value.most / 2)


def same(value: Magnitude) -> Magnitude:
    """The magnitude of a function that changes the sign at most."""
    return value


def rounded(value: Magnitude) -> Magnitude:
    """The magnitude of a whole number next to a value."""
    return Magnitude(0.0, max(value.most, 0.0) + DOUBLED)


def rounded_to(value: Magnitude, width: Magnitude) -> Magnitude:
    """The magnitude of a multiple of a width next to a value."""
    return multiplied(rounded(divided(value, width)), width)


def digits(value: Magnitude, power: Magnitude) -> Magnitude:
    """The magnitude of a value rounded after it was multiplied by a power of ten."""
    return divided(rounded(multiplied(value, power)), power)
