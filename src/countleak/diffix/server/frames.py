"""Messages of the PostgreSQL protocol from a stream: whole, of bounded size, in bounded time."""

import asyncio
import struct

from pygwire import ConnectionPhase, FrontendMessageDecoder, PygwireError
from pygwire.messages import PGMessage

from countleak.diffix.server.failures import PROTOCOL, Failure

# As PostgreSQL's own limit on start-up packets.
STARTUP_SIZE = 10_000


class Frames:
    """Reads one message after the other; a malformed one raises ``Failure``."""

    def __init__(self, reader: asyncio.StreamReader, longest: int, stall_seconds: float):
        """Read messages of at most ``longest`` bytes, each complete within ``stall_seconds``."""
        self._reader = reader
        self._longest = longest
        self._seconds = stall_seconds

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
        kind = await self._reader.readexactly(1)
        async with asyncio.timeout(self._seconds):
            head = await self._reader.readexactly(4)
            length = struct.unpack("!I", head)[0]
            if not 4 <= length <= self._longest:
                raise Failure(PROTOCOL, f"invalid message length; at most {self._longest} bytes")
            body = await self._reader.readexactly(length - 4)
        return _decoded(kind + head + body, phase)


def _decoded(frame: bytes, phase: ConnectionPhase) -> PGMessage:
    decoder = FrontendMessageDecoder()
    decoder.phase = phase
    decoder.feed(frame)
    try:
        return next(decoder)
    except (PygwireError, struct.error, ValueError, IndexError, StopIteration):
        raise Failure(PROTOCOL, "a message that cannot be read") from None
