"""Cancelling, limits, TLS, and how a connection ends."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading

import httpx
import psycopg
import pytest
from pygwire import ConnectionPhase, messages

from countleak.diffix.server.options import Limits, Listening
from countleak.errors import InputError
from tests.diffix.server.conftest import (
    PASSWORD,
    QUERY,
    USERS,
    make_server,
    running,
    served_bank,
    served_on_postgres,
)
from tests.diffix.server.raw import error_of, raw

COUNT = "SELECT count(*) FROM loans"


@contextlib.contextmanager
def locked(address):
    """The table on PostgreSQL held, so that every question about it waits."""
    with psycopg.connect(address) as holder:
        holder.execute("LOCK TABLE loans IN ACCESS EXCLUSIVE MODE")
        yield holder


def wait_until(happened, server, what):
    """Wait until something has happened, for half a minute at most."""
    seconds = threading.Event()
    for _ in range(3000):
        if happened():
            return
        seconds.wait(0.01)
    raise AssertionError(f"{what}; the log ends with {server.lines[-5:]}")


def wait_until_one_waits(holder, server):
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    wait_until(
        lambda: holder.execute(waiting).fetchone()[0] > 0, server, "nothing waits for the table"
    )


def wait_for_line(server, text):
    """Wait until the log holds a line; the thread of the server writes it."""
    wait_until(lambda: any(text in line for line in server.lines), server, f"no line with {text!r}")


def test_a_query_is_cancelled(server, postgres_loans):
    with server.connect("bank_pg", autocommit=True) as connection:
        with locked(postgres_loans) as holder:
            failed = []

            def ask():
                try:
                    connection.execute(COUNT)
                except psycopg.Error as error:
                    failed.append(error)

            thread = threading.Thread(target=ask)
            thread.start()
            wait_until_one_waits(holder, server)
            # Whoever does not know the key cancels nothing.
            with raw(server.port) as stranger:
                number = connection.info.backend_pid
                stranger.send(messages.CancelRequest(number, b"\0\0\0\0"))
                assert stranger.rest() == b""
            assert thread.is_alive()
            connection.cancel_safe()
            thread.join(30)
            assert [type(error) for error in failed] == [psycopg.errors.QueryCanceled]
        # The database itself gave up, and answers the next.
        assert connection.execute(COUNT).fetchone()[0] > 800


def test_a_client_that_dies_in_mid_query_holds_nobody_up(server, postgres_loans):
    with locked(postgres_loans) as holder:
        with raw(server.port) as client:
            client.start(database="bank_pg")
            client.phase(ConnectionPhase.INITIALIZATION)
            client.until(messages.ReadyForQuery)
            client.send(messages.Query(COUNT))
            wait_until_one_waits(holder, server)
            # Closed with a reset, as when the process is killed.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert server.answers()
    wait_for_line(server, "(analyst@bank_pg): closed: client went away")
    with server.connect("bank_pg") as connection:
        assert connection.execute(COUNT).fetchone()[0] > 800


@pytest.fixture(scope="module")
def strict(bank, postgres_loans):
    """A server with little patience and little room."""
    limits = Limits(
        connections=5,
        query_length=300,
        seconds=0.3,
        rows=3,
        login_seconds=0.3,
        stall_seconds=0.3,
        queries_kept=3,
    )
    databases = [served_bank(bank, limits), served_on_postgres(postgres_loans, limits)]
    with running(make_server(databases, limits)) as found:
        yield found


def test_an_answer_takes_no_longer_than_the_limit(strict, postgres_loans):
    with strict.connect("bank_pg", autocommit=True) as connection:
        with (
            locked(postgres_loans),
            pytest.raises(psycopg.errors.QueryCanceled, match=r"no answer within 0\.3 seconds"),
        ):
            connection.execute(COUNT)
        assert connection.execute(COUNT).fetchone()[0] > 800


def test_a_query_that_is_too_long_is_refused(strict):
    with strict.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="at most 300 are read"):
            connection.execute(f"{COUNT} WHERE status IN ({','.join(['1'] * 300)})")
        assert connection.execute(COUNT).fetchone()[0] > 800
    given = {"query": {"statement": COUNT + " " * 300, "data_source_name": "bank"}}
    assert httpx.post(f"{strict.rest}/api/queries", json=given).status_code == 413
    kind = {"content-type": "application/json"}
    huge = httpx.post(f"{strict.rest}/api/queries", content=b" " * 5_000_000, headers=kind)
    assert huge.status_code == 413


def test_an_answer_with_too_many_rows_is_refused(strict):
    with (
        strict.connect() as connection,
        pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 3 rows"),
    ):
        connection.execute("SELECT status, count(*) FROM loans GROUP BY status")


def test_too_many_connections_are_refused(strict):
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(strict.connect())
        with pytest.raises(psycopg.OperationalError, match="too many connections; at most 5"):
            strict.connect()
    wait_for_line(strict, "closed: too many connections")


@pytest.mark.parametrize("half", [b"", b"\0\0", b"\0\0\0\x20\0\3\0\0user\0"])
def test_a_client_that_stalls_at_the_start_is_closed(strict, half):
    with raw(strict.port) as client:
        client.send(half)
        assert error_of(client.next()) == ("08P01", "the client took too long")
        assert client.next() is None
    wait_for_line(strict, "closed: client stalled")


def test_a_client_that_stalls_in_mid_message_is_closed(strict):
    with raw(strict.port) as client:
        client.login()
        client.send(b"Q\0\0\0\x40SELECT")
        assert error_of(client.next()) == ("08P01", "the client took too long")
        assert client.next() is None
    assert strict.answers()


def test_a_message_of_an_absurd_length_is_refused(strict):
    with raw(strict.port) as client:
        client.login()
        client.send(b"Q\x7f\xff\xff\xff")
        assert error_of(client.next())[0] == "08P01"
    wait_for_line(strict, "closed: invalid message length")


def test_a_request_that_stalls_is_refused(strict):
    port = int(strict.rest.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(
            b"POST /api/queries HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n"
            b"content-type: application/json\r\n\r\n{"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


def test_rest_forgets_the_oldest_query(strict):
    given = {"query": {"statement": COUNT, "data_source_name": "bank"}}
    ids = []
    for _ in range(5):
        ids.append(httpx.post(f"{strict.rest}/api/queries", json=given).json()["query_id"])
        httpx.get(f"{strict.rest}/api/queries/{ids[-1]}?wait=10")
    found = [httpx.get(f"{strict.rest}/api/queries/{i}").status_code for i in ids]
    assert found == [404, 404, 200, 200, 200]


def test_500_connections_at_once(server):
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(500)]
    try:
        startup = messages.StartupMessage({"user": "analyst", "database": "bank"}).to_wire()
        for client in clients:
            client.sendall(startup)
        firsts = [client.recv(1) for client in clients]
        # R begins a welcome, E an error; a user has 100 places of the 200.
        assert firsts.count(b"R") == 100
        assert firsts.count(b"E") == 400
    finally:
        for client in clients:
            client.close()
    wait_for_line(server, "closed: too many connections")

    def comes_in():
        with contextlib.suppress(psycopg.OperationalError):
            return server.answers()
        return False

    assert any(comes_in() for _ in range(1000))


def test_the_log_tells_who_asked_what_and_never_the_count(server):
    marked = "SELECT count(*) FROM loans WHERE amount BETWEEN 0 AND 20000"
    with server.connect() as connection:
        count = connection.execute(marked).fetchone()[0]
        connection.execute("SELECT count(*) FROM loans WHERE client_id = 1")
        connection.rollback()
    line = next(line for line in server.lines if marked in line)
    assert line.startswith("analyst@bank: released: SELECT count(*)")
    assert line.endswith(" ms")
    assert str(count) not in line.replace(marked, "").rpartition(",")[0]
    assert any("analyst@bank: suppressed: " in line for line in server.lines)


def test_a_stopping_server_says_so(bank):
    with running(make_server([served_bank(bank)])) as found:
        client = raw(found.port)
        held = client.__enter__()
        held.login()
    assert error_of(held.next()) == ("57P01", "terminating connection: the server is stopping")
    assert held.next() is None
    client.__exit__(None, None, None)
    with pytest.raises(psycopg.OperationalError):
        found.connect()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


def make_certificate(folder):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    paths = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", paths[0], "-keyout", paths[1]),
        ],
        check=True,
        capture_output=True,
    )
    paths[1].chmod(0o600)
    return paths


@pytest.fixture(scope="module")
def secure(bank, certificate):
    path, key = certificate
    with running(make_server([served_bank(bank)], certificate=path, key=key)) as found:
        yield found


@pytest.mark.parametrize("binding", ["disable", "prefer", "require"])
def test_tls_with_and_without_channel_binding(secure, certificate, binding):
    more = {"sslmode": "verify-ca", "sslrootcert": str(certificate[0])}
    more["channel_binding"] = binding
    with secure.connect(user="guarded", password=PASSWORD, **more) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute(QUERY).fetchone()[0] > 1


def test_https(secure, certificate):
    context = ssl.create_default_context(cafile=str(certificate[0]))
    url = secure.rest.replace("http:", "https:")
    assert httpx.get(f"{url}/api/health", verify=context).json()["status"] == "ok"


def test_a_server_can_insist_on_tls(bank, certificate):
    path, key = certificate
    server = make_server([served_bank(bank)], certificate=path, key=key, require_tls=True)
    with running(server) as found:
        for user in ("analyst", "guarded", "nobody"):
            with pytest.raises(psycopg.OperationalError, match="this server requires TLS"):
                found.connect(user=user, password=PASSWORD, sslmode="disable")
        with found.connect(user="guarded", password=PASSWORD, sslmode="require") as connection:
            assert connection.execute(QUERY).fetchone()[0] > 1
    with pytest.raises(InputError, match="require_tls is set, and there is no certificate"):
        Listening(require_tls=True).check(USERS)


def test_a_key_that_others_may_read_is_refused(certificate, tmp_path):
    path, key = certificate
    copy = tmp_path / "key.pem"
    copy.write_bytes(key.read_bytes())
    for mode in (0o640, 0o604, 0o660):
        copy.chmod(mode)
        with pytest.raises(InputError, match=f"others may read this key; run: chmod 600 {copy}"):
            Listening(certificate=path, key=copy).tls()
    copy.chmod(0o400)
    assert Listening(certificate=path, key=copy).tls() is not None


def test_nothing_is_taken_from_before_the_handshake(secure):
    with raw(secure.port) as client:
        startup = messages.StartupMessage({"user": "analyst", "database": "bank"})
        client.send(messages.SSLRequest(), startup)
        assert error_of(client.next())[1] == "received unencrypted data after SSL request"


def test_without_a_certificate_tls_is_declined(server):
    with server.connect(sslmode="prefer") as connection:
        assert not connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        server.connect(sslmode="require")
