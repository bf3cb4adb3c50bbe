import _thread
import signal
from threading import Event

import numpy as np
import pytest

from countleak.attack.transcript import Answers
from countleak.audit.targets.limits import Pace, RequestLimits
from countleak.audit.targets.no_counts import NO_COUNTS
from countleak.audit.targets.pool import Question, ask_all
from countleak.errors import InputError, NoCount, Refused, TargetError

ASKED = [Question(position, f"query {position}", f"{position}") for position in range(300)]


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
    assert max(map(len, batches)) <= connections


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


def test_a_connection_that_never_answers_is_left_behind_unclosed():
    never, made = Event(), []

    def connect():
        made.append(Echo(5, never.wait))
        return made[-1]

    with pytest.raises(TargetError, match=r"no answer within 0\.1 seconds"):
        list(ask_all(connect, ASKED, RequestLimits(2, seconds=0.1)))
    # Closing it from another thread is what crashed.
    assert sorted(each.closed for each in made) == [False, True]
    never.set()


def test_a_connection_that_is_never_made_is_given_up():
    never = Event()
    with pytest.raises(TargetError, match=r"no answer within 0\.1 seconds"):
        list(ask_all(never.wait, ASKED, RequestLimits(seconds=0.1)))
    never.set()


def test_the_next_question_waits_until_the_last_answer_is_taken():
    asked = []

    class Noted(Echo):
        def ask(self, statement):
            asked.append(statement)
            return super().ask(statement)

    taken = 0
    for batch in ask_all(Noted, ASKED, RequestLimits(3)):
        taken += len(batch)
        # Each of three connections may have one in flight.
        assert len(asked) <= taken + 2
    assert taken == len(asked) == len(ASKED)


def test_nothing_is_asked_unless_every_connection_stands():
    asked, made = [], []

    class Noted(Echo):
        def ask(self, statement):
            asked.append(statement)

    def connect():
        made.append(Noted())
        if len(made) == 3:
            raise TargetError("too many connections")
        return made[-1]

    with pytest.raises(TargetError, match="too many connections"):
        list(ask_all(connect, ASKED, RequestLimits(3)))
    assert not asked


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 1e14, -1e10])
def test_what_is_no_count_is_named_and_the_rest_is_asked(bad):
    class Odd(Echo):
        def ask(self, statement):
            return bad if statement in ("17", "200") else super().ask(statement)

    found = []
    with pytest.raises(NoCount, match=r"query 17: the answer is .*, and 1 other") as caught:
        for batch in ask_all(Odd, ASKED, RequestLimits(2)):
            found += batch.query.tolist()
    assert sorted(found) == [k for k in range(300) if k not in (17, 200)]
    assert f"{bad:g}" in str(caught.value)


def test_a_system_that_never_counts_is_not_asked_everything():
    asked = []

    class Never(Echo):
        def ask(self, statement):
            asked.append(statement)
            raise NoCount("the answer is no single value")

    with pytest.raises(NoCount, match=f"query 0: .* and {NO_COUNTS - 1} other answers"):
        list(ask_all(Never, ASKED, RequestLimits()))
    assert len(asked) == NO_COUNTS


def test_the_pace_of_questions():
    pace = Pace(4.0)
    assert [pace.delay(100.0) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    assert pace.delay(200.0) == 0.0
    unbound = Pace(None)
    assert [unbound.delay(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    for bad in ({"connections": 0}, {"seconds": 0}, {"rate": -1.0}):
        with pytest.raises(InputError):
            RequestLimits(**bad)


@pytest.mark.parametrize("connections", [1, 3])
def test_a_question_that_is_refused_is_left_out_and_the_rest_is_asked(connections):
    class Picks(Echo):
        def ask(self, statement):
            if statement in ("17", "200"):
                raise Refused(f"not {statement}")
            return super().ask(statement)

    found = []
    with pytest.raises(Refused, match=r"^not 17$"):
        for batch in ask_all(Picks, ASKED, RequestLimits(connections)):
            found += batch.query.tolist()
    assert sorted(found) == [k for k in range(300) if k not in (17, 200)]


def test_a_system_that_refuses_for_good_is_not_asked_everything():
    asked = []

    class Spent(Echo):
        def ask(self, statement):
            asked.append(statement)
            if len(asked) > 20:
                raise Refused("budget spent")
            return super().ask(statement)

    found = []
    with pytest.raises(Refused, match=r"^budget spent$"):
        for batch in ask_all(Spent, ASKED, RequestLimits()):
            found += batch.query.tolist()
    assert (len(found), len(asked)) == (20, 20 + NO_COUNTS)
