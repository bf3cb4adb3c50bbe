import math
from functools import partial

import duckdb
import numpy as np
import pytest

from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers
from countleak.audit.run import ask
from countleak.audit.targets.callables import BATCH, CallableTarget
from countleak.audit.targets.no_counts import NO_COUNTS
from countleak.audit.targets.pool import RequestLimits
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError, NoCount, Refused, TargetError

IDS = np.arange(20)
STATUS = np.resize(["A", "C", "C"], 20)
QUESTIONS = SqlQuestions("loans", ("id",), Bit("status = 'C'"), PLAIN)
QUERIES = random_subsets(IDS, 250, np.random.default_rng(1))
EXACT = QUERIES.dot((STATUS == "C").astype(float))


def by_condition(condition):
    rows = ", ".join(f"({k}, '{s}')" for k, s in zip(IDS.tolist(), STATUS.tolist(), strict=True))
    table = f"(VALUES {rows}) AS loans(id, status)"
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]


def by_members(condition, members):
    return np.int64(sum(STATUS[member] == "C" for member in members))


def several(conditions, members):
    assert len(conditions) <= BATCH
    return [by_members(*each) for each in zip(conditions, members, strict=True)]


def as_array(conditions, members):
    return np.array(several(conditions, members), dtype=float)


@pytest.mark.parametrize("function", [by_condition, by_members, several, as_array])
def test_a_function_is_asked_one_by_one_or_in_batches(function):
    few = QUERIES.take(np.arange(40)) if function is by_condition else QUERIES
    target = CallableTarget(function, QUESTIONS)
    assert np.array_equal(ask(few, target).values, EXACT[: len(few)])
    assert target.is_local
    assert str(target) == function.__name__


def test_none_is_suppressed_and_refusals_are_passed_on():
    def hides(condition, members):
        return None if len(members) < 9 else 5

    found = ask(QUERIES, CallableTarget(hides, QUESTIONS))
    assert np.array_equal(found.released, QUERIES.matrix.sum(axis=1) >= 9)

    def hides_several(conditions, members):
        return [hides(*each) for each in zip(conditions, members, strict=True)]

    again = ask(QUERIES, CallableTarget(hides_several, QUESTIONS))
    assert np.array_equal(again.released, found.released)
    calls = []

    def spends(condition):
        calls.append(condition)
        if len(calls) > 7:
            raise Refused("budget spent")
        return 3.0

    heard = []
    with pytest.raises(Refused, match="budget spent"):
        for batch in CallableTarget(spends, QUESTIONS).answer(QUERIES, np.arange(250)):
            heard += batch.query.tolist()
    assert (len(calls), heard) == (7 + NO_COUNTS, list(range(7)))


@pytest.mark.parametrize("bad", ["5", True, math.nan, math.inf, 1e14, [5], 10**400])
def test_what_is_no_count_is_named(bad):
    def one(condition):
        return bad

    def many(conditions):
        return [3.0, bad, *[4.0] * (len(conditions) - 2)]

    with pytest.raises(NoCount, match="query 0: the answer"):
        ask(QUERIES, CallableTarget(one, QUESTIONS))
    heard: list[Answers] = []
    with pytest.raises(NoCount, match="query 1: the answer"):
        heard += CallableTarget(many, QUESTIONS).answer(QUERIES, np.arange(250))
    assert len(heard) == 1
    assert len(heard[0]) == BATCH - 1


def test_faults_are_one_line():
    def fails(condition):
        raise ValueError("a\x1b[2J reason\nof two lines")

    with pytest.raises(
        TargetError,
        match=r"fails failed with ValueError: a\\x1b\[2J reason; the answers so far are kept",
    ):
        ask(QUERIES, CallableTarget(fails, QUESTIONS))
    with pytest.raises(TargetError, match="100 conditions need a list of as many answers"):
        ask(QUERIES, CallableTarget(lambda conditions: 5, QUESTIONS))
    for bad in (lambda: 5, lambda a, b, c: 5):
        with pytest.raises(InputError, match="a function of a condition"):
            CallableTarget(bad, QUESTIONS)

    async def later(condition):
        return 5

    with pytest.raises(InputError, match="it returns no number; write it without async"):
        CallableTarget(later, QUESTIONS)
    assert str(CallableTarget(partial(by_members), QUESTIONS)) == "partial"


def test_a_function_that_hangs_is_given_up():
    from threading import Event

    never = Event()

    def hangs(condition):
        never.wait()

    with pytest.raises(TargetError, match=r"no answer within 0\.1 seconds"):
        ask(QUERIES, CallableTarget(hangs, QUESTIONS, RequestLimits(seconds=0.1)))
    never.set()
