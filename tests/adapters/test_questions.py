"""What adapters have in common, asked as any program is; the engine counts exactly."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit, Number, parse_secret
from countleak.attack.transcript import Journal
from countleak.audit.people import People, generated_bank
from countleak.audit.run import ask, ask_in_steps, ask_into
from countleak.audit.targets.command import CommandTarget
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import Refused, TargetError

ENGINE = Path(__file__).with_name("engine.py")
PEOPLE = generated_bank(7).between(2000, 2300)
SECRET = Bit("status = 'C'")
QUERIES = random_subsets(PEOPLE.ids, 60, np.random.default_rng(3))
KINDS = {"client_id": "integer", "status": "text", "amount": "integer", "duration": "integer"}
AUDIT = ("--people", "people.csv", "--secret", "status = 'C'", "--family", "subsets")


def engine(path, mode, secret=SECRET, key=("client_id",), kinds=KINDS):
    words = [sys.executable, str(ENGINE), str(path), mode]
    return CommandTarget(words, SqlQuestions("people", key, secret, PLAIN), columns=kinds)


@pytest.fixture
def path(tmp_path):
    PEOPLE.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


@pytest.mark.parametrize(
    "secret",
    [
        "status = 'C'",
        "status IN ('A', 'B') AND amount > 50000",
        "duration = 12",
        "amount > '9000'",
    ],
)
@pytest.mark.parametrize("kinds", [KINDS, {"client_id": "integer"}, {}])
def test_people_are_counted_by_their_ids_and_the_condition(path, secret, kinds):
    bit = parse_secret(secret)
    found = ask(QUERIES, engine(path, "good", bit, kinds=kinds))
    assert np.array_equal(found.values, QUERIES.dot(PEOPLE.truth(bit).astype(float)))


def test_composite_text_and_quoted_names_and_empty_cells(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('order,"my id",Status Now\nx,01,"it\'s ""C"""\nx,02,\ny,01,"it\'s ""C"""\n')
    ids = id_array([("x", "01"), ("x", "02"), ("y", "01")])
    queries = random_subsets(ids, 7, np.random.default_rng(1))
    for secret, held in (
        ("\"Status Now\" = 'it''s \"C\"'", [1, 0, 1]),
        ('"Status Now" IS NULL', [0, 1, 0]),
    ):
        target = engine(path, "good", parse_secret(secret), ("order", "my id"), {})
        assert np.array_equal(ask(queries, target).values, queries.dot(np.array(held, float)))
    with pytest.raises(TargetError, match="this engine takes one id column, not order, my id"):
        ask(queries, engine(path, "one column", None, ("order", "my id"), {}))


def test_low_counts_are_suppressed(path):
    counts = QUERIES.dot(PEOPLE.truth(SECRET).astype(float))
    assert np.array_equal(ask(QUERIES, engine(path, "hides")).released, counts >= 3)


BAD = {
    "people.csv has no column 'iban'; it has client_id, status, amount, duration": {"iban": "text"},
    "invalid literal for int": {"status": "integer"},
}


@pytest.mark.parametrize("words", BAD)
def test_a_file_that_does_not_fit_ends_in_one_line(path, words):
    with pytest.raises(TargetError, match=words):
        engine(path, "good", kinds=BAD[words]).start()


def test_what_cannot_be_asked_of_it_is_said(path):
    with pytest.raises(TargetError, match="No such file"):
        engine("absent.csv", "good").start()
    with pytest.raises(TargetError, match="counts people and adds up nothing"):
        engine(path, "good", Number("amount")).start()
    # A name that is no column is not taken for a text.
    with pytest.raises(TargetError, match="no such column: iban"):
        ask(QUERIES, engine(path, "good", parse_secret("iban = 'C'")))


FAULTS = {
    "dies": r"it ended with exit code 3: counting; the answers so far are kept",
    "raises": r"ZeroDivisionError: division by zero$",
    "spends": r"^the budget of 7 is spent$",
}


@pytest.mark.parametrize("mode", FAULTS)
def test_what_goes_wrong_ends_in_one_line_and_loses_no_answer(path, mode, tmp_path):
    journal = Journal(tmp_path / "answers.jsonl", QUERIES, SECRET, "an engine")
    with pytest.raises(Refused if mode == "spends" else TargetError, match=FAULTS[mode]):
        ask_into(journal, engine(path, mode))
    truth = QUERIES.dot(PEOPLE.truth(SECRET).astype(float))
    assert journal.answers.query.tolist() == list(range(7))
    assert np.array_equal(journal.answers.values, truth[:7])


def test_an_engine_that_refuses_ends_with_its_target(path):
    gc.disable()
    try:
        target = engine(path, "spends")
        (step,) = ask_in_steps(QUERIES, target, SECRET)
        assert step.refused == "the budget of 7 is spent"
        process = target._program._process
        del target
        assert process.poll() is not None
    finally:
        gc.enable()


def test_an_audit_ends_when_the_budget_does_and_says_what_leaked_until_then(run, path):
    target = f"cmd:{sys.executable} {ENGINE} people.csv spends"
    words = ("audit", "--no-report", target, *AUDIT, "--queries", 60, "--fail-above", 0)
    done = run(*words)
    assert done.code == 1, done.err
    assert "by the 7 answers given; 0.0% is allowed" in done.out
    assert f"7 answers about {len(PEOPLE)} people" in done.out
    assert (
        "Asking ended after 7 answers, for the system refused: the budget of 7 is spent" in done.out
    )
    assert "guessing without any answer gets" in done.out
    found = run(*words, "--folder", "again", "--json").json
    assert (found["refused"], found["answers"]) == ("the budget of 7 is spent", 7)


def test_a_question_that_is_refused_does_not_end_the_others(run, path):
    target = f"cmd:{sys.executable} {ENGINE} people.csv picks"
    done = run("audit", "--no-report", target, *AUDIT, "--queries", 60, "--json")
    assert done.code == 0, done.err
    assert (done.json["answers"], done.json["refused"]) == (48, "not on a Thursday")


def test_a_system_that_answers_nothing_is_no_audit(run, path):
    target = f"cmd:{sys.executable} {ENGINE} people.csv refuses"
    done = run("audit", "--no-report", target, *AUDIT, "--queries", 60, "--fail-above", 0.5)
    assert done.code == 2
    assert "not for you" in done.err


def test_people_that_the_file_does_not_hold_are_a_fault(path):
    strangers = People(np.arange(5), {})
    queries = random_subsets(strangers.ids, 3, np.random.default_rng(0))
    with pytest.raises(TargetError, match="KeyError"):
        ask(queries, engine(path, "good"))
