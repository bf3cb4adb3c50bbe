from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countleak.shares import percent, rounded


def test_only_all_is_100_percent_and_only_nothing_0():
    assert [percent(share) for share in (0.0, 1e-9, 0.0005, 0.5, 0.9994, 0.99999, 1.0)] == [
        "0.0%",
        "0.1%",
        "0.1%",
        "50.0%",
        "99.9%",
        "99.9%",
        "100.0%",
    ]
    assert percent(4998 / 5000) == "99.9%"
    assert percent(-0.25) == "-25.0%"
    assert percent(0.996, 0) == "99%"


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.integers(0, 4))
def test_a_rounded_share_is_near_and_says_all_or_none_only_where_it_is_so(part, more, decimals):
    share = Fraction(part, part + more) if part else Fraction(0)
    text = rounded(float(share), decimals + 1)
    assert abs(Fraction(text) - share) <= Fraction(1, 10 ** (decimals + 1))
    assert (Fraction(text) == 0) == (share == 0)
    assert Fraction(text) != 1


@pytest.mark.parametrize(("value", "cell"), [(0.99996, "0.999"), (1.0, "1.000"), (0.0001, "0.000")])
def test_a_table_never_shows_nearly_all_as_all(value, cell, capsys):
    from countleak.cli.console import print_table

    print_table([{"accuracy": value, "kappa": 100 * value}] * 2)
    row = capsys.readouterr().out.splitlines()[-2].split()
    assert row[0] == cell
    assert (row[1] == "100.0") == (value == 1)
