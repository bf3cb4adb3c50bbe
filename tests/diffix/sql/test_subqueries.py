import pytest

from countleak.errors import Refused


def read(engine, text):
    return engine.read(text)


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        (
            "SELECT count(*) FROM (SELECT * FROM loans) AS source",
            "SELECT count(*) FROM loans",
        ),
        (
            "SELECT count(*) FROM (SELECT client_id, status AS s FROM loans WHERE duration = 12) q "
            "WHERE s = 'C'",
            "SELECT count(*) FROM loans WHERE duration = 12 AND status = 'C'",
        ),
        (
            "SELECT q.s, sum(q.amount) FROM (SELECT client_id, lower(status) AS s, amount "
            "FROM loans) AS q GROUP BY q.s",
            "SELECT lower(status) AS s, sum(amount) FROM loans GROUP BY lower(status)",
        ),
        (
            "SELECT count(*) FROM (SELECT * FROM (SELECT client_id AS u, amount FROM loans "
            "WHERE amount >= 0) a WHERE amount < 100000) b WHERE u BETWEEN 2000 AND 3000",
            "SELECT count(*) FROM loans WHERE client_id BETWEEN 2000 AND 3000 "
            "AND amount BETWEEN 0 AND 100000",
        ),
        ("SELECT count(l.amount) FROM loans AS l", "SELECT count(amount) FROM loans"),
    ],
)
def test_a_subquery_is_answered_like_what_it_means(engine, nested, flat):
    one, other = read(engine, nested), read(engine, flat)
    assert set(one.conditions) == set(other.conditions)
    assert (one.groups, one.shown, one.notices) == (other.groups, other.shown, other.notices)
    assert engine.ask(nested).rows == engine.ask(flat).rows


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT count(*) FROM (SELECT status FROM loans) q", "must select the user id"),
        ("SELECT count(*) FROM (SELECT client_id, count(*) FROM loans) q", "no aggregates"),
        ("SELECT count(*) FROM (SELECT status FROM loans GROUP BY status) q", "by the user id"),
        ("SELECT count(*) FROM (SELECT count(*) FROM loans GROUP BY client_id) q", "must select"),
        (
            "SELECT count(*) FROM (SELECT client_id, median(amount) FROM loans GROUP BY 1) q",
            "count, sum, min, max, avg",
        ),
        (
            "SELECT count(*) FROM (SELECT client_id, status FROM loans GROUP BY client_id) q",
            "and aggregates",
        ),
        (
            "SELECT count(*) FROM (SELECT client_id, count(*) FROM (SELECT client_id, count(*) n "
            "FROM loans GROUP BY client_id) q GROUP BY client_id) r",
            "that groups cannot",
        ),
        (
            "SELECT count(*) FROM (SELECT client_id, count(*) FROM loans GROUP BY client_id "
            "HAVING count(*) > 1) q",
            "not allowed: HAVING",
        ),
        ("SELECT count(*) FROM (SELECT client_id, amount * 2 FROM loans) q", "a name with AS"),
        ("SELECT count(*) FROM (SELECT *, amount AS status FROM loans) q", "two columns"),
        ("SELECT count(*) FROM (SELECT client_id FROM loans LIMIT 5) q", "not allowed: LIMIT"),
        ("SELECT count(*) FROM (SELECT DISTINCT client_id FROM loans) q", "not allowed: DISTINCT"),
        ("SELECT count(*) FROM (SELECT client_id FROM loans) q WHERE amount = 5", "doesn't exist"),
        ("SELECT count(*) FROM (SELECT client_id FROM loans) q WHERE loans.client_id = 5", "exist"),
        ("SELECT count(*) FROM (SELECT client_id FROM loans UNION SELECT 1) q", "one SELECT"),
        ("SELECT count(*) FROM (SELECT * FROM pg_user) q", "does not exist"),
        ("SELECT count(*) FROM (SELECT * FROM loans) q (a)", "not allowed"),
        ("SELECT count(*) FROM loans JOIN loans b ON true", "stands in FROM twice"),
        ("SELECT count(*) FROM loans, loans b", "stands in FROM twice"),
        (f"SELECT count(*) FROM {'(SELECT * FROM ' * 4}loans{') q' * 4}", "at most 3 deep"),
        (
            "SELECT count(*) FROM (SELECT client_id, pow(amount * 1e15, 4) AS a FROM loans) q "
            "WHERE pow(a, 4) = 5",
            "too large or too small",
        ),
        (
            "SELECT count(*) FROM (SELECT client_id, amount * 2 AS a FROM loans) q "
            "WHERE a BETWEEN 0 AND 100",
            "not on a function of it",
        ),
        ("SELECT count(*) FROM (SELECT client_id FROM loans WHERE a OR b) q", "OR"),
    ],
)
def test_refusals(engine, text, complaint):
    with pytest.raises(Refused, match=complaint):
        read(engine, text)


def test_terms_do_not_multiply_unseen(engine):
    doubled = "amount"
    text = "loans"
    for level in range(3):
        many = " + ".join([doubled] * 8)
        text = f"(SELECT client_id, {many} AS a{level} FROM {text}) q"
        doubled = f"a{level}"
    with pytest.raises(Refused, match="terms in one expression"):
        read(engine, f"SELECT count(*) FROM {text} WHERE {doubled} = client_id")
