"""The server of the PostgreSQL protocol: connections accepted, logged in, cancelled and closed."""

import asyncio
import hmac
import logging
import secrets
import socket
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pygwire import ConnectionPhase, messages
from pygwire.constants import StartupRequestCode
from scramp import ScramException

from countleak.diffix.server.connection import Connection, Conversation
from countleak.diffix.server.errors import (
    NO_DATABASE,
    NOT_AUTHENTICATED,
    PROTOCOL,
    SHUTTING_DOWN,
    STOPPING,
    TOO_MANY_CONNECTIONS,
    Failure,
    one_line,
)
from countleak.diffix.server.options import Limits, Tls
from countleak.diffix.server.session import Served, Session
from countleak.diffix.server.users import BOUND, PLAIN, Exchange, Users

log = logging.getLogger(__name__)
# Connections that have not logged in yet; the oldest goes when one more comes.
MOST_STARTING = 500
# Seconds until it is asked whether a silent client is there, then between times, and how often.
KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


@dataclass
class Wire:
    """What all connections share."""

    databases: Mapping[str, Served]
    users: Users
    limits: Limits
    tls: Tls | None = None
    require_tls: bool = False
    # Those that have logged in, by the number that cancels them; and how many are each user's.
    connections: dict[int, Connection] = field(default_factory=dict)
    _by_user: Counter[str] = field(default_factory=Counter)
    # A user's connections take turns; see Conversation.
    _turns: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    _starting: dict["asyncio.Task[None]", None] = field(default_factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _is_closing: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; ``asyncio.start_server`` calls this."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._starting[task] = None
        if len(self._starting) > MOST_STARTING:
            # Whoever means it logs in at once, and is through before others push it out.
            oldest = next(iter(self._starting))
            del self._starting[oldest]
            oldest.cancel()
        _keep_alive(writer)
        connection = Connection(reader, writer, self.limits)
        try:
            await self._serve(connection, task)
        finally:
            self._tasks.discard(task)
            self._starting.pop(task, None)
            if self.connections.pop(connection.number, None) and connection.session:
                self._by_user[connection.session.user] -= 1
            writer.close()

    async def close(self) -> None:
        """End every connection, telling its client why."""
        self._is_closing = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, connection: Connection, task: "asyncio.Task[None]") -> None:
        """Serve a client until it leaves, and say in the log why it was closed."""
        why = "client went away"
        try:
            async with asyncio.timeout(self.limits.login_seconds):
                session = await self._log_in(connection)
            if session is None:
                return
            self._starting.pop(task, None)
            connection.peer = f"{connection.peer} ({session.user}@{session.served.name})"
            await Conversation(connection, session, self._turns[session.user]).hold()
            why = "client said goodbye"
        except Failure as error:
            why = str(error)
            await connection.send_last(error)
        except TimeoutError:
            why = "client stalled"
            await connection.send_last(Failure(PROTOCOL, "the client took too long"))
        except (OSError, asyncio.IncompleteReadError) as error:
            if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                why = "client went away in mid-message"
        except Exception as error:
            # Whatever went wrong here must not end the server; the log tells where.
            why = f"internal error: {type(error).__name__}"
            log.exception("%s: internal error", connection.peer)
            await connection.send_last(Failure("XX000", "internal error; see the server's log"))
        except asyncio.CancelledError:
            if self._is_closing:
                why = "server is stopping"
                last = Failure(SHUTTING_DOWN, STOPPING)
            else:
                why = "too many connections are logging in"
                last = Failure(TOO_MANY_CONNECTIONS, f"{why}; log in sooner")
            await connection.send_last(last)
        finally:
            log.info("%s: closed: %s", connection.peer, one_line(why))

    async def _log_in(self, connection: Connection) -> Session | None:
        """The session of a client that has shown who it is; None where it wanted none."""
        message = await connection.startup()
        while isinstance(message, messages.SSLRequest | messages.GSSEncRequest):
            wanted = isinstance(message, messages.SSLRequest) and not connection.secure
            await connection.answer_tls(self.tls.context if wanted and self.tls else None)
            message = await connection.startup()
        if isinstance(message, messages.CancelRequest):
            self._cancel(message.process_id, message.secret_key)
            return None
        if not isinstance(message, messages.StartupMessage):
            raise Failure(PROTOCOL, "expected a startup message")
        if self.require_tls and not connection.secure:
            raise Failure("28000", "this server requires TLS; connect with sslmode=require")
        given = dict(message.params)
        name = given.pop("user", "")
        database = given.pop("database", "") or name
        for unused in ("options", "replication"):
            given.pop(unused, None)
        unknown = [option for option in given if option.startswith("_pq_.")]
        if unknown:
            connection.send(messages.NegotiateProtocolVersion(2, unknown))
            given = {option: value for option, value in given.items() if option not in unknown}
        await self._authenticate(connection, name)
        session = Session(self._database(database, name), name, given)
        newest = message.protocol_version == StartupRequestCode.V3_2
        self._register(connection, session, secrets.token_bytes(32 if newest else 4))
        for setting, value in session.state.reported.items():
            connection.send(messages.ParameterStatus(setting, value))
        connection.send(messages.BackendKeyData(connection.number, connection.key))
        return session

    def _database(self, name: str, user_name: str) -> Served:
        """The database of that name, if the user may ask it."""
        user = self.users.by_name[user_name]
        if name not in self.databases or not user.may_ask(name):
            own = ", ".join(database for database in self.databases if user.may_ask(database))
            raise Failure(NO_DATABASE, f'database "{name[:63]}" does not exist; there is {own}')
        return self.databases[name]

    def _register(self, connection: Connection, session: Session, key: bytes) -> None:
        """Give a connection a place, and a number and a key, by which it can be cancelled."""
        for most, there, whose in (
            (self.limits.connections, len(self.connections), "are served"),
            (self.limits.user_connections, self._by_user[session.user], "of a user are served"),
        ):
            if there >= most:
                raise Failure(TOO_MANY_CONNECTIONS, f"too many connections; at most {most} {whose}")
        number = secrets.randbelow(2**31 - 1) + 1
        while number in self.connections:
            number = secrets.randbelow(2**31 - 1) + 1
        connection.number, connection.key, connection.session = number, key, session
        self.connections[number] = connection
        self._by_user[session.user] += 1

    def _cancel(self, number: int, key: bytes) -> None:
        """Cancel what a connection runs, for whoever knows its key."""
        connection = self.connections.get(number)
        if connection is None or connection.session is None:
            return
        if hmac.compare_digest(connection.key, key):
            connection.session.cancel()

    async def _authenticate(self, connection: Connection, name: str) -> None:
        """Let a trusted user in; have any other prove itself by SCRAM, and by nothing else."""
        user = self.users.by_name.get(name)
        if user is None and self.users.are_all_trusted:
            # Nobody has a password, so there is none to ask for.
            names = ", ".join(self.users.by_name)
            raise Failure("28000", f'role "{name[:63]}" does not exist; connect as {names}')
        if user is None or not user.trusted:
            try:
                await self._scram(connection, name)
            except ScramException:
                raise _not_authenticated(name) from None
        connection.send(messages.AuthenticationOk())

    async def _scram(self, connection: Connection, name: str) -> None:
        tls = self.tls if connection.secure else None
        mechanisms = [BOUND, PLAIN] if tls is not None else [PLAIN]
        connection.send(messages.AuthenticationSASL(mechanisms))
        await connection.flush()
        first = await connection.next(ConnectionPhase.AUTHENTICATING_SASL_INITIAL)
        if not isinstance(first, messages.SASLInitialResponse) or first.mechanism not in mechanisms:
            raise _not_authenticated(name)
        user = self.users.by_name.get(name)
        certificate = tls.certificate if tls is not None else None
        exchange = Exchange(self.users.challenged(name), first.mechanism, certificate)
        connection.send(messages.AuthenticationSASLContinue(exchange.first(first.data)))
        await connection.flush()
        final = await connection.next(ConnectionPhase.AUTHENTICATING_SASL_CONTINUE)
        if not isinstance(final, messages.SASLResponse):
            raise _not_authenticated(name)
        proof = exchange.final(final.data)
        if user is None or user.verifier is None:
            raise _not_authenticated(name)
        connection.send(messages.AuthenticationSASLFinal(proof))


def _not_authenticated(name: str) -> Failure:
    return Failure(NOT_AUTHENTICATED, f'password authentication failed for user "{name[:63]}"')


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Have a client asked whether it is still there: one that vanished says no goodbye."""
    connected: socket.socket = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        # Not every system knows each of them.
        if option := getattr(socket, name, None):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
