"""Simple and extended queries: prepared statements, portals, and what follows an error."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pygwire import messages
from pygwire.constants import TransactionStatus

from countleak.diffix.server.failures import NO_PORTAL, NO_STATEMENT, PROTOCOL, TOO_MUCH, Failure
from countleak.diffix.server.session import EVERY, IDLE, Prepared, Result, Session
from countleak.diffix.server.values import TEXT_FORMAT, Field, Parameter, read, write
from countleak.errors import TargetError

if TYPE_CHECKING:
    from countleak.diffix.server.wire import Connection

T = TypeVar("T")
# Statements and portals that a connection can hold.
MOST = 1000
# Rows between two looks at whether the client takes them.
BATCH = 500


@dataclass
class Portal:
    """A statement with its values; once run, its result and how far it was read."""

    prepared: Prepared | None
    values: tuple[Parameter, ...]
    formats: Sequence[int]
    result: Result | None = None
    position: int = 0


class Portals:
    """The conversation of a connection once it is open."""

    def __init__(self, connection: "Connection", session: Session):
        """Answer what comes over ``connection`` in ``session``."""
        self._connection = connection
        self._session = session
        self._statements: dict[str, Prepared | None] = {}
        self._portals: dict[str, Portal] = {}
        # After an error in an extended query everything is passed over until the next Sync.
        self._skipping = False

    async def take(self, message: messages.PGMessage) -> None:
        """Answer one message."""
        if isinstance(message, messages.Sync):
            self._skipping = False
            if self._session.status == IDLE:
                self._portals.clear()
            await self.ready()
            return
        if isinstance(message, messages.Flush):
            await self._connection.flush()
            return
        if isinstance(message, messages.Query):
            self._skipping = False
            await self._guarded(self._simple(message.query_string))
            await self.ready()
            return
        if self._skipping:
            return
        self._skipping = not await self._guarded(self._extended(message))

    async def ready(self) -> None:
        """Tell the client that the next query may come."""
        self._connection.send(messages.ReadyForQuery(TransactionStatus(self._session.status)))
        await self._connection.flush()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether ``work`` went well; if it failed, the client is told."""
        try:
            await work
        except TargetError as error:
            if isinstance(error, Failure) and error.state == PROTOCOL:
                raise
            self._session.fail()
            self._connection.send_error(error)
            return False
        return True

    async def _simple(self, text: str) -> None:
        if self._session.is_one(text):
            await self._run_one(text)
            return
        pieces = await self._run(lambda: self._session.split(text))
        if not pieces:
            self._connection.send(messages.EmptyQueryResponse())
        for piece in pieces:
            await self._run_one(piece)

    async def _run_one(self, piece: str) -> None:
        def whole() -> Result:
            prepared = self._session.prepare(piece)
            if prepared is None:
                return Result("")
            if prepared.types:
                raise Failure("42P02", "there is no parameter $1")
            return self._session.run(prepared)

        result = await self._run(whole)
        if result.fields is not None:
            self._connection.send(_described(result.fields, ()))
        await self._send_rows(result, 0, len(result.rows), ())
        self._finish(result, len(result.rows))

    async def _extended(self, message: messages.PGMessage) -> None:
        match message:
            case messages.Parse():
                await self._parse(message)
            case messages.Bind():
                self._bind(message)
            case messages.Describe():
                self._describe(message)
            case messages.Execute():
                await self._execute(message)
            case messages.Close():
                held = self._statements if message.kind == "S" else self._portals
                held.pop(message.name, None)
                self._connection.send(messages.CloseComplete())
            case _:
                raise Failure(PROTOCOL, f"did not expect a {type(message).__name__} message")

    async def _parse(self, message: messages.Parse) -> None:
        if message.statement and message.statement in self._statements:
            raise Failure("42P05", f'prepared statement "{message.statement}" already exists')
        self._room(self._statements)
        prepared = await self._run(
            lambda: self._session.prepare(message.query, message.param_types)
        )
        self._statements[message.statement] = prepared
        self._connection.send(messages.ParseComplete())

    def _bind(self, message: messages.Bind) -> None:
        prepared = self._statement(message.statement)
        types = () if prepared is None else prepared.types
        given = message.param_values
        if len(given) != len(types):
            raise Failure(
                "08P02",
                f"bind message supplies {len(given)} parameters, but {len(types)} are needed",
            )
        formats = _formats(message.param_formats, len(given))
        values = [read(v, t, f) for v, t, f in zip(given, types, formats, strict=True)]
        fields = 0 if prepared is None or prepared.fields is None else len(prepared.fields)
        self._room(self._portals)
        self._portals[message.portal] = Portal(
            prepared, tuple(values), _formats(message.result_formats, fields)
        )
        self._connection.send(messages.BindComplete())

    def _describe(self, message: messages.Describe) -> None:
        if message.kind == "S":
            prepared = self._statement(message.name)
            types = () if prepared is None else prepared.types
            self._connection.send(messages.ParameterDescription(list(types)))
            formats: Sequence[int] = ()
        else:
            portal = self._portal(message.name)
            prepared, formats = portal.prepared, portal.formats
        if prepared is None or prepared.fields is None:
            self._connection.send(messages.NoData())
        else:
            self._connection.send(_described(prepared.fields, formats))

    async def _execute(self, message: messages.Execute) -> None:
        portal = self._portal(message.portal)
        prepared = portal.prepared
        if prepared is None:
            self._connection.send(messages.EmptyQueryResponse())
            return
        if portal.result is None:
            portal.result = await self._run(lambda: self._session.run(prepared, portal.values))
        result, start = portal.result, portal.position
        left = len(result.rows) - start
        count = min(left, message.max_rows or left)
        await self._send_rows(result, start, count, portal.formats)
        portal.position += count
        if count < left:
            self._connection.send(messages.PortalSuspended())
        else:
            self._finish(result, count)

    async def _send_rows(
        self, result: Result, start: int, count: int, formats: Sequence[int]
    ) -> None:
        fields = result.fields or ()
        chosen = formats or [TEXT_FORMAT] * len(fields)
        for number, row in enumerate(result.rows[start : start + count], 1):
            self._connection.send(
                messages.DataRow(
                    [write(v, f.type, c) for v, f, c in zip(row, fields, chosen, strict=True)]
                )
            )
            if number % BATCH == 0:
                await self._connection.flush()

    def _finish(self, result: Result, count: int) -> None:
        for text in result.notices:
            self._connection.send_notice(text)
        for name, value in result.changed.items():
            self._connection.send(messages.ParameterStatus(name, value))
        if result.forgotten == EVERY:
            self._statements.clear()
        elif result.forgotten is not None:
            self._statements.pop(result.forgotten, None)
        tag = f"SELECT {count}" if result.tag.startswith("SELECT") else result.tag
        self._connection.send(messages.CommandComplete(tag))

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._connection.run(self._session.served, work)

    def _statement(self, name: str) -> Prepared | None:
        if name not in self._statements:
            raise Failure(NO_STATEMENT, f'prepared statement "{name[:63]}" does not exist')
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise Failure(NO_PORTAL, f'portal "{name[:63]}" does not exist')
        return self._portals[name]

    def _room(self, held: dict[str, T]) -> None:
        if len(held) >= MOST:
            raise Failure(TOO_MUCH, f"A connection holds at most {MOST} of these; close some.")


def _formats(given: Sequence[int], count: int) -> list[int]:
    """A format for each of ``count`` values: none given means text, and one means all."""
    if any(format not in (0, 1) for format in given):
        raise Failure("22023", "a format is 0 (text) or 1 (binary)")
    if len(given) in (0, 1):
        return [*(given or [TEXT_FORMAT])] * count
    if len(given) != count:
        raise Failure("08P02", f"there are {len(given)} formats for {count} values")
    return list(given)


def _described(fields: Sequence[Field], formats: Sequence[int]) -> messages.RowDescription:
    chosen = formats or [TEXT_FORMAT] * len(fields)
    return messages.RowDescription(
        [
            messages.FieldDescription(f.name, 0, 0, f.type.oid, f.type.size, -1, c)
            for f, c in zip(fields, chosen, strict=True)
        ]
    )
