"""Parameters: their types from what they are compared with, and values that stay values."""

from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from countleak.diffix.server.errors import Failure
from countleak.diffix.server.parameters import put_in, types_of

TEXT, INT8, FLOAT8 = 25, 20, 701
COUNT = "SELECT count(*) FROM loans WHERE "


def tree(sql):
    return sqlglot.parse_one(sql, read="postgres")


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        ("status = $1", [TEXT]),
        ("$1 = status", [TEXT]),
        ("client_id BETWEEN $1 AND $2", [INT8, INT8]),
        ("duration IN ($1, $2)", [INT8, INT8]),
        ("status LIKE $1", [TEXT]),
        ("floor(amount * $1) = $2", [FLOAT8, FLOAT8]),
        ("upper(status) = $1", [TEXT]),
        ("client_id >= -$1 AND client_id < $2", [INT8, INT8]),
        ("amount = $1::numeric", [FLOAT8]),
        ("amount = $1::int AND status = $2::varchar", [INT8, TEXT]),
        ("status = $2 AND duration = $1", [INT8, TEXT]),
    ],
)
def test_types_follow_from_what_a_parameter_is_compared_with(engine, condition, types):
    assert list(types_of(tree(COUNT + condition), (), engine.database.tables)) == types


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        ("n = $1 AND s = $2", [FLOAT8, TEXT]),
        ("q.d BETWEEN $1 AND $2", [INT8, INT8]),
        ("concat(s, s) = $1 AND s || 'x' = $2", [TEXT, TEXT]),
        ("CAST(d AS text) = $1 AND right(s, 1) = $2", [TEXT, TEXT]),
        ("status = $1", [FLOAT8]),
        ("(s) IN ($1, $2)", [TEXT, TEXT]),
    ],
)
def test_types_follow_from_what_a_subquery_calls_its_columns(engine, condition, types):
    source = (
        "SELECT client_id, lower(status) AS s, duration AS d, amount / 2 AS status, amount * 2 AS n"
    )
    text = f"SELECT count(*) FROM ({source} FROM loans) AS q WHERE {condition}"
    assert list(types_of(tree(text), (), engine.database.tables)) == types


def test_types_that_are_given_stay(engine):
    given_types = types_of(
        tree(COUNT + "status = $1 AND amount = $2"), (1043, 0), engine.database.tables
    )
    assert given_types == (1043, INT8)


@given(st.text())
def test_a_text_stays_a_text(value):
    asked = tree(COUNT + "status = $1")
    found = sqlglot.parse_one(put_in(asked, [value]).sql(dialect="postgres"), read="postgres")
    literals = list(found.find_all(exp.Literal))
    assert [literal.name for literal in literals] == [value]
    assert literals[0].is_string
    assert len(list(found.walk())) == len(list(asked.walk())) - 1


@given(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.decimals(allow_nan=False, allow_infinity=False, places=4),
    )
)
def test_a_number_stays_that_number(value):
    written = put_in(tree(COUNT + "amount = $1"), [value]).sql(dialect="postgres")
    assert Decimal(written.rpartition("=")[2].strip()) == Decimal(value)


def test_what_is_no_parameter_or_has_no_value_is_refused():
    with pytest.raises(Failure, match="no value for parameter"):
        put_in(tree(COUNT + "status = $2"), ["C"])
    with pytest.raises(Failure, match="is written"):
        types_of(tree(COUNT + "status = $99999"), (), None)
