"""Room for everyone: what one user or a stranger takes, others do not miss."""

import asyncio
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest
from pygwire import messages

from countleak.diffix.server import connection, extended, wire
from countleak.diffix.server.connection import Connection
from countleak.diffix.server.options import Limits
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import User, Users, hash_token
from tests.diffix.server.conftest import make_server, running, served_bank
from tests.diffix.server.loads import Hostile, bank_columns
from tests.diffix.server.raw import error_of, raw
from tests.diffix.server.test_wire import wait_for_line, wait_until

COUNT = "SELECT count(*) FROM loans"
LONG = "SELECT string_agg('x', '') FROM generate_series(1, 3000000);"
USERS = Users(
    {
        "analyst": User("analyst", trusted=True),
        "other": User("other", trusted=True),
        "third": User("third", tokens=(hash_token("third"),)),
    }
)


@pytest.fixture(scope="module")
def small(bank):
    limits = Limits(
        connections=6,
        user_connections=3,
        login_seconds=1,
        stall_seconds=1,
        queries_kept=3,
        bytes_kept=20_000,
    )
    with running(make_server([served_bank(bank, limits)], limits, USERS)) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(bank):
    limits = Limits(user_connections=3, user_queries=2, queries_kept=2, memory=500)
    served = Served("bank", Hostile(bank_columns(bank)), limits, ["analyst"])
    with running(make_server([served], limits, USERS)) as found:
        yield found


def port_of(server) -> int:
    return int(server.rest.rpartition(":")[2])


def submit(server, statement=COUNT, **headers):
    given = {"query": {"statement": statement, "data_source_name": "bank"}}
    return httpx.post(f"{server.rest}/api/queries?wait=10", json=given, headers=headers)


def test_a_user_has_only_so_many_connections(small):
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(small.connect())
        with pytest.raises(psycopg.OperationalError, match="at most 3 of a user are served"):
            small.connect()
        for _ in range(3):
            stack.enter_context(small.connect(user="other"))
        with pytest.raises(psycopg.OperationalError, match="at most 6 are served"):
            small.connect(user="other")


def test_connections_that_never_log_in_take_no_ones_place(small, monkeypatch):
    monkeypatch.setattr(wire, "MOST_STARTING", 10)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(raw(small.port)) for _ in range(40)]
        with small.connect() as connection:
            assert connection.execute(COUNT).fetchone()[0] > 800
        state, text = error_of(idle[0].next())
        assert (state, text) == ("53300", "too many connections are logging in; log in sooner")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /api/health HTTP/1.1\r\n",
        b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /",
        b"POST /api/queries HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: 9\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "half a second head", "half a body"],
)
def test_half_a_request_ends_in_time_and_takes_no_ones_place(small, said):
    with contextlib.ExitStack() as stack:
        halves = []
        for _ in range(12):
            client = socket.create_connection(("127.0.0.1", port_of(small)), timeout=30)
            halves.append(stack.enter_context(client))
            client.sendall(said)
        assert submit(small).json()["query"]["completed"]
        for client in halves:
            with contextlib.suppress(ConnectionResetError):
                while client.recv(1000):
                    pass


def test_a_user_has_only_so_many_requests_at_a_time(bank):
    limits = Limits(user_connections=1)
    served = Served("bank", Hostile(bank_columns(bank)), limits, ["analyst"])
    with running(make_server([served], limits, USERS)) as found:
        given = {"statement": Hostile.asking("in Python"), "data_source_name": "bank"}
        api = f"{found.rest}/api/queries"
        own = f"{api}/{httpx.post(api, json={'query': given}).json()['query_id']}"
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(httpx.get, f"{own}?wait=30", timeout=60)
            while httpx.get(own).status_code == 200:
                assert not waiting.done()
            assert httpx.get(own).status_code == 429
            assert submit(found, **{"auth-token": "third"}).json()["query"]["completed"]
            httpx.post(f"{own}/cancel", json={})
            assert waiting.result().json()["query"]["state"] == "cancelled"


@pytest.mark.parametrize("way", ["failing", "killing", "nested", "in memory"])
def test_whatever_fails_ends_its_query(hostile, way):
    for _ in range(3):
        query = submit(hostile, Hostile.asking(way)).json()["query"]
        assert (query["state"], query["completed"], query["rows"]) == ("error", True, [])
        assert query["error"]
    assert submit(hostile).json()["query"]["state"] == "completed"
    with hostile.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute(Hostile.asking(way))
        # The connection outlives its statement.
        assert connection.execute(COUNT).fetchone()[0] > 800


def test_one_users_results_push_out_no_others(small):
    kept = submit(small, **{"auth-token": "third"}).json()["query_id"]
    own = [submit(small).json()["query_id"] for _ in range(6)]
    found = [httpx.get(f"{small.rest}/api/queries/{name}").status_code for name in own]
    assert found == [404, 404, 404, 200, 200, 200]
    theirs = httpx.get(f"{small.rest}/api/queries/{kept}", headers={"auth-token": "third"})
    assert theirs.json()["query"]["completed"]


def test_results_are_kept_up_to_a_number_of_bytes(small):
    first = submit(small, f"{COUNT} -- {'x' * 15_000}").json()["query_id"]
    second = submit(small, f"{COUNT} -- {'y' * 15_000}").json()["query_id"]
    third = submit(small).json()["query_id"]
    found = [
        httpx.get(f"{small.rest}/api/queries/{name}").status_code for name in (first, second, third)
    ]
    assert found == [404, 200, 200]


def test_a_connection_holds_statements_up_to_a_number_of_bytes(small, monkeypatch):
    monkeypatch.setattr(extended, "MOST_BYTES_HELD", 100_000)
    with small.connect(autocommit=True, prepare_threshold=0) as connection:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="at most 100000 bytes"):
            for number in range(20):
                connection.execute(f"{COUNT} -- {number} {'x' * 10_000}")
        connection.execute("DEALLOCATE ALL")
        assert connection.execute(COUNT).fetchone()[0] > 800


@pytest.mark.parametrize("held", ["parameters", "values", "names", "names of portals"])
def test_a_connection_holds_few_statements_of_many_parameters(small, held):
    """Few bytes can say that there are 2,500 parameters, and that all of them are NULL."""
    with raw(small.port) as client:
        client.login()
        if held == "parameters":
            client.send(*(messages.Parse(f"s{n}", "SELECT $2500") for n in range(120)))
        elif held == "values":
            client.send(messages.Parse("s", "SELECT $2500"))
            client.send(*(messages.Bind(f"p{n}", "s", [], [None] * 2500) for n in range(120)))
        elif held == "names":
            client.send(*(messages.Parse(f"{n}{'s' * 90_000}", "SELECT 1") for n in range(60)))
        else:
            client.send(messages.Parse("s", "SELECT 1"))
            client.send(*(messages.Bind(f"{n}{'p' * 90_000}", "s") for n in range(60)))
        client.send(messages.Sync())
        found = client.until(messages.ReadyForQuery)
    assert len(found) < 110
    assert "at most 4000000 bytes" in error_of(found[-2])[1]


def test_answers_do_not_gather_until_they_are_asked_for(small):
    """A client that asks on and does not listen is waited for, and closed in the end."""
    with raw(small.port) as client:
        client.login()
        # No Sync: nothing says that the answers should come now.
        again = [messages.Bind(), messages.Execute()] * 30
        client.send(messages.Parse("", f"SELECT '{'x' * 20_000}'"), *again)
        assert isinstance(client.until(messages.DataRow)[-1], messages.DataRow)


def test_answers_to_many_statements_of_a_text_do_not_gather(small, monkeypatch):
    sent, flush = [], Connection.flush

    async def noted(self):
        sent.append(len(self._out))
        await flush(self)

    monkeypatch.setattr(Connection, "flush", noted)
    with small.connect(autocommit=True) as connection:
        connection.execute("SELECT string_agg('x', '') FROM generate_series(1, 300000);" * 20)
    assert sum(sent) > 20 * 300_000
    assert max(sent) < 2 * 300_000


def test_of_a_client_that_takes_nothing_nothing_is_kept(small):
    """Its connection counts no longer, so what it did not take must not stay in memory."""
    with raw(small.port) as client:
        client.login()
        client.send(messages.Query(LONG * 9))
        wait_for_line(small, "closed: client stalled")
        assert b"took too long" not in client.rest()


def test_a_server_stops_though_a_client_takes_nothing(bank, monkeypatch):
    connections, send_rows = [], Connection.send_rows

    async def noted(self, rows):
        connections.append(self)
        await send_rows(self, rows)

    def is_held_up():
        return connections and connections[0]._writer.transport.get_write_buffer_size() > 1_000_000

    monkeypatch.setattr(Connection, "send_rows", noted)
    limits = Limits(stall_seconds=600)
    serving = running(make_server([served_bank(bank, limits)], limits))
    with contextlib.ExitStack() as after, serving as server:
        client = after.enter_context(raw(server.port))
        client.login()
        client.send(messages.Query(LONG * 9))
        wait_until(is_held_up, server, "the client was sent everything")
    assert any("closed: server is stopping" in line for line in server.lines)


@pytest.mark.parametrize(
    "spoilt",
    [
        messages.Parse("", "SELECT 1", [20] * 2501),
        messages.Bind("", "", [], [b"1"] * 2501),
        messages.Bind("", "", [0] * 2501, []),
    ],
    ids=["types", "values", "formats"],
)
def test_a_message_of_too_many_parameters_is_not_read(server, spoilt, monkeypatch):
    """To read 60,000 takes a tenth of a second, in which nobody else is answered."""
    decoded = []
    monkeypatch.setattr(connection, "_decoded", noted(connection._decoded, decoded))
    with raw(server.port) as client:
        client.login()
        client.send(spoilt)
        assert error_of(client.next()) == ("54000", "a statement has at most 2500 parameters")
        assert client.next() is None
    assert spoilt.to_wire() not in [frame for frame, _ in decoded]


def noted(function, calls):
    """The function, which notes the arguments of its calls."""

    def wrapper(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return wrapper


def test_a_long_number_is_not_read(server):
    with raw(server.port) as client:
        client.login()
        for number, state in ((b"1" * 1000, None), (b"1" * 1001, "22023")):
            client.send(
                messages.Parse("", "SELECT $1", [1700]), messages.Bind("", "", [], [number])
            )
            client.send(messages.Sync())
            said = client.until(messages.ReadyForQuery)[1]
            assert isinstance(said, messages.BindComplete) or error_of(said)[0] == state


def test_only_queries_are_long(server):
    with raw(server.port) as client:
        client.login()
        client.send(messages.CopyData(b"x" * 10_000))
        assert error_of(client.next()) == ("08P01", "invalid message length; at most 10000 bytes")


@pytest.mark.parametrize(("times", "length"), [(20, 100), (1, 10_000)])
def test_whoever_sends_much_waits_for_a_turn(server, monkeypatch, times, length):
    """A user's connections have one turn together, taken after 20 messages or 10,000 bytes."""
    turns = []
    monkeypatch.setattr(asyncio.Lock, "acquire", noted(asyncio.Lock.acquire, turns))
    with server.connect(autocommit=True, prepare_threshold=None) as connection:
        for _ in range(times):
            assert not turns
            connection.execute(f"{COUNT} -- {'x' * length}")
        # The turn comes after an answer was sent: that the next is there tells that it came.
        connection.execute(COUNT)
    assert len(turns) == 1


def test_a_stranger_says_nothing_long(server):
    """Connections that have not logged in could take a message's length of memory each."""
    with raw(server.port) as client:
        client.start("guarded")
        assert isinstance(client.next(), messages.AuthenticationSASL)
        client.send(b"p" + (1_000_000).to_bytes(4, "big"))
        assert error_of(client.next()) == ("08P01", "invalid message length; at most 10000 bytes")


@pytest.mark.parametrize(
    "look_up",
    [
        "SELECT string_agg(x::text, ',') FROM generate_series(1, 2000000000) AS t(x)",
        "SELECT array_agg(md5(x::text)) FROM generate_series(1, 2000000000) AS t(x)",
    ],
)
def test_a_look_up_has_so_much_memory(small, look_up):
    with small.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.OutOfMemory, match="needs too much memory"):
            connection.execute(look_up)
        assert connection.execute(COUNT).fetchone()[0] > 800


def test_a_look_up_has_so_large_an_answer(small):
    with (
        small.connect() as connection,
        pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 4000000 bytes"),
    ):
        connection.execute("SELECT string_agg('x', '') FROM generate_series(1, 4000001)")
