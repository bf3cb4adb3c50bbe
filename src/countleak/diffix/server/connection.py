"""A client's connection over the PostgreSQL protocol: messages, simple queries, cancelling."""

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any

from pygwire import ConnectionPhase, FrontendMessageDecoder, PygwireError, messages
from pygwire.constants import TransactionStatus
from pygwire.messages import PGMessage

from countleak.diffix.server.errors import PROTOCOL, SHUTTING_DOWN, TOO_MUCH, Failure, state_of
from countleak.diffix.server.extended import ExtendedQueries
from countleak.diffix.server.options import Limits
from countleak.diffix.server.parameters import MOST_PARAMETERS
from countleak.diffix.server.results import TEXT_FORMAT, Field, Result
from countleak.diffix.server.session import Session
from countleak.errors import TargetError

# As PostgreSQL's own limits: on start-up packets, and on messages but those that carry a query.
STARTUP_SIZE = SHORT_SIZE = 10_000
LONG_KINDS = b"QPB"
# Rows between two looks at whether the client takes them.
BATCH = 500
# Messages that are answered before others get their turn, and bytes that count as one of them.
BURST, BYTES_OF_ONE = 20, 500
# Seconds that a client has to take the last message.
LAST_SECONDS = 1
# Bytes of answers that may gather before the client is to take them, asked to or not.
MOST_UNSENT = 200_000


class Connection:
    """One client: its messages, whole and of bounded size and time, and what goes out to it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: Limits
    ) -> None:
        """Speak with a client that has just connected; nothing of it is known yet."""
        # By these its session can be cancelled.
        self.number, self.key = 0, b""
        self.session: Session | None = None
        self.secure = False
        # Of the latest message.
        self.size = 0
        self._reader, self._writer = reader, writer
        self._longest, self._stall_seconds = limits.message_size, limits.stall_seconds
        self._out = bytearray()
        name = writer.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "client"

    async def startup(self) -> PGMessage:
        """A message of the start-up, which has no type byte; the caller sets the time."""
        head = await self._reader.readexactly(4)
        length = struct.unpack("!I", head)[0]
        if not 8 <= length <= STARTUP_SIZE:
            raise Failure(PROTOCOL, "invalid length of startup packet")
        body = await self._reader.readexactly(length - 4)
        return _decoded(head + body, ConnectionPhase.STARTUP)

    async def next(self, phase: ConnectionPhase = ConnectionPhase.READY) -> PGMessage:
        """The next message; a client may take its time to begin one, but not to end it."""
        # Nobody knows yet who sends the messages of a login: they are not long.
        is_known = phase is ConnectionPhase.READY
        kind = await self._reader.readexactly(1)
        longest = self._longest if is_known and kind in LONG_KINDS else SHORT_SIZE
        async with asyncio.timeout(self._stall_seconds):
            head = await self._reader.readexactly(4)
            length = struct.unpack("!I", head)[0]
            if not 4 <= length <= longest:
                raise Failure(PROTOCOL, f"invalid message length; at most {longest} bytes")
            body = await self._reader.readexactly(length - 4)
        self.size = len(body)
        _check_parameters(kind, body)
        return _decoded(kind + head + body, phase)

    async def answer_tls(self, context: ssl.SSLContext | None) -> None:
        """Turn TLS on, or say that there is none."""
        if context is None:
            self._writer.write(b"N")
            await self._writer.drain()
            return
        # Whatever came before the handshake was not protected by it: none may be left over.
        early = asyncio.ensure_future(self._reader.read(1))
        await asyncio.sleep(0)
        if early.done():
            raise Failure(PROTOCOL, "received unencrypted data after SSL request")
        early.cancel()
        await asyncio.wait([early])
        self._writer.write(b"S")
        await self._writer.drain()
        await self._writer.start_tls(context)
        self.secure = True

    def send(self, message: PGMessage) -> None:
        """Put a message with those that go out at the next ``flush``."""
        self._out += message.to_wire()

    async def flush(self) -> None:
        """Send what has gathered; a client must take it in time."""
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()
            async with asyncio.timeout(self._stall_seconds):
                await self._writer.drain()

    async def relieve(self) -> None:
        """Send what has gathered, if that is much: a client that asks on must also listen."""
        if len(self._out) > MOST_UNSENT:
            await self.flush()

    def send_error(self, error: TargetError, severity: str = "ERROR") -> None:
        """Put an error with the messages that go out."""
        self.send(messages.ErrorResponse(_report(severity, state_of(error), str(error))))

    def send_fields(self, fields: Sequence[Field], formats: Sequence[int] = ()) -> None:
        """Put the description of a result's columns with the messages that go out."""
        chosen = formats or [TEXT_FORMAT] * len(fields)
        described = [
            messages.FieldDescription(f.name, 0, 0, f.type.oid, f.type.size, -1, c)
            for f, c in zip(fields, chosen, strict=True)
        ]
        self.send(messages.RowDescription(described))

    async def send_rows(self, rows: Sequence[bytes]) -> None:
        """Send rows of a result."""
        for start in range(0, len(rows), BATCH):
            self._out += b"".join(rows[start : start + BATCH])
            if start + BATCH < len(rows):
                await self.flush()

    def send_end(self, result: Result, count: int) -> None:
        """Put notices, changed settings and the end of a result with what goes out."""
        for text in result.notices:
            self.send(messages.NoticeResponse(_report("NOTICE", "00000", text)))
        for name, value in result.changed.items():
            self.send(messages.ParameterStatus(name, value))
        tag = f"SELECT {count}" if result.tag.startswith("SELECT") else result.tag
        self.send(messages.CommandComplete(tag))

    async def send_last(self, error: Failure) -> None:
        """Tell the client why its connection ends, if it still listens."""
        self._out.clear()
        self.send_error(error, "FATAL")
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self.flush()
        except (OSError, TimeoutError):
            # Closed only, it would keep what is unsent until the client takes it, for ever perhaps.
            self._writer.transport.abort()


class Conversation:
    """What a client of an open session says, answered until it leaves."""

    def __init__(self, connection: Connection, session: Session, turn: asyncio.Lock):
        """Answer what comes over ``connection`` in ``session``; its user has one ``turn``."""
        self._connection = connection
        self._session = session
        self._turn = turn
        self._extended = ExtendedQueries(connection, session)
        # After an error in an extended query everything is passed over until the next Sync.
        self._skipping = False

    async def hold(self) -> None:
        """Answer message after message, until the client says goodbye."""
        await self._ready()
        burst = 0
        while not isinstance(message := await self._connection.next(), messages.Terminate):
            await self._take(message)
            await self._connection.relieve()
            burst += 1 + self._connection.size // BYTES_OF_ONE
            if burst >= BURST:
                burst = 0
                # However many connections a user floods, others wait for one of them at a time.
                async with self._turn:
                    await asyncio.sleep(0)

    async def _take(self, message: PGMessage) -> None:
        if isinstance(message, messages.Sync):
            self._skipping = False
            self._extended.sync()
            await self._ready()
        elif isinstance(message, messages.Flush):
            await self._connection.flush()
        elif isinstance(message, messages.Query):
            self._skipping = False
            await self._succeeds(self._simple(message.query_string))
            await self._ready()
        elif not self._skipping:
            self._skipping = not await self._succeeds(self._extended.take(message))

    async def _ready(self) -> None:
        """Tell the client that the next query may come."""
        status = TransactionStatus(self._session.state.status)
        self._connection.send(messages.ReadyForQuery(status))
        await self._connection.flush()

    async def _succeeds(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether ``work`` went well; if it failed, the client is told."""
        try:
            await work
        except TargetError as error:
            if isinstance(error, Failure) and error.state in (PROTOCOL, SHUTTING_DOWN):
                raise
            self._session.state.fail()
            self._connection.send_error(error)
            return False
        return True

    async def _simple(self, text: str) -> None:
        """Answer the statements of a text one after the other."""
        texts = deque([text])
        while texts:
            result, others = await self._session.run(texts.popleft())
            texts.extend(others)
            if result is None:
                self._connection.send(messages.EmptyQueryResponse())
                return
            if result.fields is not None:
                self._connection.send_fields(result.fields)
            await self._connection.send_rows(result.rows)
            if result.forgotten is not None:
                self._extended.forget(result.forgotten)
            self._connection.send_end(result, len(result.rows))
            await self._connection.relieve()


def _check_parameters(kind: bytes, body: bytes) -> None:
    """Refuse more parameters than a statement can have, before any work is done on them."""
    if kind not in (b"P", b"B"):
        return
    # Behind two texts: the types of a statement; or the formats of values, and then the values.
    at = body.find(b"\0", body.find(b"\0") + 1) + 1
    for _ in range(1 if kind == b"P" else 2):
        count = int.from_bytes(body[at : at + 2], "big")
        if count > MOST_PARAMETERS:
            raise Failure(TOO_MUCH, f"a statement has at most {MOST_PARAMETERS} parameters")
        at += 2 + 2 * count


def _decoded(frame: bytes, phase: ConnectionPhase) -> PGMessage:
    decoder = FrontendMessageDecoder()
    decoder.phase = phase
    decoder.feed(frame)
    try:
        return next(decoder)
    except (PygwireError, struct.error, ValueError, IndexError, StopIteration):
        raise Failure(PROTOCOL, "a message that cannot be read") from None


def _report(severity: str, state: str, text: str) -> dict[str, str]:
    return {"S": severity, "V": severity, "C": state, "M": text.replace("\0", "")}
