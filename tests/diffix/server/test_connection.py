"""A query over the wire is tokenised and parsed once, and not at all when its shape is known."""

from collections import Counter

import psycopg
import pytest
import sqlglot

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


@pytest.mark.parametrize("prepare", [False, True])
def test_a_first_query_is_parsed_once_and_others_of_its_shape_never(
    server, engine, work, database, prepare
):
    # A label that no other query has makes a shape of its own.
    label = f"of_{database}_{prepare}".lower()
    first, second = SHAPE.format(label, 0, 20), SHAPE.format(label, 20, 60)
    with server.connect(database, autocommit=True) as connection:
        answer = connection.execute(first, prepare=prepare).fetchone()
        assert work == {"tokenize": 1, "parse": 1}
        work.clear()
        other = connection.execute(second, prepare=prepare).fetchone()
        assert work == {}
    assert [answer, other] == [engine.ask(text).rows[0].values for text in (first, second)]


def test_a_refused_query_is_parsed_once(server, work):
    text = "SELECT count(*) AS refused_once FROM loans WHERE status = 'A' OR status = 'B'"
    with (
        server.connect(autocommit=True) as connection,
        pytest.raises(psycopg.errors.FeatureNotSupported, match="Combining conditions"),
    ):
        connection.execute(text)
    assert work == {"tokenize": 1, "parse": 1}


def test_a_query_with_parameters_is_parsed_once_for_all_its_values(server, work):
    text = "SELECT count(*) AS with_values FROM loans WHERE duration = %s"
    with server.connect(autocommit=True) as connection:
        for months in (12, 24, 36):
            connection.execute(text, [months], prepare=True)
    assert work["tokenize"] == work["parse"] == 1
