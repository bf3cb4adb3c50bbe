"""Servers that break the rules: one line each, in bounded time and memory, and nothing is lost."""

import gzip
import json
import re
import struct
import tracemalloc
from threading import Barrier, Lock

import numpy as np
import pytest

from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Journal, read_transcript
from countleak.audit.run import ask_into
from countleak.audit.targets.limits import RequestLimits
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.retries import Retries
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import NoCount, TargetError
from tests.audit.targets.hostile import (
    FLOAT8,
    INT8,
    LOGIN,
    NUMERIC,
    READY,
    TEXT,
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
QUERIES = random_subsets(np.arange(20), 30, np.random.default_rng(5))
# What these do they would do again: see test_retries.py for the rest.
ONCE = Retries(0)
PATIENT = RequestLimits(seconds=30, retries=ONCE)
NAMED = "^query 7: the answer .*; the counts are kept, so run it again"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202egnp\x9b31m"


def over_wire(server, limits=PATIENT):
    return PostgresTarget(f"postgresql://me:hush@127.0.0.1:{server.port}/x", QUESTIONS, limits)


def over_http(server, limits=PATIENT):
    return RestTarget(f"http://127.0.0.1:{server.port}", "bank", QUESTIONS, "hush", limits)


def journal(folder):
    return Journal(folder / "answers.jsonl", QUERIES, SECRET, "a hostile system")


class After:
    """Replies in order, as those of a good server, until one that is not."""

    def __init__(self, good, bad, at=7, once=False):
        self.good, self.bad, self.at, self.once = good, bad, at, once
        self.asked = 0
        self._lock = Lock()

    def __call__(self, *given):
        with self._lock:
            self.asked += 1
            is_bad = self.asked == self.at + 1 or (self.asked > self.at and not self.once)
        return self.bad if is_bad else self.good(*given)


def fails_after_seven(target, folder):
    """What is said in one line where the eighth answer is bad; the seven before are kept."""
    with pytest.raises(TargetError) as caught:
        ask_into(journal(folder), target)
    said = str(caught.value)
    assert said.isprintable(), said
    assert "hush" not in said
    assert len(journal(folder).answers) == 7
    return said


def no_header(size):
    """The beginning of an answer of so many bytes."""
    return row(b"5").partition(b"D")[0] + b"D" + struct.pack("!ihi", size, 1, size - 10)


FLOODS = {
    "rows": lambda peer: peer.stream(row(b"5")[:-6] * 500),
    "one row without end": lambda peer: (peer.send(no_header(2**30)), peer.stream(b"1" * 2**20)),
    "notices": lambda peer: peer.stream(error(b"x" * 100, kind=b"N") * 500),
    "notifications": lambda peer: peer.stream(message(b"A", b"\0\0\0\1name\0body\0") * 500),
    "parameters": lambda peer: peer.stream(message(b"S", b"name\0value\0") * 500),
    "an error without end": lambda peer: (
        peer.send(b"E" + struct.pack("!i", 2**30)),
        peer.stream(b"M" * 2**20),
    ),
    "copies": message(b"H", b"\0\0\0"),
    "two answers": row(b"5")[:-6] + row(b"6"),
    "no message of the protocol": b"?" * 100,
    "a length below zero": b"D" + struct.pack("!i", -5) * 9,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_over_the_wire_is_refused_and_bounded(flood, tmp_path):
    # The server's own buffers count too, so the bound here is a loose one.
    with hostile(postgres(After(lambda _: row(b"5"), FLOODS[flood]))) as server:
        tracemalloc.start()
        fails_after_seven(over_wire(server), tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2**25


STALLS = {
    "an answer": postgres(lambda _: lambda peer: peer.stall()),
    "in mid-answer": postgres(lambda _: lambda peer: (peer.send(row(b"5")[:20]), peer.stall())),
    "a trickle": postgres(lambda _: lambda peer: trickle(peer, error(b"x" * 9999, kind=b"N"))),
    "after login": lambda peer: (startup(peer), peer.send(LOGIN + READY), peer.stall()),
    "before login": lambda peer: (startup(peer), peer.stall()),
    "in the handshake": lambda peer: (peer.read(8), peer.send(b"S"), peer.stall()),
    "at once": lambda peer: peer.stall(),
}


def trickle(peer, data):
    """Send bytes one by one, at a pace that no timeout of a single read notices."""
    for each in range(len(data)):
        peer.send(data[each : each + 1])
        if peer.over.wait(0.05):
            return


@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize("stall", STALLS)
def test_whoever_stalls_is_given_up(stall, connections):
    limits = RequestLimits(connections, seconds=0.3, retries=ONCE)
    with hostile(STALLS[stall]) as server:
        target = over_wire(server, limits)
        with pytest.raises(TargetError, match=r"no (answer|connection) within 0\.3 seconds"):
            list(target.answer(QUERIES, np.arange(30)))


HTTP_STALLS = {
    "at once": lambda peer: peer.stall(),
    "in the status": lambda peer: (peer.send(b"HTTP/1.1 20"), peer.stall()),
    "trickled headers": lambda peer: (
        peer.until(b"\r\n\r\n"),
        trickle(peer, b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 999),
    ),
    "a trickled body": lambda peer: (
        peer.until(b"\r\n\r\n"),
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"),
        trickle(peer, b"x" * 9999),
    ),
    "continue for ever": lambda peer: peer.stream(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "trailers": lambda peer: (
        peer.until(b"\r\n\r\n"),
        peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"),
        peer.stream(b"x: y\r\n" * 100),
    ),
    "never completed": http(
        lambda method, path, _: response(
            b'{"query_id": "a"}' if method == "POST" else b'{"query": {"completed": false}}'
        )
    ),
}


@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize("stall", HTTP_STALLS)
def test_whoever_stalls_over_http_is_given_up(stall, connections):
    with hostile(HTTP_STALLS[stall]) as server:
        target = over_http(server, RequestLimits(connections, seconds=0.3, retries=ONCE))
        with pytest.raises(TargetError, match=r"no answer within 0\.3 seconds"):
            list(target.answer(QUERIES, np.arange(30)))


def test_a_count_that_is_null_was_suppressed():
    with hostile(postgres(lambda _: row(None))) as server:
        answers = Answers.join(over_wire(server).answer(QUERIES, np.arange(3)))
    assert not answers.released.any()


NO_VALUES = {
    "NaN": row(b"NaN", FLOAT8),
    "Infinity": row(b"Infinity", FLOAT8),
    "1e14": row(b"1e14", FLOAT8),
    "a large whole number": row(b"9" * 18),
    "hundreds of digits": row(b"9" * 400, NUMERIC),
    "abc as int8": row(b"abc", INT8),
    "text": row(b"5", TEXT),
    "nothing": row(b""),
    "underscores": row(b"1_0"),
    "no row": message(b"T", b"\0\0") + message(b"C", b"SELECT 0\0") + READY,
    "no result": message(b"I") + READY,
}


@pytest.mark.parametrize("value", NO_VALUES)
def test_a_bad_value_is_named_and_everything_else_kept(value, tmp_path):
    replies = After(lambda _: row(b"5"), NO_VALUES[value], once=True)
    with hostile(postgres(replies)) as server:
        with pytest.raises(
            NoCount, match=r"^query 7: the answer .*; the counts are kept"
        ) as caught:
            ask_into(journal(tmp_path), over_wire(server))
        assert str(caught.value).isprintable()
        assert journal(tmp_path).open_questions().tolist() == [7]
        assert len(ask_into(journal(tmp_path), over_wire(server))) == 30
    assert replies.asked == 31


def rest(reply):
    """A REST server whose fetched answers are ``reply(...)``, text of JSON or bytes."""

    def said(method, path, body):
        if method == "POST":
            return response(b'{"success": true, "query_id": "a-1"}')
        assert path == "/api/queries/a-1?wait=5"
        answer = reply(method, path, body)
        return response(answer.encode()) if isinstance(answer, str) else answer

    return http(said)


def completed(value: str) -> str:
    return f'{{"query": {{"completed": true, "rows": [{{"row": [{value}]}}]}}}}'


NO_JSON_VALUES = (
    "NaN", "-Infinity", "1e14", "1e999", "9" * 400, "null", '"5"', "true", "[5]", "{}", "1, 2"
)  # fmt: skip


@pytest.mark.parametrize("value", NO_JSON_VALUES, ids=lambda value: value[:9])
def test_a_bad_value_over_http_is_named_and_everything_else_kept(value, tmp_path):
    replies = After(lambda *_: completed("5"), completed(value), once=True)
    with hostile(rest(replies)) as server:
        with pytest.raises(NoCount, match=NAMED):
            ask_into(journal(tmp_path), over_http(server))
        assert len(ask_into(journal(tmp_path), over_http(server))) == 30
    assert replies.asked == 31


BOMB = gzip.compress(b"[" * 2**26)
HTTP_FAULTS = {
    "a gzip bomb": (response(BOMB, "content-encoding: gzip"), "compressed"),
    "a long body": (response(b" " * (2**20 + 1)), "longer than 1 MiB"),
    "a body without end": (
        lambda peer: (
            peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            peer.stream(b"100000\r\n" + b" " * 2**20 + b"\r\n"),
        ),
        "longer than 1 MiB",
    ),
    "a body of 2 GB": (
        lambda peer: (
            peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2147483648\r\n\r\n"),
            peer.stream(b" " * 2**20),
        ),
        "longer than 1 MiB",
    ),
    "a header without end": (lambda peer: peer.stream(b"x" * 2**16), "got more than|status line"),
    "headers without end": (
        lambda peer: (peer.send(b"HTTP/1.1 200 OK\r\n"), peer.stream(b"x: y\r\n" * 999)),
        "100 headers",
    ),
    "deep JSON": ("[" * 100_000, "status 200; check the address"),
    "another JSON": ("[]", "status 200; check the address"),
    "no JSON": ("<html>", "status 200; check the address"),
    "no query": ("{}", "no query in the answer"),
    "escapes in an error": (
        json.dumps({"query": {"completed": True, "error": f"no {ESCAPES} hush"}}),
        r"\\x1b\]0;owned",
    ),
    "escapes in a detail": (
        response(json.dumps({"detail": f"no {ESCAPES}"}).encode(), status="500 Oh"),
        r"status 500 \(no \\x1b",
    ),
    "escapes in the status": (b"HTTP/1.1 \x1b[2J\r\n\r\n", r"\\x1b"),
    "a redirect": (response(b"{}", "location: http://127.0.0.1:1/", status="302 Found"), "302"),
    "an end": (lambda peer: peer.socket.shutdown(2), "closed connection|reset|Broken"),
}


@pytest.mark.parametrize("fault", HTTP_FAULTS)
def test_a_fault_over_http_is_one_line_and_bounded(fault, tmp_path):
    bad, words = HTTP_FAULTS[fault]
    with hostile(rest(After(lambda *_: completed("5"), bad))) as server:
        tracemalloc.start()
        said = fails_after_seven(over_http(server), tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert re.search(words, said)
    assert peak < 2**25


@pytest.mark.parametrize(
    "query_id",
    ["../../admin", "..", ".", "a/../b", "%2e%2e%2fadmin", "a?x=1", "a#b", "a\0b", "a\r\nx: y", "",
     "é", "a" * 201, 5, None, ["a"]],
    ids=repr,
)  # fmt: skip
def test_a_query_id_stays_where_it_is_put(query_id):
    paths = []

    def reply(method, path, _):
        paths.append(path)
        return response(json.dumps({"query_id": query_id}).encode())

    with (
        hostile(http(reply)) as server,
        pytest.raises(TargetError, match="not accepted with an id"),
    ):
        list(over_http(server).answer(QUERIES, np.arange(30)))
    assert paths == ["/api/queries?wait=5"]


@pytest.mark.parametrize("state", [b"XX000", b"0A000"])
def test_what_a_server_says_reaches_no_terminal_and_no_password_comes_back(state, tmp_path):
    words = f"{ESCAPES} hush\nmore".encode()
    with hostile(postgres(After(lambda _: row(b"5"), error(words, state) + READY))) as server:
        said = fails_after_seven(over_wire(server), tmp_path)
    assert r"\x1b]0;owned" in said
    assert "more" not in said.replace("far more", "")


def test_a_password_that_the_server_repeats_at_login_is_not_shown(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "from-the-variable")

    def serve(peer):
        startup(peer)
        peer.send(message(b"R", struct.pack("!i", 3)))
        _, size = struct.unpack("!ci", peer.read(5))
        password = peer.read(size - 4).rstrip(b"\0")
        peer.send(error(b"no entry with " + password, b"28P01"))

    with hostile(serve) as server:
        for given, password in (("", "from-the-variable"), (":own%20one", "own one")):
            address = f"postgresql://me{given}@127.0.0.1:{server.port}/x"
            with pytest.raises(TargetError, match=r"no entry with \*\*\*") as caught:
                PostgresTarget(address, QUESTIONS).connect()
            assert password not in str(caught.value)


def test_answers_in_flight_when_one_fails_are_kept(tmp_path):
    together = Barrier(3)

    def reply(_):
        number = together.wait(30)
        return error(b"no") + READY if number == 0 else row(b"5")

    limits = RequestLimits(3)
    with hostile(postgres(reply)) as server, pytest.raises(TargetError, match="no"):
        ask_into(journal(tmp_path), over_wire(server, limits))
    kept = read_transcript(tmp_path / "answers.jsonl", QUERIES, partial=True)
    assert len(kept) == 2
