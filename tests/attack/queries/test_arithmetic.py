from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.queries.arithmetic import Exact, numeric_server
from countleak.attack.queries.digits import CONSTANTS
from countleak.errors import InputError

CONSTANT_ARRAY = np.array(CONSTANTS)


def floor_root(value: int, degree: int) -> int:
    """floor(value ** (1/degree)) by bisection over integers, independent of any library."""
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
    return low


@given(
    base=st.integers(1, 14_000 * 277),
    tenths=st.integers(5, 19).filter(lambda t: t != 10),
    constant=st.sampled_from(CONSTANTS),
)
@settings(max_examples=400, deadline=None)
def test_exact_agrees_with_integer_roots(base, tenths, constant):
    twice = floor_root((2 * constant) ** 10 * base**tenths, 10)
    held = Exact().holds(np.array([base]), tenths / 10, np.array([constant]))
    assert held[0, 0] == (twice % 2 == 0)


def test_exact_decides_perfect_powers():
    # 4 ** 0.5 = 2 and 32 ** 1.2 = 64: balls cannot decide these, the integer root does.
    for base, exponent in ((4, 0.5), (32, 1.2), (1024, 0.7), (59049, 1.9)):
        assert Exact().holds(np.array([base]), exponent, CONSTANT_ARRAY).all()


def test_numeric_is_what_postgres_makes_of_the_uncast_query(postgres):
    bases = np.arange(10_000, 10_020) * 97
    held = postgres.holds(bases, 1.9, CONSTANT_ARRAY)
    for row, constant in enumerate(CONSTANTS):
        for column, base in enumerate(bases.tolist()):
            (power,) = postgres.connection.execute(f"SELECT pow({base}, 1.9)").fetchone()
            assert isinstance(power, Decimal)
            statement = f"""SELECT floor({constant} * pow(({base // 97} * 97), 1.9) + 0.5)
                                 = floor({constant} * pow(({base // 97} * 97), 1.9))"""
            assert postgres.connection.execute(statement).fetchone() == (held[row, column],)


def test_a_server_that_is_not_there_is_one_line():
    with (
        pytest.raises(InputError, match="no PostgreSQL server"),
        numeric_server("postgresql://127.0.0.1:1/none"),
    ):
        pass
