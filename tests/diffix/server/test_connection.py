"""A query is tokenised and parsed once, and not at all when its shape is known."""

import asyncio
import json
from collections import Counter

import pytest
import sqlglot

from countleak.diffix.server.requests import Ask
from countleak.diffix.server.session import Session
from countleak.errors import Refused
from tests.diffix.server.in_process import InProcess, texts

SHAPE = "SELECT count(*) AS {} FROM loans WHERE status = 'C' AND duration BETWEEN {} AND {}"


@pytest.fixture
def work(monkeypatch):
    """How often sqlglot tokenised, parsed and wrote SQL."""
    done = Counter()

    def counted(owner, name):
        original = getattr(owner, name)

        def wrapper(*args, **named):
            done[name] += 1
            return original(*args, **named)

        monkeypatch.setattr(owner, name, wrapper)

    counted(sqlglot.Tokenizer, "tokenize")
    counted(sqlglot.Parser, "parse")
    counted(sqlglot.Generator, "generate")
    return done


@pytest.fixture
def session(engine):
    return Session(InProcess(engine), "analyst", {})


def ask(session, text, *values, describe):
    """The one number a question is answered by; a driver that prepares has it described first."""

    async def both():
        if describe:
            await session.describe(text)
        return (await session.run(text, values=values))[0]

    return int(texts(asyncio.run(both()))[0][0])


@pytest.mark.parametrize("describe", [False, True])
def test_a_first_query_is_parsed_once_and_others_of_its_shape_never(
    session, engine, work, describe
):
    # A label that no other query has makes a shape of its own.
    label = f"of_{describe}".lower()
    first, second = SHAPE.format(label, 0, 20), SHAPE.format(label, 20, 60)
    answer = ask(session, first, describe=describe)
    assert work == {"tokenize": 1, "parse": 1}
    work.clear()
    other = ask(session, second, describe=describe)
    assert work == {}
    assert [answer, other] == [engine.ask(text).rows[0].values[0] for text in (first, second)]


def test_over_rest_a_query_takes_the_same_way(session, work):
    first, second = SHAPE.format("over_rest", 0, 20), SHAPE.format("over_rest", 20, 60)
    over_wire = ask(session, first, describe=False)
    work.clear()
    written = [
        json.loads(session.served.statements.answer(Ask("analyst", text)))
        for text in (first, second)
    ]
    assert work == {}
    assert written[0]["columns"] == ["over_rest"]
    assert written[0]["rows"] == [{"row": [over_wire], "released": True}]


@pytest.mark.parametrize("describe", [False, True])
def test_a_refused_query_is_parsed_once(session, work, describe):
    text = f"SELECT count(*) AS x_{describe} FROM loans WHERE status = 'A' OR status = 'B'"
    with pytest.raises(Refused, match="Combining conditions"):
        ask(session, text, describe=describe)
    assert work == {"tokenize": 1, "parse": 1}


def test_a_query_with_parameters_is_parsed_once_for_all_its_values(session, work):
    text = "SELECT count(*) AS with_values FROM loans WHERE duration = $1"
    for months in (12, 24, 36):
        ask(session, text, months, describe=True)
    assert work["tokenize"] == work["parse"] == 1


def test_understood_statements_are_kept_up_to_a_number_of_characters(session, work):
    for number in range(12):
        text = f"SELECT count(*) AS a{number} FROM loans WHERE status <> $1 -- {'x' * 90_000}"
        ask(session, text, "A", describe=True)
    work.clear()
    ask(session, text, "A", describe=True)
    assert work["parse"] == 0
    ask(session, text.replace("a11", "a0"), "A", describe=True)
    assert work["parse"] == 1


def test_understood_statements_are_kept_up_to_a_number_of_parameters(session):
    for number in range(240):
        asyncio.run(session.describe(f"SELECT $2500 AS a{number}"))
    assert 0 < len(session.served.statements._kept) < 220
