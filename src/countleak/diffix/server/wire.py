"""The PostgreSQL protocol: who may connect, and a connection from its start to its end."""

import asyncio
import hmac
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pygwire import ConnectionPhase, messages
from pygwire.constants import StartupRequestCode
from scramp import ScramException

from countleak.diffix.server.databases import Served, shown
from countleak.diffix.server.failures import (
    CANCELLED,
    NO_DATABASE,
    NOT_AUTHENTICATED,
    PROTOCOL,
    SHUTTING_DOWN,
    TOO_MANY_CONNECTIONS,
    Failure,
    state_of,
)
from countleak.diffix.server.frames import Frames
from countleak.diffix.server.limits import Limits
from countleak.diffix.server.portals import Portals
from countleak.diffix.server.session import Session
from countleak.diffix.server.users import BOUND, PLAIN, Exchange, Users
from countleak.errors import TargetError

T = TypeVar("T")
log = logging.getLogger(__name__)
# How many refused connections at a time are told why; more are closed at once.
TOLD = 1000


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, loaded, and the certificate's text, which SCRAM binds to."""

    context: ssl.SSLContext
    certificate: str


@dataclass
class Wire:
    """A server of the protocol: what its connections share."""

    databases: Mapping[str, Served]
    users: Users
    limits: Limits
    tls: Tls | None = None
    connections: dict[int, "Connection"] = field(default_factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; ``asyncio.start_server`` calls this."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection(self, reader, writer)
        try:
            if len(self._tasks) > self.limits.connections + TOLD:
                log.info("%s: closed: too many connections", connection.peer)
                return
            await connection.serve(full=len(self._tasks) > self.limits.connections)
        finally:
            self._tasks.discard(task)
            self.connections.pop(connection.number, None)
            writer.close()

    def register(self, connection: "Connection") -> None:
        """Give a connection a number, by which it can be told to cancel."""
        number = secrets.randbelow(2**31 - 1) + 1
        while number in self.connections:
            number = secrets.randbelow(2**31 - 1) + 1
        connection.number = number
        self.connections[number] = connection

    def cancel(self, number: int, key: bytes) -> None:
        """Cancel what a connection runs, for whoever knows its key."""
        connection = self.connections.get(number)
        if connection is not None and hmac.compare_digest(connection.key, key):
            connection.cancel()

    async def close(self) -> None:
        """End every connection, telling its client why."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Connection:
    """One client."""

    def __init__(self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        """Serve a client that has just connected; nothing of it is known yet."""
        self.wire = wire
        self.number = 0
        self.key = b""
        self._reader, self._writer = reader, writer
        self._frames = Frames(reader, wire.limits.message_size, wire.limits.stall_seconds)
        self._out = bytearray()
        self._running: asyncio.Future[Any] | None = None
        self._cancelled = False
        self._secure = False
        name = writer.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "client"

    async def serve(self, full: bool) -> None:
        """Serve the client until it goes, and say in the log why it was closed."""
        why = "client went away"
        try:
            async with asyncio.timeout(self.wire.limits.login_seconds):
                session = await self._start(full)
            if session is None:
                return
            self.peer = f"{self.peer} ({session.user}@{session.served.name})"
            await self._converse(session)
            why = "client said goodbye"
        except Failure as error:
            why = str(error)
            await self._tell_and_leave(error)
        except TimeoutError:
            why = "client stalled"
            await self._tell_and_leave(Failure(PROTOCOL, "the client took too long"))
        except (OSError, asyncio.IncompleteReadError) as error:
            if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                why = "client went away in mid-message"
        except Exception as error:
            # Whatever went wrong here must not end the server; the log tells where.
            why = f"internal error: {type(error).__name__}"
            log.exception("%s: internal error", self.peer)
            await self._tell_and_leave(Failure("XX000", "internal error; see the server's log"))
        except asyncio.CancelledError:
            why = "server is stopping"
            await self._tell_and_leave(
                Failure(SHUTTING_DOWN, "terminating connection: the server is stopping")
            )
        finally:
            log.info("%s: closed: %s", self.peer, shown(why))

    def cancel(self) -> None:
        """Give up what is running, if anything is."""
        if self._running is not None:
            self._cancelled = True
            self._running.cancel()

    async def run(self, served: Served, work: Callable[[], T]) -> T:
        """What ``work`` returns in the database's thread, unless the client cancels it."""
        running = asyncio.ensure_future(served.run(work))
        self._running = running
        try:
            return await running
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            raise Failure(CANCELLED, "canceling statement due to user request") from None
        finally:
            self._running, self._cancelled = None, False

    def send(self, message: messages.PGMessage) -> None:
        """Put a message with those that go out at the next ``flush``."""
        self._out += message.to_wire()

    async def flush(self) -> None:
        """Send what has gathered; a client must take it in time."""
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()
            async with asyncio.timeout(self.wire.limits.stall_seconds):
                await self._writer.drain()

    def send_error(self, error: TargetError, severity: str = "ERROR") -> None:
        """Put an error with the messages that go out."""
        self.send(messages.ErrorResponse(_fields(severity, state_of(error), str(error))))

    def send_notice(self, text: str) -> None:
        """Put a notice with the messages that go out."""
        self.send(messages.NoticeResponse(_fields("NOTICE", "00000", text)))

    async def _tell_and_leave(self, error: Failure) -> None:
        self._out.clear()
        self.send_error(error, "FATAL")
        try:
            await self.flush()
        except (OSError, TimeoutError):
            return

    async def _start(self, full: bool) -> Session | None:
        """The session of a client that has shown who it is; None where it wanted none."""
        message = await self._frames.startup()
        while isinstance(message, messages.SSLRequest | messages.GSSEncRequest):
            await self._secure_with(message)
            message = await self._frames.startup()
        if isinstance(message, messages.CancelRequest):
            self.wire.cancel(message.process_id, message.secret_key)
            return None
        if not isinstance(message, messages.StartupMessage):
            raise Failure(PROTOCOL, "expected a startup message")
        if full:
            raise Failure(
                TOO_MANY_CONNECTIONS,
                f"too many connections; at most {self.wire.limits.connections} are served",
            )
        given = dict(message.params)
        name = given.pop("user", "")
        database = given.pop("database", "") or name
        for unused in ("options", "replication"):
            given.pop(unused, None)
        unknown = [option for option in given if option.startswith("_pq_.")]
        if unknown:
            self.send(messages.NegotiateProtocolVersion(2, unknown))
            given = {option: value for option, value in given.items() if option not in unknown}
        await self._authenticate(name)
        served = self.wire.databases.get(database)
        user = self.wire.users.by_name[name]
        if served is None or not user.may_ask(database):
            own = ", ".join(found for found in self.wire.databases if user.may_ask(found))
            raise Failure(NO_DATABASE, f'database "{database[:63]}" does not exist; there is {own}')
        session = Session(served, name, given)
        self.key = secrets.token_bytes(
            32 if message.protocol_version == StartupRequestCode.V3_2 else 4
        )
        self.wire.register(self)
        for setting, value in session.settings.reported.items():
            self.send(messages.ParameterStatus(setting, value))
        self.send(messages.BackendKeyData(self.number, self.key))
        return session

    async def _secure_with(self, message: messages.PGMessage) -> None:
        """Turn TLS on where the client asks for it and there is a certificate."""
        wanted = isinstance(message, messages.SSLRequest) and not self._secure
        tls = self.wire.tls if wanted else None
        if tls is None:
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
        await self._writer.start_tls(tls.context)
        self._secure = True

    async def _authenticate(self, name: str) -> None:
        """Let a trusted user in; have any other prove itself by SCRAM, and by nothing else."""
        user = self.wire.users.by_name.get(name)
        if user is None and self.wire.users.are_all_trusted:
            # Nobody has a password, so there is none to ask for.
            names = ", ".join(self.wire.users.by_name)
            raise Failure("28000", f'role "{name[:63]}" does not exist; connect as {names}')
        if user is None or not user.trusted:
            try:
                await self._scram(name)
            except ScramException:
                raise _not_authenticated(name) from None
        self.send(messages.AuthenticationOk())

    async def _scram(self, name: str) -> None:
        tls = self.wire.tls if self._secure else None
        mechanisms = [BOUND, PLAIN] if tls is not None else [PLAIN]
        self.send(messages.AuthenticationSASL(mechanisms))
        await self.flush()
        first = await self._frames.next(ConnectionPhase.AUTHENTICATING_SASL_INITIAL)
        if not isinstance(first, messages.SASLInitialResponse) or first.mechanism not in mechanisms:
            raise _not_authenticated(name)
        user = self.wire.users.by_name.get(name)
        certificate = tls.certificate if tls is not None else None
        exchange = Exchange(name, user, first.mechanism, certificate)
        self.send(messages.AuthenticationSASLContinue(exchange.first(first.data)))
        await self.flush()
        final = await self._frames.next(ConnectionPhase.AUTHENTICATING_SASL_CONTINUE)
        if not isinstance(final, messages.SASLResponse):
            raise _not_authenticated(name)
        proof = exchange.final(final.data)
        if user is None or user.verifier is None:
            raise _not_authenticated(name)
        self.send(messages.AuthenticationSASLFinal(proof))

    async def _converse(self, session: Session) -> None:
        portals = Portals(self, session)
        await portals.ready()
        while not isinstance(message := await self._frames.next(), messages.Terminate):
            await portals.take(message)


def _not_authenticated(name: str) -> Failure:
    return Failure(NOT_AUTHENTICATED, f'password authentication failed for user "{name[:63]}"')


def _fields(severity: str, state: str, text: str) -> dict[str, str]:
    return {"S": severity, "V": severity, "C": state, "M": text.replace("\0", "")}
