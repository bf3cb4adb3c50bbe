"""HAVING, ORDER BY, LIMIT and DISTINCT work on the rows that everybody may see."""

import pytest

ROWS = "SELECT status, count(*) AS n, sum(amount) FROM loans GROUP BY status"


@pytest.fixture(scope="module")
def rows(engine):
    return [row.values for row in engine.ask(ROWS).rows]


def values(engine, text):
    return [row.values for row in engine.ask(text).rows]


def test_having_compares_the_noisy_values_of_rows(engine, rows):
    middle = sorted(row[1] for row in rows)[2]
    kept = [row for row in rows if row[1] >= middle]
    assert 0 < len(kept) < len(rows)
    assert values(engine, f"{ROWS} HAVING count(*) >= {middle}") == kept
    assert values(engine, f"{ROWS} HAVING {middle} <= n") == kept
    assert values(engine, f"{ROWS} HAVING n BETWEEN {middle} AND 1000000 AND status <> 'x'") == kept
    assert values(engine, f"{ROWS} HAVING NOT_SHOWN(*) > 1".replace("NOT_SHOWN", "count")) == rows


def test_what_is_compared_or_sorted_by_need_not_be_selected(engine, rows):
    by_amount = [row[:1] for row in sorted(rows, key=lambda row: row[2])]
    text = "SELECT status FROM loans GROUP BY status"
    assert values(engine, f"{text} ORDER BY sum(amount)") == by_amount
    largest = max(row[2] for row in rows)
    assert values(engine, f"{text} HAVING sum(amount) = {largest}") == by_amount[-1:]


def test_rows_are_sorted_and_cut(engine, rows):
    down = sorted(rows, key=lambda row: -row[1])
    assert values(engine, f"{ROWS} ORDER BY 2 DESC") == down
    assert values(engine, f"{ROWS} ORDER BY n DESC LIMIT 2 OFFSET 1") == down[1:3]
    assert values(engine, f"{ROWS} ORDER BY status DESC") == rows[::-1]
    assert values(engine, f"{ROWS} LIMIT 0") == []


def test_the_star_comes_last_and_no_number_compares_with_it(engine):
    text = "SELECT amount, count(*) FROM loans GROUP BY amount"
    assert values(engine, f"{text} ORDER BY 1 DESC")[-1][0] == "*"
    assert values(engine, f"{text} ORDER BY 1")[-1][0] == "*"
    assert "*" not in [row[0] for row in values(engine, f"{text} HAVING amount > 0")]


def test_distinct_is_a_group(engine, rows):
    assert values(engine, "SELECT DISTINCT status FROM loans") == [row[:1] for row in rows]
    assert values(engine, "SELECT DISTINCT count(*) FROM loans GROUP BY client_id") == values(
        engine, "SELECT count(*) FROM loans GROUP BY client_id"
    )
    several = values(engine, "SELECT DISTINCT count_noise(*) FROM loans GROUP BY status")
    # Every group has two layers of SD 2: noise of SD 2.83, told in steps of a tenth.
    assert several == [(2.8,)]
