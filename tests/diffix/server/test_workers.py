"""Workers: whatever takes too long is stopped, wherever it is, and others are answered."""

import asyncio
import os
import re
from dataclasses import dataclass

import psutil
import pytest

from countleak.diffix.server.errors import STOPPING, Failure, one_line
from countleak.diffix.server.options import Limits
from countleak.diffix.server.requests import Ask
from countleak.diffix.server.session import Served
from countleak.errors import InputError
from tests.diffix.server.conftest import QUERY, served_bank
from tests.diffix.server.loads import Hostile, bank_columns

SHORT = Limits(seconds=0.5, workers=1)
ASK = Ask("analyst", QUERY)


def hostile(bank, limits=SHORT) -> Served:
    return Served("bank", Hostile(bank_columns(bank)), limits, ["analyst"])


def started(served: Served, work):
    """What ``work`` returns while the workers run; they are gone after it."""

    async def main():
        try:
            await served.start()
            return await work()
        finally:
            served.close()

    # Other tests' servers have processes, too.
    before = psutil.Process(os.getpid()).children()
    result = asyncio.run(main())
    assert set(psutil.Process(os.getpid()).children()) <= set(before)
    return result


def submit_hostile(served: Served, way: str):
    return served.submit("analyst", Ask("analyst", Hostile.asking(way)))


async def error_of(answer) -> str:
    with pytest.raises(Failure) as caught:
        await answer
    return f"{caught.value.state}: {caught.value}"


LATE = "57014: There was no answer within 0.5 seconds."


@pytest.mark.parametrize(
    "way",
    [
        "in DuckDB",
        "deaf",
        pytest.param("in Python", marks=pytest.mark.slow),
        pytest.param("in C", marks=pytest.mark.slow),
    ],
)
def test_whatever_takes_too_long_is_stopped_and_the_next_is_answered(bank, way):
    served = hostile(bank)

    async def work():
        # One that heeds no signal takes seconds to be killed.
        for _ in range(1 if way == "deaf" else 2):
            assert await error_of(submit_hostile(served, way)) == LATE
            assert b'"released": true' in await served.submit("analyst", ASK)

    started(served, work)


def test_what_is_cancelled_is_stopped(bank):
    served = hostile(bank, Limits(workers=1))

    async def work():
        answer = submit_hostile(served, "in Python")
        await asyncio.sleep(0)
        answer.cancel()
        assert await served.submit("analyst", ASK)

    started(served, work)


def test_what_ends_its_worker_is_an_error_and_another_takes_its_place(bank):
    served = hostile(bank)

    async def work():
        ended = submit_hostile(served, "killing")
        assert await error_of(ended) == (
            "58000: The query was too much for its worker, which ended."
        )
        assert await served.submit("analyst", ASK)

    started(served, work)


def test_what_is_loaded_is_left_alone_by_the_collector(bank):
    """Everything would stand still while it goes through all of that."""
    served = hostile(bank, Limits(workers=1))

    async def work():
        said = await error_of(submit_hostile(served, "frozen"))
        assert int(said.rpartition(" ")[2]) > 50_000

    started(served, work)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("failing", r"XX000: internal error: ZeroDivisionError; see the server's log"),
        ("nested", "54001: The query is nested too deeply."),
        ("in memory", "53200: The query needs too much memory."),
    ],
)
def test_whatever_fails_is_one_line(bank, way, message, caplog):
    served = hostile(bank, Limits(workers=1, memory=500))

    async def work():
        assert await error_of(submit_hostile(served, way)) == message
        assert await served.submit("analyst", ASK)

    started(served, work)
    assert ("ZeroDivisionError" in caplog.text) == (way == "failing")


def test_one_user_never_has_all_workers(bank):
    served = hostile(bank, Limits(workers=2))

    async def work():
        slow = [submit_hostile(served, "in Python") for _ in range(9)]
        for _ in range(20):
            assert await served.submit("other", Ask("other", QUERY))
        assert not any(answer.done() for answer in slow)
        for answer in slow:
            answer.cancel()

    started(served, work)


def test_waiting_has_a_limit_of_its_own(bank):
    served = hostile(bank, Limits(workers=1, seconds=1, queue_seconds=0.3))

    async def work():
        first = submit_hostile(served, "in Python")
        second = served.submit("other", Ask("other", QUERY))
        assert await error_of(second) == "53400: The query waited 0.3 seconds for its turn."
        assert await error_of(first) == "57014: There was no answer within 1 seconds."

    started(served, work)
    patient = hostile(bank, Limits(workers=1, seconds=1))

    async def queued():
        # The third waits longer than an answer may take, and is answered all the same.
        slow = [submit_hostile(patient, "in Python") for _ in range(2)]
        waiting = patient.submit("analyst", ASK)
        assert [await error_of(answer) for answer in slow] == [
            "57014: There was no answer within 1 seconds."
        ] * 2
        assert await waiting

    started(patient, queued)


def test_a_user_has_so_many_queries_at_a_time(bank):
    served = served_bank(bank, Limits(workers=1, user_queries=3))

    async def work():
        answers = [served.submit("analyst", ASK) for _ in range(4)]
        other = served.submit("other", Ask("other", QUERY))
        assert re.match("53400: At most 3 queries", await error_of(answers[-1]))
        assert all([await answer for answer in [*answers[:-1], other]])

    started(served, work)


def test_draining_lets_end_what_runs_and_takes_no_more(bank):
    served = hostile(bank, Limits(workers=1))

    async def work():
        running = served.submit("analyst", ASK)
        await served.drain(60)
        assert running.done()
        assert await running
        assert await error_of(served.submit("analyst", ASK)) == f"57P01: {STOPPING}"

    started(served, work)

    late = hostile(bank, Limits(workers=1))

    async def too_long():
        answer = submit_hostile(late, "in C")
        await late.drain(0.2)
        assert not answer.done()
        late.close()
        assert await error_of(answer) == f"57P01: {STOPPING}"

    started(late, too_long)


@dataclass(frozen=True)
class Unloadable:
    def __call__(self, stack):
        raise InputError("there is nothing to load")


def test_what_cannot_be_loaded_is_one_line(bank):
    async def work():
        raise AssertionError("it has started")

    with pytest.raises(InputError, match=r"serve\.toml: there is nothing to load"):
        started(Served("bank", Unloadable(), SHORT, [], "serve.toml"), work)


def test_what_is_logged_is_one_plain_line():
    assert one_line("SELECT\n  1;\r\n\x1b[31mred\0") == "SELECT 1; \\x1b[31mred\\x00"
    assert one_line("x" * 10_000) == "x" * 500 + "..."
