"""What is done for a question does not depend on what is suppressed."""

import gc
import sys
from collections import Counter

import numpy as np
import pytest

from countleak.diffix.databases.duck import Duck
from countleak.diffix.engine import Engine
from countleak.diffix.releases import release_of
from tests.diffix.conftest import loans_engine, salt_number


class Recorded:
    """A database that remembers the texts it was sent."""

    def __init__(self, database):
        self.database = database
        self.tables = database.tables
        self.texts, self.values = [], []

    def dialect(self, salt):
        return self.database.dialect(salt)

    def rows(self, text, values=()):
        self.texts.append(text)
        self.values.append(values)
        return self.database.rows(text, values)


def texts_of(engine, question):
    recorded = Recorded(engine.database)
    rows = Engine(recorded, engine.release, engine.salt).ask(question).rows
    return recorded.texts, rows


AGGREGATES = ("count(*)", "sum(amount)", "avg(duration), count(amount)", "count(DISTINCT amount)")


@pytest.mark.parametrize("group", ["", "status", "floor(duration / 10), status"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_suppressed_group_costs_the_statements_of_an_empty_set(engine, bank, aggregate, group):
    chosen, by = (f"{group}, ", f" GROUP BY {group}") if group else ("", "")
    text = f"SELECT {chosen}{aggregate} FROM loans WHERE client_id = {{}}{by}"
    one, rows = texts_of(engine, text.format(bank.ids[5]))
    nobody, none = texts_of(engine, text.format(10**9))
    assert one == nobody
    assert rows == none


def calls_of(engine, question):
    """How often each function of Python is called for a question."""
    calls = Counter()

    def called(frame, event, _):
        # A look-up in a cache compares as often as hashes of strings collide, which is chance.
        if not frame.f_code.co_qualname.endswith(".__eq__"):
            calls[frame.f_code.co_qualname] += event == "call"

    # Collecting garbage calls back into hypothesis, whenever it comes.
    gc.disable()
    sys.setprofile(called)
    try:
        engine.ask(question)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("group", ["", "status"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_suppressed_group_costs_the_calls_of_an_empty_set(engine, bank, aggregate, group):
    """Nobody has as many noise layers as somebody: fewer draws would take less time."""
    chosen, by = (f"{group}, ", f" GROUP BY {group}") if group else ("", "")
    text = f"SELECT {chosen}{aggregate} FROM loans WHERE client_id = {{}}{by}"
    one, nobody = text.format(bank.ids[5]), text.format(10**9)
    for question in (one, nobody):
        calls_of(engine, question)  # What is cached is no longer looked up.
    assert calls_of(engine, one) == calls_of(engine, nobody)


def test_two_in_one_group_cost_the_calls_of_two_apart(engine, bank):
    """A group of two is weighed, and one of one is not even fetched."""
    people = {status: bank.ids[bank.columns["status"] == status].tolist() for status in "AC"}
    together, apart = people["C"][:2], [people["C"][0], people["A"][0]]
    texts = [
        f"SELECT status, count(*) FROM loans WHERE client_id IN ({', '.join(map(str, ids))}) "
        "GROUP BY status"
        for ids in (together, apart)
    ]
    for question in texts:
        calls_of(engine, question)
    assert calls_of(engine, texts[0]) == calls_of(engine, texts[1])


@pytest.mark.parametrize(
    "aggregate", [*AGGREGATES, "min(amount), median(amount)", "stddev(amount)"]
)
def test_four_who_are_suppressed_cost_the_calls_of_three(engine, bank, aggregate):
    """Four may be enough to flatten a sum."""
    text = "SELECT {} FROM loans WHERE client_id IN ({}) AND status = 'C'"
    people = {status: bank.ids[bank.columns["status"] == status].tolist() for status in "AC"}
    for first in range(0, 40, 4):
        four = people["C"][first : first + 4]
        asked = [
            text.format(aggregate, ", ".join(map(str, ids)))
            for ids in (four, [*four[:3], people["A"][0]])
        ]
        if any(engine.ask(question).rows[0].released for question in asked):
            continue
        calls = [calls_of(engine, question) for question in asked]
        assert without(calls[0], "pstdev") == without(calls[1], "pstdev")
        return
    raise AssertionError("nobody is suppressed")


def without(calls, name):
    return {called: count for called, count in calls.items() if name not in called}


def test_a_star_costs_the_statements_of_an_answer_without(engine):
    every, rows = texts_of(engine, "SELECT status, count(*) FROM loans GROUP BY status")
    assert rows[-1].values[0] != "*"
    few, rows = texts_of(
        engine,
        "SELECT status, count(*) FROM loans WHERE amount < 9e4 AND amount >= 0 GROUP BY status",
    )
    assert len(few) == len(every) == 2


def test_thousands_of_kept_groups_and_a_suppressed_one():
    groups, size = 6000, 20
    columns = {
        "uid": np.arange(groups * size + 1),
        "place": np.append(np.repeat(np.arange(groups), size), groups),
        "money": np.ones(groups * size + 1),
    }
    salt = salt_number(0)
    engine = Engine(
        Duck.of_columns(columns, salt, table="people", user="uid"), release_of("18.1"), salt
    )
    rows = engine.ask("SELECT place, count(*), sum(money) FROM people GROUP BY place").rows
    # The lone person's group is suppressed, and so is the rest, which is that person alone.
    assert len(rows) == groups
    assert np.mean([row.values[1] for row in rows]) == pytest.approx(size, abs=0.3)
    assert np.mean([row.values[2] for row in rows]) == pytest.approx(size, abs=0.3)


def test_there_is_always_a_row_to_work_on(engine, bank):
    """Databases are quick where there is no row: whatever groups is given nobody's."""
    text = "SELECT status, sum(amount) FROM loans WHERE amount = -1 GROUP BY status"
    texts, rows = texts_of(engine, text)
    assert not rows
    assert all('OR "client_id" IS NULL' in sent for sent in texts)
    assert engine.database.rows('SELECT count(*) FROM loans WHERE "client_id" IS NULL') == [(1,)]
    nobody = engine.ask("SELECT count(*) FROM loans WHERE client_id IS NULL").rows[0]
    assert (nobody.values, nobody.released) == ((0,), False)
    assert abs(engine.ask("SELECT count(*) FROM loans").rows[0].values[0] - len(bank)) < 10


def test_no_condition_is_left_out_where_none_before_it_held(bank):
    """Else a long one behind the one in question would tell by its time who is there."""
    engine, computed = loans_engine(bank), []

    def watched(value):
        computed.append(value)
        return value

    engine.database._connection.create_function(
        "watched", watched, ["DOUBLE"], "DOUBLE", null_handling="special", side_effects=True
    )
    for condition in (
        "sqrt(amount) = 2 AND status = 'C' AND floor(duration) = 7",
        "floor(duration) = 7 AND status LIKE '%x%' AND amount <> 1",
    ):
        for number in (bank.ids[5], 10**9):
            asked = Recorded(engine.database)
            text = f"SELECT count(*) FROM loans WHERE client_id = {number} AND {condition}"
            Engine(asked, engine.release, engine.salt).ask(text)
            computed.clear()
            asked.database.rows(asked.texts[0].replace("floor(", "watched("), asked.values[0])
            assert computed, text
