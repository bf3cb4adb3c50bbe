"""What is too large is refused in one line, before anything is computed from it."""

import pytest

from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.limits import LIMITS
from countleak.diffix.sql.parser import parse
from countleak.diffix.sql.statement import Kind, Table
from countleak.errors import Refused
from tests.diffix.sql.test_parser import LOANS

WHERE = "SELECT count(*) FROM loans WHERE "


def counted(most, what):
    """A text with so many of something."""
    among = f"{WHERE}amount IN ({', '.join(map(str, range(most)))})"
    return {
        "characters": " " * most + WHERE,
        "tokens": f"{WHERE}amount IN ({', '.join(['1'] * (most // 2))})",
        "digits": f"{WHERE}amount = 0.{'1' * (most - 2)}",
        "expressions": f"SELECT {', '.join(['count(*)'] * most)} FROM loans",
        "groups": "SELECT count(*) FROM loans GROUP BY "
        + ", ".join(f"floor(amount / {k + 1})" for k in range(most)),
        "conditions": WHERE + " AND ".join(f"amount <> {k}" for k in range(most)),
        "elements": among,
        "grouped_elements": f"{among} GROUP BY status",
        "functions": f"{WHERE}floor(amount{' + 1' * (most - 1)}) = 3",
        "depth": f"{WHERE}{'abs(' * most}amount{')' * most} = amount",
        "text": f"{WHERE}status = '{'x' * most}'",
    }[what]


@pytest.mark.parametrize(
    "what",
    [
        "digits",
        "expressions",
        "groups",
        "conditions",
        "elements",
        "grouped_elements",
        "functions",
        "depth",
        "text",
    ],
)
def test_as_many_as_allowed_are_read_and_one_more_is_refused(what):
    most = getattr(LIMITS, what)
    assert parse(counted(most, what), LOANS)
    with pytest.raises(Refused) as caught:
        parse(counted(most + 1, what), LOANS)
    assert str(most) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["characters", "tokens"])
def test_a_text_that_is_too_long_is_not_parsed(what):
    with pytest.raises(Refused, match=f"at most {getattr(LIMITS, what)} are allowed"):
        parse(counted(getattr(LIMITS, what) + 1, what), LOANS)


def test_aggregates_are_limited_by_how_many_differ():
    repeated = f"SELECT {', '.join(['sum(amount)'] * 100)} FROM loans"
    assert len(parse(repeated, LOANS).aggregates) == 100
    columns = {f"c{k}": Kind.NUMBER for k in range(LIMITS.aggregates + 1)}
    wide = Reader(Table("loans", "c0", columns))
    with pytest.raises(Refused, match="different aggregates; at most"):
        parse(f"SELECT {', '.join(map('sum({})'.format, columns))} FROM loans", wide)


def test_terms_of_one_expression():
    tree = "amount"
    while 2 * tree.count("amount") < LIMITS.terms:
        tree = f"({tree} + {tree})"
    with pytest.raises(Refused, match="terms in one expression"):
        parse(f"{WHERE}{tree} = 1", LOANS)


@pytest.mark.parametrize(
    "number", ["1e-999999999", "1e999999999", "9" * 5000, "0." + "0" * 5000 + "1"]
)
def test_numbers_are_not_computed_before_they_are_known_to_be_small(number):
    with pytest.raises(Refused, match=r"cannot be used|too long"):
        parse(f"{WHERE}amount = {number}", LOANS)
    with pytest.raises(Refused):
        parse(f"SELECT count(*) FROM loans GROUP BY {number}", LOANS)


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("lower(status) = 'c{}'", 10),
        ("status LIKE '%c_{}'", 10),
        ("CAST(status AS double precision) = {}", 10),
        # Of each 1000, of the 400 that are left, and of these with two more.
        ("lower(left(status, 400)) = 'c{}'", 7),
        ("lower(concat(status, 'xy')) = 'c{}'", 4),
    ],
)
def test_texts_are_read_only_as_much_as_time_does_not_tell_who_matches(condition, most):
    """What a function takes for a long text adds up, and tells that the row is there."""
    words = "characters for functions and patterns of texts to read in a row; at most 10000"
    conditions = [condition.format(k) for k in range(most + 1)]
    assert parse(WHERE + " AND ".join(conditions[:most]), LOANS)
    with pytest.raises(Refused, match=words):
        parse(WHERE + " AND ".join(conditions), LOANS)
    group = conditions[-1].partition(" =")[0].replace("status LIKE '%c_10'", "lower(status)")
    with pytest.raises(Refused, match=words):
        parse(
            f"{WHERE.replace('count', f'{group}, count', 1)}"
            f"{' AND '.join(conditions[:most])} GROUP BY 1",
            LOANS,
        )
