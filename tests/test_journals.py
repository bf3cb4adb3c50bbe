"""One journal, one writer; a kill costs the questions in flight and nothing else."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

import pytest

import countleak
from countleak import journals
from countleak.errors import InputError
from countleak.journals import JournalFile, locked
from tests.audit.targets.hostile import hostile, postgres, row

HOLD = """
import sys
from countleak.journals import JournalFile
with JournalFile(sys.argv[1], "answers", {}).held():
    print("held", flush=True)
    sys.stdin.read()
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(countleak.__file__).parent.parent)}


@contextmanager
def holder(path):
    """A process that holds a journal until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_writer_hears_who_is_there_and_a_kill_lets_go(tmp_path):
    path = tmp_path / "new" / "answers.jsonl"
    with holder(path) as process:
        with pytest.raises(InputError) as caught, JournalFile(path, "answers", {}).held():
            raise AssertionError
        assert f"another run is writing there (process {process.pid} on " in str(caught.value)
        assert "\n" not in str(caught.value)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        # What the dead left behind says nothing.
        assert [each.name for each in path.parent.iterdir()] == [".answers.jsonl.lock"]
        with JournalFile(path, "answers", {}).held():
            pass
    assert not list(path.parent.iterdir())


def test_two_journals_of_one_process_are_two_writers(tmp_path):
    path = tmp_path / "answers.jsonl"
    first, second = (JournalFile(path, "answers", {}) for _ in range(2))
    with first.held():
        first.append([{"query": 0}])
        with pytest.raises(InputError, match="another run is writing there"):
            second.append([{"query": 1}])
        with first.held():
            first.append([{"query": 1}])
    with second.held() as changed:
        assert changed
        assert [record for _, record in second.earlier.lines] == [{"query": 0}, {"query": 1}]
        second.append([{"query": 2}])
    assert len(path.read_text().splitlines()) == 4
    assert [each.name for each in tmp_path.iterdir()] == ["answers.jsonl"]


def test_a_lock_that_was_removed_while_it_was_awaited_counts_for_nothing(tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    lock = tmp_path / ".answers.jsonl.lock"
    flock, removed = journals.fcntl.flock, []

    def flock_late(handle, how):
        if not removed:
            removed.append(lock.unlink())
        flock(handle, how)

    monkeypatch.setattr(journals.fcntl, "flock", flock_late)
    with locked(path):
        assert str(os.getpid()) in lock.read_text()
        with pytest.raises(InputError, match="another run"), locked(path):
            raise AssertionError


def test_a_folder_made_for_a_journal_goes_if_nothing_comes(tmp_path):
    path = tmp_path / "new" / "newer" / "answers.jsonl"
    with JournalFile(path, "answers", {}).held():
        assert path.parent.is_dir()
    assert not list(tmp_path.iterdir())


def test_each_record_is_in_the_file_before_the_block_ends(tmp_path):
    path = tmp_path / "answers.jsonl"
    journal = JournalFile(path, "answers", {})
    with journal.held():
        for count in range(1, 5):
            journal.append([{"query": count}])
            assert len(path.read_text().splitlines()) == count + 1


class Counting:
    """Counts every question, tells who waits for the next, and answers none while ``held``."""

    def __init__(self, held=False):
        self.asked, self._held = Counter(), held
        self._changed = Condition()

    def __call__(self, text):
        with self._changed:
            self.asked[text] += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: not self._held, 120)
        return row(b"%d" % (len(text) % 90 + 3))

    def release(self):
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self.asked.total() >= count, 60)


def command(*words):
    return [sys.executable, "-m", "countleak.cli", *map(str, words)]


@pytest.mark.parametrize("connections", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_a_kill_repeats_only_the_questions_in_flight(tmp_path, connections):
    plan = ("plan", "--people", "census:30", "--family", "subsets", "-m", 600)
    subprocess.run(command(*plan), cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    server, kills = Counting(), 3
    with hostile(postgres(server)) as listening:
        asking = command(
            "ask", "queries.jsonl", "--people", "census:30", "--secret", "sex = 1", "--table",
            "loans", "--connections", connections, "--target",
            f"postgresql://me@127.0.0.1:{listening.port}/x",
        )  # fmt: skip
        for kill in range(1, kills + 1):
            process = subprocess.Popen(
                asking, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL
            )
            server.wait_for(100 * kill)
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) == -signal.SIGKILL
        subprocess.run(asking, cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    assert len(server.asked) == 600
    assert server.asked.total() <= 600 + kills * connections
    _, *answers = map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())
    assert sorted(answer["query"] for answer in answers) == list(range(600))
    assert not list(tmp_path.glob(".*"))


def test_two_at_once_are_one_and_a_line(tmp_path):
    subprocess.run(
        command("plan", "--people", "census:30", "--family", "subsets", "-m", 200),
        cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True,
    )  # fmt: skip
    server = Counting(held=True)
    with hostile(postgres(server)) as listening:
        asking = command(
            "ask", "queries.jsonl", "--people", "census:30", "--secret", "sex = 1", "--table",
            "loans", "--target", f"postgresql://me@127.0.0.1:{listening.port}/x", "--timeout", 120,
        )  # fmt: skip
        first = subprocess.Popen(asking, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        server.wait_for(1)
        second = subprocess.run(
            asking, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
        )
        server.release()
        assert first.wait(120) == 0
    assert second.returncode == 2
    assert f"another run is writing there (process {first.pid} on" in second.stderr
    assert set(server.asked.values()) == {1}
    assert len(server.asked) == 200
