"""A stuck statement holds nobody up, and SIGTERM ends the server whatever runs."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from tests.diffix.server.loads import Hostile
from tests.diffix.server.process import serving

ROOT = Path(__file__).parents[3]
COUNT = "SELECT count(*) FROM loans"


@contextmanager
def hostile_server(drain_seconds: float):
    """A server's process and its ports."""
    paths = [str(ROOT), *(path for path in sys.path if path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.diffix.server.hostile_server", str(drain_seconds)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        yield process, int(process.stdout.readline()), int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def connect(port, user="analyst"):
    words = f"host=127.0.0.1 port={port} user={user} dbname=bank"
    return psycopg.connect(words, autocommit=True)


def error_of(connection, statement) -> str:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    return f"{caught.value.sqlstate}: {caught.value.diag.message_primary}"


def wait_until_busy(workers):
    """Wait until a statement runs in one of them."""
    while max(worker.cpu_percent() for worker in workers) < 1:
        pass


@pytest.mark.parametrize(
    "way",
    [
        "in DuckDB",
        pytest.param("in Python", marks=pytest.mark.slow),
        pytest.param("in C", marks=pytest.mark.slow),
    ],
)
def test_a_stuck_statement_holds_up_neither_protocol_nor_sigterm(way):
    with hostile_server(0.1) as (process, port, rest), ThreadPoolExecutor(1) as pool:
        workers = psutil.Process(process.pid).children()
        with connect(port) as stuck, connect(port, "other") as other:
            failed = pool.submit(error_of, stuck, Hostile.asking(way))
            wait_until_busy(workers)
            for _ in range(5):
                assert other.execute(COUNT).fetchone()[0] > 800
                assert httpx.get(f"http://127.0.0.1:{rest}/api/health").status_code == 200
            assert not failed.done()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert failed.result().startswith("57P01: ")
        assert not psutil.wait_procs(workers, timeout=30)[1]


def test_a_stopping_server_refuses_what_is_new():
    with hostile_server(60) as (process, port, rest), ThreadPoolExecutor(1) as pool:
        workers = psutil.Process(process.pid).children()
        with connect(port) as stuck, connect(port, "other") as other:
            failed = pool.submit(error_of, stuck, Hostile.asking("in Python"))
            wait_until_busy(workers)
            process.send_signal(signal.SIGTERM)
            while True:
                try:
                    other.execute(COUNT)
                except psycopg.Error as error:
                    assert error.sqlstate == "57P01"
                    break
            given = {"query": {"statement": COUNT, "data_source_name": "bank"}}
            refused = httpx.post(f"http://127.0.0.1:{rest}/api/queries", json=given)
            assert (refused.status_code, refused.json()["detail"]) == (
                503,
                "The server is stopping.",
            )
            with pytest.raises(psycopg.OperationalError, match="refused"):
                connect(port)
            assert not failed.done()
            # Asked again, it does not wait.
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert failed.result().startswith("57P01: ")


def test_a_question_writes_nothing_to_the_log_by_itself(tmp_path):
    """The parser's own warnings quote it, escape sequences, line breaks and all."""
    with serving(tmp_path, "--demo") as (port, _, _), connect(port) as connection:
        for word in ("EXPLAIN", "COMMENT ON", "ALTER TABLE"):
            with pytest.raises(psycopg.Error):
                connection.execute(f"{word} x \x1b[31m\nforged: all is well")
    log = (tmp_path / "log").read_text()
    assert "analyst@bank" in log
    assert "\x1b" not in log
    assert not [line for line in log.splitlines() if not line.startswith("countleak: ")]
