"""A session whose statements run in this process, so that a test can look at what they do."""

import asyncio
import struct
from collections.abc import Sequence

from countleak.diffix.engine import Engine
from countleak.diffix.server.options import Limits
from countleak.diffix.server.results import Result
from countleak.diffix.server.session import Session
from countleak.diffix.server.statements import Statements
from countleak.errors import TargetError


class InProcess:
    """What stands in a server between its sessions and its workers' statements."""

    def __init__(self, engine: Engine, limits: Limits | None = None):
        self.name = "bank"
        self.statements = Statements("bank", engine, limits or Limits(), ["analyst"])

    def submit(self, user, request):
        answer = asyncio.get_running_loop().create_future()
        try:
            answer.set_result(self.statements.answer(request))
        except TargetError as error:
            answer.set_exception(error)
        return answer


def run(session: Session, sql: str, values: Sequence[object] = ()) -> Result:
    """What one statement returns, described first as a driver would have it."""

    async def both():
        description = await session.describe(sql)
        result, others = await session.run(sql, values=values)
        assert not others
        if description is not None and result.fields is not None:
            assert [f.name for f in description.fields] == [f.name for f in result.fields]
        return result

    return asyncio.run(both())


def texts(result: Result) -> list[tuple[str | None, ...]]:
    """The rows of a result as PostgreSQL writes their values."""
    return [_texts(row) for row in result.rows]


def _texts(row: bytes) -> tuple[str | None, ...]:
    kind, length, count = struct.unpack_from("!cIH", row)
    assert (kind, length) == (b"D", len(row) - 1)
    values, at = [], 7
    for _ in range(count):
        (size,) = struct.unpack_from("!i", row, at)
        at += 4
        values.append(None if size < 0 else row[at : at + size].decode())
        at += max(size, 0)
    assert at == len(row)
    return tuple(values)
