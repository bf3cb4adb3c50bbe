"""Mutated replies: the client ends with one line, in bounded time and memory, and loses nothing."""

import random
import socket
import tracemalloc
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Journal
from countleak.audit.run import ask_into
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.retries import Retries
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import TargetError
from tests.audit.targets.hostile import (
    LOGIN,
    READY,
    SET,
    error,
    hostile,
    http,
    message,
    postgres,
    response,
    row,
    startup,
)

SECRET = Bit("status = 'C'")
QUESTIONS = SqlQuestions("loans", ("client_id",), SECRET, PLAIN)
QUERIES = random_subsets(np.arange(9), 6, np.random.default_rng(6))
# Nobody stalls here: after a mutated reply the server has nothing more to say.
LIMITS = RequestLimits(seconds=60, retries=Retries(0))
GOOD = 4

WIRE = (
    row(b"17"),
    row(None),
    error(b"no") + READY,
    error(b"look", kind=b"N") + row(b"3"),
    message(b"S", b"TimeZone\0UTC\0") + message(b"A", b"\0\0\0\1a\0b\0") + row(b"12.5", 1700),
    message(b"G", b"\0\0\0") + READY,
    message(b"I") + READY,
)
LOGINS = (
    LOGIN + message(b"S", b"server_version\x0018\0") + message(b"K", b"\0" * 8) + READY,
    message(b"R", b"\0\0\0\3"),
    message(b"R", b"\0\0\0\x0aSCRAM-SHA-256\0\0"),
    message(b"v", b"\0\3\0\0\0\0\0\0"),
    error(b"no", b"28000"),
    b"N",
    b"S",
)
COMPLETED = b'{"query": {"completed": true, "rows": [{"row": [17], "released": true}]}}'
HTTP = (
    response(COMPLETED),
    response(b'{"query": {"completed": true, "error": "no"}}'),
    response(b'{"detail": "no"}', status="404 Not Found"),
    response(COMPLETED, "content-encoding: gzip"),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n49\r\n%s\r\n0\r\n\r\n" % COMPLETED,
    b"HTTP/1.1 100 Continue\r\n\r\n" + response(COMPLETED),
    b"HTTP/1.0 200 OK\r\n\r\n" + COMPLETED,
)
PIECES = (
    b"",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x1b[2J",
    b"\r\n",
    b"NaN",
    b"1e999",
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The same with a few bytes changed, removed, repeated or put in."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        until = min(len(data), at + rng.choice((0, 1, 4, 20)))
        middle = rng.choice(
            (rng.choice(PIECES), bytes([rng.randrange(256)]), 3 * data[at:until], b"")
        )
        data = data[:at] + middle + data[until:]
    return data


def check(number: int, target, folder) -> None:
    """Ask of a target that answers four questions well; whatever follows is one clean line."""
    path = folder / f"{number}.jsonl"
    journal = Journal(path, QUERIES, SECRET, "a fuzzed system")
    try:
        ask_into(journal, target)
    except TargetError as fault:
        assert str(fault).isprintable(), (number, fault)
        assert len(str(fault)) < 1000
        assert "hush" not in str(fault), (number, fault)
    kept = Journal(path, QUERIES, SECRET, "a fuzzed system").answers
    assert kept.query[:GOOD].tolist() == list(range(GOOD)), number
    assert (kept.values[:GOOD] == 17).all()


def end(peer) -> None:
    """Say that there is nothing more to come."""
    with suppress(OSError):
        peer.socket.shutdown(socket.SHUT_WR)


class Fuzzed:
    """Good replies to four questions, and then a mutated one, and an end."""

    def __init__(self, good: bytes, samples, rng):
        self._good, self._samples, self._rng = good, samples, rng
        self._number = count()

    def __call__(self, *_):
        if next(self._number) < GOOD:
            return self._good
        data = mutated(self._rng.choice(self._samples), self._rng)

        def say(peer):
            peer.send(data)
            end(peer)

        return say


def fuzz_wire(number: int, folder) -> None:
    rng = random.Random(number)
    with hostile(postgres(Fuzzed(row(b"17"), WIRE, rng))) as server:
        address = f"postgresql://me:hush@127.0.0.1:{server.port}/x"
        check(number, PostgresTarget(address, QUESTIONS, LIMITS), folder)


def fuzz_login(number: int, folder) -> None:
    rng = random.Random(number)

    def serve(peer):
        startup(peer)
        peer.send(mutated(rng.choice(LOGINS), rng) + SET * 2)
        end(peer)
        peer.stall()

    with hostile(serve) as server:
        address = f"postgresql://me:hush@127.0.0.1:{server.port}/x?sslmode=disable"
        try:
            PostgresTarget(address, QUESTIONS, LIMITS).connect().close()
        except TargetError as fault:
            assert str(fault).isprintable(), (number, fault)
            assert "hush" not in str(fault), (number, fault)


def fuzz_http(number: int, folder) -> None:
    rng = random.Random(number)
    fuzzed = Fuzzed(response(COMPLETED), HTTP, rng)

    def reply(method, path, body):
        return response(b'{"query_id": "a"}') if method == "POST" else fuzzed()

    with hostile(http(reply)) as server:
        target = RestTarget(f"http://127.0.0.1:{server.port}", "x", QUESTIONS, "hush", LIMITS)
        check(number, target, folder)


def fuzz_accepted(number: int, folder) -> None:
    """The reply to the query being handed in is mutated, after four good ones."""
    rng = random.Random(number)
    fuzzed = Fuzzed(response(b'{"query_id": "a"}'), (response(b'{"query_id": "a-b"}'),), rng)

    def reply(method, path, body):
        return fuzzed() if method == "POST" else response(COMPLETED)

    with hostile(http(reply)) as server:
        target = RestTarget(f"http://127.0.0.1:{server.port}", "x", QUESTIONS, "hush", LIMITS)
        check(number, target, folder)


FUZZERS = (fuzz_wire, fuzz_login, fuzz_http, fuzz_accepted)


@pytest.mark.parametrize("fuzz", FUZZERS)
def test_mutated_replies(fuzz, tmp_path):
    run(fuzz, range(60), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fuzz", FUZZERS)
def test_thousands_of_mutated_replies(fuzz, tmp_path):
    run(fuzz, range(1000, 3000), tmp_path)


def run(fuzz, numbers, folder) -> None:
    tracemalloc.start()
    try:
        for number in numbers:
            fuzz(number, folder)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()
