from fractions import Fraction

import pytest

from countleak.diffix.sql.expressions import Reader
from countleak.diffix.sql.parser import parse
from countleak.diffix.sql.statement import (
    Column,
    Constant,
    Differs,
    Equal,
    Kind,
    Like,
    Null,
    Range,
    Table,
)
from countleak.errors import Refused

COLUMNS = {"client_id": Kind.WHOLE, "status": Kind.TEXT, "amount": Kind.NUMBER}
LOANS = Reader(Table("loans", "client_id", COLUMNS))
STATUS, AMOUNT = Column("status", Kind.TEXT), Column("amount", Kind.NUMBER)
PAPER = (
    "SELECT count(DISTINCT client_id) FROM loans WHERE floor(100 * pow((client_id * 2),0.7) + 0.5)"
    " = floor(100 * pow((client_id * 2), 0.7)) AND status = 'C' AND client_id BETWEEN 2000 and 3000"
)


def where(text):
    return parse(f"SELECT count(*) FROM loans WHERE {text}", LOANS).conditions


def test_the_papers_query_is_read():
    found = parse(PAPER, LOANS)
    assert [type(condition).__name__ for condition in found.conditions] == [
        "Equal",
        "Equal",
        "Range",
    ]
    assert found.conditions[2] == Range(Column("client_id", Kind.WHOLE), 2000, 3000)
    assert found.aggregates[0].distinct


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("status = 'C'", Equal(STATUS, Constant("C"))),
        ("'C' = STATUS", Equal(STATUS, Constant("C"))),
        ("((loans.status) = 'C')", Equal(STATUS, Constant("C"))),
        ("status IN ('C')", Equal(STATUS, Constant("C"))),
        ("status LIKE 'C'", Equal(STATUS, Constant("C"))),
        ("status NOT ILIKE 'c%'", Like(STATUS, "c%", negated=True, any_case=True)),
        ("status IS NOT NULL", Null(STATUS, negated=True)),
        ("amount >= 10 AND amount < 20.5", Range(AMOUNT, 10, Fraction("20.5"))),
        ("20.5 > amount AND 10 <= amount", Range(AMOUNT, 10, Fraction("20.5"))),
        ("amount BETWEEN 10 AND 20.5", Range(AMOUNT, 10, Fraction("20.5"))),
        ("amount = -5", Equal(AMOUNT, Constant(Fraction(-5)))),
        ("amount::float = 5", Equal(AMOUNT, Constant(Fraction(5)))),
        ("CAST(status AS text) = 'C'", Equal(STATUS, Constant("C"))),
        ("status NOT IN ('C', 'C')", Differs(STATUS, Constant("C"))),
    ],
)
def test_equivalent_spellings_are_one_condition(text, condition):
    assert where(text) == (condition,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status = 'A' OR status = 'B'", "Combining conditions with `OR` is not allowed."),
        ("NOT (status = 'A' AND amount = 1)", "not allowed: Not"),
        ("amount > 5", "must be limited to a finite, nonempty range"),
        ("amount BETWEEN 5 AND 5", "must be limited to a finite, nonempty range"),
        ("amount + 1 BETWEEN 5 AND 9", "not on a function of it"),
        ("trunc(10 * pow(client_id, 0.7)) = 3", "not on a function of it"),
        ("amount = round(amount / 10)", "not on a function of it"),
        ("status BETWEEN 'A' AND 'C'", "only numbers and dates have ranges"),
        ("abs(amount) <> 3", "cannot be used on the left of `<>`"),
        ("amount + 1 IN (3, 4)", "cannot be used on the left of `IN`"),
        ("floor(amount + 1 + 1 + 1 + 1 + 1) = 3", "a high number of functions"),
        ("sqrt(amount) = amount / client_id", "must be a constant"),
        ("amount / 0 = 1", "Division by 0"),
        ("pow(amount, 9) = 1", "exponent of pow"),
        ("amount = 'C'", "cannot be compared"),
        ("amount = 1e300", "cannot be used"),
        ("1 = 1", "must mention a column"),
        ("nonsense = 1", "doesn't exist in table `loans`"),
        ("pg_sleep(5) = 1", "not allowed: Anonymous"),
        ("client_id IN (SELECT client_id FROM loans)", "not allowed"),
        ("EXISTS (SELECT 1 FROM loans)", "not allowed"),
        ("status ~ 'C'", "not allowed"),
        ("status LIKE 'a\\%'", "without escapes"),
        ("amount = CAST('1' AS int)", "write no other"),
        ("CAST(status AS int) = 1", "not on a function of it"),
        ("CAST(status AS date) = '2017-01-01'", "write no other"),
        ("round(amount, 99) = 1", "from -10 to 10"),
        ("round(amount, client_id) = 1", "from -10 to 10"),
        ("bucket(amount * 2 BY 10) = 1", "not on a function of it"),
        ("status NOT IN ()", "not allowed|cannot be read"),
        ("length(concat(status, 'x')) <> 3", "cannot be used on the left of `<>`"),
    ],
)
def test_refusals(text, complaint):
    with pytest.raises(Refused, match=complaint):
        where(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "DROP TABLE loans",
        "SELECT 1",
        "SELECT client_id FROM loans",
        "SELECT * FROM loans",
        "SELECT count(*) FROM other",
        "SELECT count(*) FROM pg_catalog.loans",
        "SELECT count(*) FROM loans, loans",
        "SELECT count(*) FROM loans JOIN loans AS b ON true",
        "SELECT count(*) FROM read_csv('/etc/passwd')",
        "SELECT count(*) FROM 'file.csv'",
        "SELECT count(*) FROM loans; SELECT 1",
        "SELECT count(*) INTO x FROM loans",
        "SELECT count(*) FILTER (WHERE amount = 1) FROM loans",
        "SELECT count(*) OVER () FROM loans",
        "SELECT count(*) + 1 FROM loans",
        "SELECT count(DISTINCT client_id, amount) FROM loans",
        "SELECT sum(status) FROM loans",
        "SELECT sum(amount * 2) FROM loans",
        "SELECT max(status) FROM loans",
        "SELECT median(DISTINCT amount) FROM loans",
        "SELECT max_noise(amount) FROM loans",
        "SELECT count_noise() FROM loans",
        "SELECT count(*) FROM loans LIMIT -1",
        "SELECT count(*) FROM loans LIMIT (SELECT 1)",
        "SELECT count(*) FROM loans LIMIT ALL",
        "SELECT count(*) FROM loans ORDER BY amount",
        "SELECT count(*) FROM loans ORDER BY 2",
        "SELECT count(*) FROM loans HAVING amount > 3",
        "SELECT count(*) FROM loans HAVING count(*) > amount",
        "SELECT count(*) FROM loans HAVING count(*) > 3 OR count(*) < 2",
        "SELECT count(*) FROM loans HAVING count(*) = 'x'",
        "SELECT DISTINCT ON (status) status FROM loans",
        "SELECT DISTINCT * FROM loans",
        "SELECT bucket(amount BY 3), count(*) FROM loans GROUP BY 1",
        "SELECT status, count(*) FROM loans",
        "SELECT count(*) FROM loans GROUP BY ROLLUP (status)",
        "SELECT count(*) FROM loans GROUP BY 9",
        "SELECT count(*) FROM loans TABLESAMPLE SYSTEM (10)",
        "WITH a AS (SELECT 1) SELECT count(*) FROM loans",
        "SELECT count(*) FROM loans UNION SELECT count(*) FROM loans",
        "SELECT count(*) FROM loans FOR UPDATE",
        "SELECT count(*) FROM loans WHERE " + "(" * 3000 + "amount = 1" + ")" * 3000,
        "COPY loans TO 'x'",
        "SET threads = 1",
        "\x00",
    ],
)
def test_whatever_is_not_one_plain_select_is_refused(text):
    with pytest.raises(Refused) as caught:
        parse(text, LOANS)
    assert str(caught.value)


def test_five_functions_with_constants_pass_and_many_without_do():
    where("floor(amount + 1 + 1 + 1 + 1) = 3")
    where("amount + amount + amount + amount + amount + amount + amount = amount")


def test_groups_by_place_and_labels():
    found = parse("SELECT status AS s, count(*) AS n, sum(amount) FROM loans GROUP BY 1", LOANS)
    assert found.groups == (STATUS,)
    assert found.labels == ("s",)
    assert [aggregate.label for aggregate in found.aggregates] == ["n", "sum"]
    twice = parse("SELECT count(*), count(*), count(amount) FROM loans", LOANS)
    assert [aggregate.label for aggregate in twice.aggregates] == ["count", "count_2", "count_3"]
