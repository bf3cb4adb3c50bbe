"""3500 questions to a server that notes each, while runs are killed or it talks rubbish."""

import collections
import hashlib
import random
import signal
import subprocess
import sys
from threading import Condition

import numpy as np
import pytest

from countleak.attack.queries.files import read_queries
from countleak.attack.transcript import read_transcript
from tests.audit.targets.hostile import TEXT, hostile, postgres, row

CONNECTIONS, KILLS = 3, 20
PEOPLE = ("--people", "bank:7", "--between", "2000", "2999")


def count_of(statement):
    """A count that hangs on the question alone, so that no answer can stand in for another."""
    return int.from_bytes(hashlib.sha256(statement.encode()).digest()[:4], "big") % 60


class Noting:
    """Replies with the count of a question, and notes it; rubbish once in ``every``."""

    def __init__(self, every=None, rubbish=()):
        self.asked, self._noted = [], Condition()
        self._every, self._rubbish, self._rng = every, rubbish, random.Random(5)

    def __call__(self, statement):
        with self._noted:
            self.asked.append(statement)
            self._noted.notify()
            if self._every is not None and self._rng.randrange(self._every) == 0:
                return self._rng.choice(self._rubbish)
        return row(str(count_of(statement)).encode())

    def wait_for(self, count):
        """Return once so many questions were asked."""
        with self._noted:
            assert self._noted.wait_for(lambda: len(self.asked) >= count, timeout=120)


def words_of(port):
    address = f"postgresql://me@127.0.0.1:{port}/bank"
    said = ("ask", "queries.jsonl", "--target", address, "--table", "loans", *PEOPLE)
    return (*said, "--secret", "status = 'C'", "--connections", str(CONNECTIONS))


def undisturbed(folder, run):
    """The answers of a run that nothing stops, and what it asks."""
    assert run("plan", *PEOPLE).code == 0
    calm = Noting()
    with hostile(postgres(calm)) as server:
        done = run(*words_of(server.port), "--out", "calm.jsonl")
    assert done.code == 0, done.err
    queries = read_queries(folder / "queries.jsonl")
    assert len(queries) == 3500
    return queries, read_transcript(folder / "calm.jsonl", queries), calm.asked


@pytest.mark.slow
def test_twenty_kills_change_no_answer_and_repeat_only_what_was_in_flight(run, tmp_path):
    queries, calm, meant = undisturbed(tmp_path, run)
    noting, rng = Noting(), random.Random(9)
    with hostile(postgres(noting)) as server:
        command = [sys.executable, "-m", "countleak.cli", *words_of(server.port), "--rate", "500"]
        for _ in range(KILLS):
            goal = len(noting.asked) + rng.randrange(1, 160)
            running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
            noting.wait_for(goal)
            running.send_signal(signal.SIGKILL)
            assert running.wait(60) == -signal.SIGKILL
        assert run(*words_of(server.port)).code == 0
    found = read_transcript(tmp_path / "answers.jsonl", queries)
    assert np.array_equal(found.values, calm.values)
    again = collections.Counter(noting.asked) - collections.Counter(meant)
    assert set(noting.asked) == set(meant)
    assert sum(again.values()) <= KILLS * CONNECTIONS
    assert max(again.values(), default=0) <= KILLS


RUBBISH = [
    row(b"a few", TEXT),
    row(b"NaN"),
    row(b"7" * 40),
    b"\0rubbish\xff" * 9,
    lambda peer: peer.socket.close(),
]


@pytest.mark.slow
def test_rubbish_once_in_a_hundred_ends_right_or_in_one_line_that_can_be_resumed(run, tmp_path):
    queries, calm, _ = undisturbed(tmp_path, run)
    noting = Noting(100, RUBBISH)
    with hostile(postgres(noting)) as server:
        for _ in range(60):
            done = run(*words_of(server.port))
            if done.code == 0:
                break
            assert done.code == 2
            assert done.err.splitlines()[-1].startswith("countleak: ")
            assert "Traceback" not in done.err
    assert done.code == 0
    found = read_transcript(tmp_path / "answers.jsonl", queries)
    assert np.array_equal(found.values, calm.values)
