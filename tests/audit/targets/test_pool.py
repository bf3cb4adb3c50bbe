import _thread
import signal
from threading import Event

import numpy as np
import pytest

from countleak.attack.transcript import Answers
from countleak.audit.targets import pool
from countleak.audit.targets.pool import BATCH, Pace, RequestLimits, ask_all
from countleak.errors import InputError, TargetError

ASKED = [(position, f"{position}") for position in range(3 * BATCH)]


class Echo:
    """A connection that answers a number with itself, and suppresses every seventh."""

    def __init__(self, at=None, act=lambda: None):
        self.at, self.act = at, act
        self.closed = False

    def ask(self, statement):
        number = int(statement)
        if number == self.at:
            self.act()
        return None if number % 7 == 0 else float(number)

    def close(self):
        self.closed = True


@pytest.mark.parametrize("connections", [1, 4])
def test_every_question_is_answered_once_over_any_number_of_connections(connections):
    opened = []

    def connect():
        opened.append(Echo())
        return opened[-1]

    batches = list(ask_all(connect, ASKED, RequestLimits(connections)))
    found = Answers.join(batches)
    assert np.array_equal(found.query, np.arange(len(ASKED)))
    assert np.array_equal(found.released, found.query % 7 != 0)
    assert np.array_equal(found.values[found.released], found.query[found.released])
    assert len(opened) == connections
    assert all(connection.closed for connection in opened)
    assert max(map(len, batches)) <= BATCH


def heard_until(connection, fault):
    found = []
    with pytest.raises(fault):
        for batch in ask_all(lambda: connection, ASKED, RequestLimits()):
            found += batch.query.tolist()
    assert connection.closed
    return found


@pytest.fixture
def heeds_ctrl_c():
    """Python's own handler, which a run in the background of a shell has not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_what_came_before_a_fault_or_ctrl_c_is_handed_over():
    def fail():
        raise TargetError("lost")

    assert heard_until(Echo(150, fail), TargetError) == list(range(150))
    found = heard_until(Echo(150, _thread.interrupt_main), KeyboardInterrupt)
    assert found == list(range(len(found)))


def test_a_connection_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(pool, "GRACE", 0.0)
    never = Event()
    with pytest.raises(TargetError, match=r"no answer within 0\.1 seconds"):
        list(ask_all(lambda: Echo(5, never.wait), ASKED, RequestLimits(seconds=0.1)))
    never.set()


def test_the_pace_of_questions():
    pace = Pace(4.0)
    assert [pace.delay(100.0) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    assert pace.delay(200.0) == 0.0
    unbound = Pace(None)
    assert [unbound.delay(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    for bad in ({"connections": 0}, {"seconds": 0}, {"rate": -1.0}):
        with pytest.raises(InputError):
            RequestLimits(**bad)
