"""Bytes that no client should send: the server goes on answering others, and says why it closed."""

import random
import socket

import pytest
from pygwire import messages

from tests.diffix.server.conftest import OR, QUERY
from tests.diffix.server.raw import raw

GUARDED = messages.StartupMessage({"user": "guarded", "database": "bank"}).to_wire()
FIRST = messages.SASLInitialResponse("SCRAM-SHA-256", b"n,,n=,r=abcdefghijklmnop").to_wire()
PARSED = "SELECT count(*) FROM loans WHERE status = $1 AND client_id BETWEEN $2 AND $3"
EXTENDED = [
    messages.Parse("s", PARSED, [0, 20, 0]),
    messages.Describe("S", "s"),
    messages.Bind("p", "s", [0, 1, 0], [b"C", (0).to_bytes(8, "big"), b"9999"], [1]),
    messages.Describe("P", "p"),
    messages.Execute("p", 1),
    messages.Execute("p", 0),
    messages.Close("S", "s"),
    messages.Flush(),
    messages.Sync(),
]
# Each is said as the first, or after a welcome, and once mutated.
FIRST_SAID = [
    messages.GSSEncRequest().to_wire(),
    messages.CancelRequest(1, b"1234").to_wire(),
    GUARDED + FIRST,
    GUARDED + FIRST + messages.SASLResponse(b"c=biws,r=abcdefghijklmnop,p=AAAA").to_wire(),
]
SAID = [
    messages.Query(QUERY).to_wire(),
    messages.Query(OR).to_wire(),
    messages.Query("SELECT relname FROM pg_catalog.pg_class; SHOW all; BEGIN").to_wire(),
    messages.Query("SET x = 'y'; SELECT $1; ROLLBACK TO a").to_wire(),
    b"".join(message.to_wire() for message in EXTENDED),
    b"".join(message.to_wire() for message in reversed(EXTENDED)),
    messages.FunctionCall(1, [], [b"x"], 0).to_wire(),
    messages.CopyData(b"x").to_wire() + messages.CopyDone().to_wire(),
]


def mutated(rng: random.Random, said: bytes) -> bytes:
    """The bytes with a few of them changed, cut, doubled or moved."""
    changed = bytearray(said)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed)) if changed else 0
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[at : at + rng.randrange(1, 9)]
            case 2:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                changed[at : at + 4] = rng.choice((0, 3, 4, 5, 2**31, 2**32 - 1)).to_bytes(4, "big")
            case 4:
                changed[at:at] = changed[at : at + rng.randrange(1, 40)]
            case _:
                changed = changed[:at] if rng.random() < 0.3 else changed
    return bytes(changed)


def torment(server, count: int, seed: int, database: str) -> None:
    """Send ``count`` mutated messages or random bytes, a connection each."""
    # Other tests break what the server serves on purpose, and it says so.
    server.lines.clear()
    rng = random.Random(seed)
    startup = messages.StartupMessage({"user": "analyst", "database": database}).to_wire()
    every = [startup, messages.SSLRequest().to_wire() + startup, *FIRST_SAID]
    every += [startup + said for said in SAID]
    for number in range(count):
        with raw(server.port) as client:
            said = rng.choice(every)
            bad = mutated(rng, said) if rng.random() < 0.9 else rng.randbytes(rng.randrange(1, 99))
            if rng.random() < 0.5 and said.startswith(startup):
                # The welcome goes through, and what follows is spoilt.
                bad = startup + mutated(rng, said[len(startup) :] or b"X")
            try:
                client.send(bad)
                client.rest()
            except OSError:
                continue
        if number % 1000 == 0:
            assert server.answers()


def check_after(server, opened: int) -> None:
    assert server.answers()
    internal = [line for line in server.lines if "internal error" in line]
    assert not internal, internal[0]
    assert sum("closed: " in line for line in server.lines) >= opened


def test_spoilt_messages_harm_nobody(server):
    torment(server, 300, 1, "bank")
    check_after(server, 295)
    torment(server, 300, 3, "bank_pg")
    check_after(server, 295)
    reasons = {line.partition("closed: ")[2] for line in server.lines if "closed: " in line}
    assert {"a message that cannot be read", "client went away in mid-message"} <= reasons


@pytest.mark.slow
def test_50_000_spoilt_messages_harm_nobody(server, database):
    torment(server, 50_000, 2, database)
    check_after(server, 49_000)


def test_answers_to_many_statements_come_in_their_order(server):
    """A client may send ahead; nothing is lost or crossed."""
    with raw(server.port) as client:
        client.login()
        statuses = "ABCD" * 25
        for status in statuses:
            client.send(
                messages.Parse(
                    "", "SELECT status, count(*) FROM loans WHERE status = $1 GROUP BY 1"
                ),
                messages.Bind("", "", [], [status.encode()], []),
                messages.Execute("", 0),
                messages.Sync(),
            )
        found = []
        while len(found) < len(statuses):
            found += [
                message.columns[0].decode()
                for message in client.until(messages.ReadyForQuery)
                if isinstance(message, messages.DataRow)
            ]
        assert "".join(found) == statuses


def test_everything_after_an_error_is_passed_over_until_sync(server):
    with raw(server.port) as client:
        client.login()
        good = (messages.Parse("", QUERY), messages.Bind(), messages.Execute())
        client.send(messages.Parse("", OR), messages.Bind(), messages.Execute(), *good)
        client.send(messages.Sync(), *good, messages.Sync())
        first = client.until(messages.ReadyForQuery)
        second = client.until(messages.ReadyForQuery)
    kinds = [type(message).__name__ for message in first]
    assert kinds == ["ParseComplete", "BindComplete", "ErrorResponse", "ReadyForQuery"]
    assert [type(message).__name__ for message in second] == [
        *("ParseComplete", "BindComplete", "DataRow", "CommandComplete", "ReadyForQuery")
    ]


def test_a_port_that_is_taken_is_one_line(server, bank):
    import asyncio

    from countleak.diffix.server.options import Listening
    from countleak.diffix.server.server import Server
    from countleak.errors import InputError
    from tests.diffix.server.conftest import USERS, served_bank

    taken = Server([served_bank(bank)], USERS, Listening(postgres_port=server.port, rest_port=0))
    with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{server.port}"):
        asyncio.run(taken.serve(lambda *_: None, asyncio.Event()))
    with socket.create_connection(("127.0.0.1", server.port)):
        pass
