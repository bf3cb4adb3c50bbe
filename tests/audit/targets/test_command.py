"""A program as a target: each runs in a process of its own, good ones and bad ones."""

import collections
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from countleak.attack.queries.ids import id_array
from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit, Number
from countleak.attack.transcript import Answers, Journal, read_transcript
from countleak.audit.run import ask, ask_into
from countleak.audit.targets.command import CommandTarget
from countleak.audit.targets.pool import RequestLimits
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError, NoCount, Refused, TargetError

SECRET = Bit("status = 'C'")
QUESTIONS = SqlQuestions("loans", ("uid",), SECRET, PLAIN)
IDS = np.arange(20)
QUERIES = random_subsets(IDS, 30, np.random.default_rng(5))
EVENS = QUERIES.dot((IDS % 2 == 0).astype(float))
PROGRAM = Path(__file__).with_name("programs.py")


def target_of(mode, *files, limits=None, questions=QUESTIONS):
    words = [sys.executable, str(PROGRAM), mode, *map(str, files)]
    return CommandTarget(words, questions, limits, {"uid": "integer", "status": "text"})


def alive(group):
    """The processes of a group that still run, once there was time for them to end."""
    end = monotonic() + 10
    while found := [each for each in Path("/proc").glob("[0-9]*/stat") if runs_in(group, each)]:
        if monotonic() > end:
            break
    return found


def runs_in(group, stat):
    try:
        state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    # One that only waits to be forgotten does not run.
    return int(of_group) == group and state != "Z"


def journal(folder, system="a program"):
    return Journal(folder / "answers.jsonl", QUERIES, SECRET, system)


@pytest.mark.parametrize(("mode", "connections"), [("good", 1), ("good", 4), ("backwards", 4)])
def test_a_program_answers_in_any_order(mode, connections):
    queries = random_subsets(IDS, 32, np.random.default_rng(5))
    target = target_of(mode, limits=RequestLimits(connections))
    found = ask(queries, target)
    assert np.array_equal(found.values, queries.dot((IDS % 2 == 0).astype(float)))
    assert str(target).endswith(r"programs.py good (evens\x1b[2J, exactly)".replace("good", mode))
    target.close()


def test_what_a_program_is_told(tmp_path):
    key = ("branch", "account")
    queries = random_subsets(id_array([("a", 1), ("b", 2)]), 4, np.random.default_rng(1))
    target = target_of("hello", tmp_path / "hello", questions=SqlQuestions("loans", key, SECRET))
    target.start()
    target.close()
    assert json.loads((tmp_path / "hello").read_text()) == {
        "id": 0,
        "protocol": 1,
        "table": "loans",
        "key": ["branch", "account"],
        "secret": "status = 'C'",
        "sum": None,
        "dialect": "postgres",
        "columns": {"uid": "integer", "status": "text"},
    }
    (question,) = target.questions.asked_in_parts(queries, np.array([1]))
    assert question.statement.members == queries.ids[queries.matrix[1] == 1].tolist()
    assert question.statement.held == "\"status\" = 'C'"
    assert question.statement.sql.endswith(f"WHERE {question.statement.where}")
    sums = SqlQuestions("loans", key, Number("amount"))
    assert next(sums.asked_in_parts(queries, np.array([0]))).statement.held is None


def test_suppressed_answers_are_marked():
    found = ask(QUERIES, target_of("suppresses"))
    assert np.array_equal(found.released, EVENS >= 5)


def test_a_flood_of_errors_holds_nothing_up():
    assert np.array_equal(ask(QUERIES, target_of("stderr")).values, EVENS)


FAULTS = {
    "garbage": "it sent 'what\\?', which is no answer of the protocol",
    "no object": "no answer of the protocol",
    "deep": "no answer of the protocol",
    "huge line": "a line of more than 64 KiB",
    "endless line": "a line of more than 64 KiB",
    "wrong id": "it answered id 1000000, which was not asked",
    "twice": "was not asked or is answered",
    "text id": "no answer of the protocol",
    "exit": r"it ended with exit code 1: budget file \\x1b\[2J missing; the answers so far",
    "killed": "it was killed by signal 9",
    "closed": "it closed its output",
    "error": r"no such \\x1b\[2J column",
    "forks": "it ended with exit code 1: left a child behind|no answer within",
    "silence": r"no answer within 0\.5 seconds",
}


@pytest.mark.parametrize("mode", FAULTS)
@pytest.mark.parametrize("connections", [1, 3])
def test_a_broken_program_ends_in_one_line_and_loses_nothing(mode, connections, tmp_path):
    seconds = 0.5 if mode in ("silence", "forks") else 30
    target = target_of(mode, limits=RequestLimits(connections, seconds=seconds))
    with pytest.raises(TargetError, match=FAULTS[mode]) as caught:
        ask_into(journal(tmp_path), target)
    assert str(caught.value).isprintable()
    kept = journal(tmp_path).answers
    assert len(kept) >= 7 - (mode == "twice")
    assert np.array_equal(kept.values, EVENS[kept.query]) or mode == "twice"
    process = target._program._process
    target.close()
    assert not alive(process.pid)


@pytest.mark.parametrize("mode", ["nan", "infinity", "1e14", "null", "text", "true", "list"])
def test_a_bad_value_is_named_and_everything_else_kept(mode, tmp_path):
    with pytest.raises(NoCount, match=r"^query 7: the answer .*; the counts are kept"):
        ask_into(journal(tmp_path), target_of(mode))
    assert journal(tmp_path).open_questions().tolist() == [7]


def test_a_number_of_thousands_of_digits_is_no_count(tmp_path):
    with pytest.raises(NoCount, match="query 7"):
        ask_into(journal(tmp_path), target_of("digits"))


def test_a_refusal_is_in_the_words_of_the_program(tmp_path):
    with pytest.raises(Refused, match=r"^budget spent$"):
        ask_into(journal(tmp_path), target_of("refused"))
    assert len(journal(tmp_path).answers) == 7


STARTS = {
    "other protocol": "does not speak version 1 of the protocol",
    "no table": "no such table",
    "deaf": r"no answer within 0\.5 seconds",
}


@pytest.mark.parametrize("mode", STARTS)
def test_a_program_that_does_not_begin_well(mode):
    seconds = 0.5 if mode == "deaf" else 30
    with pytest.raises(TargetError, match=STARTS[mode]):
        ask(QUERIES, target_of(mode, limits=RequestLimits(seconds=seconds)))


def test_commands_that_cannot_be_run_and_what_is_shown_of_them():
    with pytest.raises(TargetError, match="cannot be started"):
        CommandTarget("/no/such/program x", QUESTIONS).start()
    for command in ("", "'unclosed", " ", "''"):
        with pytest.raises(InputError):
            CommandTarget(command, QUESTIONS)
    shown = str(CommandTarget("python engine.py --password hush", QUESTIONS))
    assert shown == "cmd:python engine.py ..."
    assert str(CommandTarget("engine mysql://me:hush@x more", QUESTIONS)) == "cmd:engine ..."
    # No shell reads it.
    with pytest.raises(TargetError):
        CommandTarget("true; touch pwned", QUESTIONS).start()
    assert not Path("pwned").exists()


def test_what_a_program_repeats_of_its_command_is_hidden(tmp_path):
    words = ["--pw", "hush-hush", "--key=pss$t", "postgresql://me:p@wd1@h/x"]
    with pytest.raises(TargetError, match="cannot log in with") as caught:
        ask_into(journal(tmp_path), target_of("repeats", tmp_path / "log", *words))
    assert not any(secret in str(caught.value) for secret in ("hush", "pss", "wd1"))
    assert "--pw" in str(caught.value)


def test_the_program_stays_between_batches_and_goes_with_its_target(tmp_path):
    target = target_of("good", tmp_path / "log")
    parts = [Answers.join(target.answer(QUERIES, np.arange(k, k + 10))) for k in (0, 10, 20)]
    assert np.array_equal(Answers.join(parts).values, EVENS)
    process = target._program._process
    del target
    assert not alive(process.pid)


@pytest.mark.slow
def test_kill_9_at_any_moment_repeats_only_what_was_in_flight(tmp_path):
    """The journal is resumed after every kill; the program notes what it was asked."""
    (tmp_path / "people.csv").write_text("uid,status\n" + "".join(f"{k},C\n" for k in range(20)))
    command = [sys.executable, "-m", "countleak.cli"]
    plan = [
        *command,
        "plan",
        "--people",
        "people.csv",
        "--family",
        "subsets",
        "-m",
        "400",
    ]
    subprocess.run(plan, cwd=tmp_path, check=True, capture_output=True)
    program = f"cmd:{sys.executable} {PROGRAM} good {tmp_path / 'log'}"
    ask_all = [*command, "ask", "queries.jsonl", "--target", program, "--people", "people.csv"]
    ask_all += ["--secret", "status = 'C'", "--connections", "3", "--rate", "400"]
    rng, kills, connections = random.Random(9), 0, 3
    log = tmp_path / "log"
    while True:
        before = len(log.read_text().splitlines()) if log.exists() else 0
        running = subprocess.Popen(ask_all, cwd=tmp_path, stderr=subprocess.DEVNULL)
        goal = before + rng.randrange(1, 60)
        # Killed once so many more were asked, at whatever point of their answers.
        while running.poll() is None and kills < 8:
            if log.exists() and len(log.read_text().splitlines()) >= goal:
                running.send_signal(signal.SIGKILL)
                kills += 1
                break
        code = running.wait(120)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    from countleak.attack.queries.files import read_queries

    queries = read_queries(tmp_path / "queries.jsonl")
    found = read_transcript(tmp_path / "answers.jsonl", queries)
    assert np.array_equal(found.values, queries.dot((queries.ids % 2 == 0).astype(float)))
    asked = collections.Counter(log.read_text().splitlines())
    meant = collections.Counter(
        json.dumps(queries.ids[row == 1].tolist()) for row in queries.matrix
    )
    assert set(asked) == set(meant)
    assert kills >= 5
    assert sum((asked - meant).values()) <= kills * connections
