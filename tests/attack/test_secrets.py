import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countleak.attack.secrets import Bit, Category, Number, parse_secret
from countleak.audit.people import People
from countleak.errors import InputError

NAMES = st.text(min_size=1)
TEXTS = st.text()
NUMBERS = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
BITS = st.builds(Bit.of, NAMES, st.sampled_from(["=", "<>", "<", ">", "<=", ">="]), TEXTS | NUMBERS)


@given(BITS)
def test_a_bit_is_its_text(secret):
    assert parse_secret(str(secret)) == secret
    assert parse_secret(str(secret)).parts == secret.parts
    assert type(parse_secret(str(secret)).parts[2]) is type(secret.parts[2])


@given(NAMES, st.lists(TEXTS | NUMBERS, min_size=2, unique_by=str), st.booleans())
def test_a_category_is_its_text(column, values, is_open):
    named = tuple(value for value in values if not (is_open and value == "other"))
    if len(named) + is_open < 2:
        return
    secret = Category(column, named, is_open)
    again = parse_secret(str(secret))
    assert again == secret
    assert [type(value) for value in again.values] == [type(value) for value in secret.values]


@given(NAMES)
def test_a_number_and_a_column_are_their_text(column):
    assert parse_secret(str(Number(column))) == Number(column)
    assert parse_secret(str(Category(column))) == Category(column)


@given(BITS)
@settings(max_examples=50, deadline=None)
def test_the_sql_of_a_bit_compares_with_the_very_value(secret):
    """What DuckDB reads back from the literal is the value that was meant."""
    column, _, value = secret.parts
    if isinstance(value, str):
        if "\0" in value:
            return
        literal = secret.expression().expression.sql("duckdb")
        assert duckdb.sql(f"SELECT {literal}").fetchall() == [(value,)]
    name = secret.expression().this.sql("duckdb")
    assert name == '"' + column.replace('"', '""') + '"'


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("status = 'C'", ("status", "=", "C")),
        ("status=C", ("status", "=", "C")),
        ("grade = '1'", ("grade", "=", "1")),
        ("grade = 1", ("grade", "=", 1)),
        ("grade == 1", ("grade", "=", 1)),
        ("grade != 1", ("grade", "<>", 1)),
        ("debt >= -1.5e3", ("debt", ">=", -1500.0)),
        ("\"weird name\" <> 'it''s'", ("weird name", "<>", "it's")),
        ('"say ""hi""" < 3', ('say "hi"', "<", 3)),
        ("größe > 170", ("größe", ">", 170)),
        ("  a  =  ''  ", ("a", "=", "")),
        ("active = TRUE", ("active", "=", True)),
        ("active = 'true'", ("active", "=", "true")),
    ],
)
def test_conditions_are_read_into_their_parts(text, parts):
    secret = parse_secret(text)
    assert isinstance(secret, Bit)
    assert secret.parts == parts
    assert type(secret.parts[2]) is type(parts[2])
    assert secret == Bit.of(*parts)
    assert secret.column == parts[0]
    assert (secret.conditions, secret.names) == ((secret,), ())


def test_a_quoted_value_stays_text():
    text, number = Bit("grade = '1'"), Bit("grade = 1")
    assert text != number
    assert (str(text), str(number)) == ("grade = '1'", "grade = 1")
    assert text.expression().sql("postgres") == "\"grade\" = '1'"
    assert number.expression().sql("postgres") == '"grade" = 1'
    people = People(np.array([1, 2, 3]), {"grade": np.array(["1", "01", "2"])})
    assert people.truth(text).tolist() == [1, 0, 0]
    assert people.truth("grade = '01'").tolist() == [0, 1, 0]


def test_truth_values_are_neither_text_nor_numbers():
    assert Bit.of("active", "=", True).expression().sql("postgres") == '"active" = TRUE'
    for column in (np.array([True, False, True]), np.array(["true", "false", "true"])):
        people = People(np.array([1, 2, 3]), {"active": column})
        assert people.truth("active = true").tolist() == [1, 0, 1]
        assert people.truth("active <> true").tolist() == [0, 1, 0]
    people = People(np.array([1, 2, 3]), {"active": np.array([True, False, True])})
    named = people.named("active")
    assert str(named) == "active IN (false, true)"
    assert people.truth(named).tolist() == ["True", "False", "True"]
    assert [people.truth(bit).tolist() for bit in named.conditions] == [[0, 1, 0], [1, 0, 1]]


def test_numbers_of_numpy_are_numbers():
    assert Bit.of("amount", "=", np.int64(3)) == Bit("amount = 3")
    assert Bit.of("amount", "=", np.float64(2.5)) == Bit("amount = 2.5")


def test_a_category_names_its_values():
    secret = parse_secret("status IN ('A', B, 3, 2.5, ...)")
    assert secret == Category("status", ("A", "B", 3, 2.5), open=True)
    assert secret.names == ("A", "B", "3", "2.5", "other")
    assert secret.conditions == tuple(
        Bit(f"status = {value}") for value in ("'A'", "'B'", "3", "2.5")
    )
    assert parse_secret("\"loan type\" in ('it''s','a, b)')").values == ("it's", "a, b)")
    assert parse_secret("status in ('A', …)") == Category("status", ("A",), open=True)
    assert parse_secret("status") == Category("status")
    assert Category("status").names == ()
    with pytest.raises(InputError, match=r"not known; name them like status IN \('A', 'B', 'C'\)"):
        _ = Category("status").conditions


def test_a_number_is_summed():
    assert parse_secret("sum(amount)") == parse_secret(" SUM ( amount ) ") == Number("amount")
    assert parse_secret('sum("the amount")') == Number("the amount")
    assert Number("amount").conditions == (None,)
    assert Number("amount").names == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "=",
        "status =",
        "= 'C'",
        "status = 'C",
        "status = 'C' OR 1 = 1",
        "status = 'C'; DROP TABLE loans",
        "status LIKE 'C'",
        "status = nothing at all",
        'status" = 1',
        '"" = 1',
        "status IN ()",
        "status IN ('A')",
        "status IN ('A' 'B')",
        "status IN ('A',,'B')",
        "status IN ('A', 'B',)",
        "status IN (..., 'A')",
        "status IN ('A', 'A')",
        "status IN (1, '1')",
        "status IN ('A', 'other', ...)",
        "status IN ('A', 'B'",
        "sum()",
        "sum(a, b)",
        "avg(a)",
        "1amount >= 5",
        "a b",
    ],
)
def test_what_is_no_secret_is_refused(text):
    with pytest.raises(InputError):
        parse_secret(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_is_refused(value):
    with pytest.raises(InputError):
        Bit.of("amount", "=", value)


@pytest.mark.parametrize("column", [""])
def test_a_column_has_a_name(column):
    for build in (lambda: Bit.of(column, "=", 1), lambda: Category(column), lambda: Number(column)):
        with pytest.raises(InputError):
            build()


@pytest.mark.parametrize(
    ("text", "read", "sql"),
    [
        ("a = 'C' and zip in ('10001', 2)", "a = 'C' AND zip IN ('10001', 2)", None),
        (
            "a is not null and b is null",
            "a IS NOT NULL AND b IS NULL",
            'NOT "a" IS NULL AND "b" IS NULL',
        ),
        ("a notnull", "a IS NOT NULL", None),
        ("not (a in (1, 2))", "a NOT IN (1, 2)", 'NOT "a" IN (1, 2)'),
        ("not a is not null", "a IS NULL", None),
        ("((a = 1))", "a = 1", None),
        ("(a IN ('A', 'B'))", "(a IN ('A', 'B'))", "\"a\" IN ('A', 'B')"),
        ("zip = '10001' AND a >= -1.5", "zip = '10001' AND a >= -1.5", None),
        ("\"Loan Type\" <> 'it''s' AND b = true", "\"Loan Type\" <> 'it''s' AND b = true", None),
    ],
)
def test_a_condition_may_have_several_parts(text, read, sql):
    secret = parse_secret(text)
    assert isinstance(secret, Bit)
    assert str(secret) == read
    assert parse_secret(str(secret)) == secret
    if sql is not None:
        assert secret.expression().sql("postgres") == sql


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a = 1 OR b = 2", "OR"),
        ("a = 1 AND b BETWEEN 1 AND 2", "BETWEEN"),
        ("lower(a) = 'x' AND b = 1", "LOWER"),
        ("t.a = 1 AND b = 2", "COLUMN"),
        ("a = 1 AND b IN (SELECT 1)", "IN"),
        ("a = 'x' 'y' AND b = 1", "CONCAT"),
        ("a = 1 AND NOT b = 2", "NOT"),
        ("a = 1 AND pg_sleep(100) = 1", "ANONYMOUS"),
        ("(" * 3000 + "a = 1" + ")" * 3000, ""),
        ("a = 1" + " AND a = 1" * 2000, "more than"),
    ],
)
def test_what_is_not_on_the_list_is_named(text, holds):
    with pytest.raises(InputError, match=rf"cannot be read.*{holds}"):
        parse_secret(text)
