"""The thread of a database: what takes too long is stopped, and the log is plain."""

import asyncio

import pytest

from countleak.diffix.server.errors import Failure
from countleak.diffix.server.options import Limits
from countleak.diffix.server.session import one_line
from tests.diffix.server.conftest import QUERY, served_bank

ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE range % 7 = 3"


@pytest.fixture
def served(bank):
    made = served_bank(bank, Limits(seconds=1))
    yield made
    made.close()


def test_what_takes_too_long_is_stopped_in_duckdb_itself(served):
    engine = served.engines["loans"]

    async def work() -> None:
        for _ in range(2):
            with pytest.raises(Failure, match="no answer within 1 seconds"):
                await served.run(engine.database.rows, ENDLESS)
            # The one thread is free again.
            assert (await served.run(engine.ask, QUERY)).rows

    asyncio.run(work())


def test_what_is_cancelled_is_stopped(served):
    engine = served.engines["loans"]

    async def work() -> None:
        task = asyncio.create_task(served.run(engine.database.rows, ENDLESS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await served.run(engine.ask, QUERY)).rows

    asyncio.run(work())


def test_what_is_nested_too_deeply_is_refused(served):
    def deeper():
        return deeper()

    with pytest.raises(Failure, match="nested too deeply"):
        asyncio.run(served.run(deeper))


def test_what_is_logged_is_one_plain_line():
    assert one_line("SELECT\n  1;\r\n\x1b[31mred\0") == "SELECT 1; \\x1b[31mred\\x00"
    assert one_line("x" * 10_000) == "x" * 500 + "..."
