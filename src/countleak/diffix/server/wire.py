"""The server of the PostgreSQL protocol: connections accepted, logged in, cancelled and closed."""

import asyncio
import hmac
import logging
import secrets
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
    TOO_MANY_CONNECTIONS,
    Failure,
)
from countleak.diffix.server.options import Limits, Tls
from countleak.diffix.server.session import Served, Session, one_line
from countleak.diffix.server.users import BOUND, PLAIN, Exchange, Users

log = logging.getLogger(__name__)
# How many refused connections at a time are told why; more are closed at once.
MOST_EXPLAINED = 1000


@dataclass
class Wire:
    """What all connections share."""

    databases: Mapping[str, Served]
    users: Users
    limits: Limits
    tls: Tls | None = None
    connections: dict[int, Connection] = field(default_factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends; ``asyncio.start_server`` calls this."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = Connection(reader, writer, self.limits)
        try:
            if len(self._tasks) > self.limits.connections + MOST_EXPLAINED:
                log.info("%s: closed: too many connections", connection.peer)
                return
            await self._serve(connection, full=len(self._tasks) > self.limits.connections)
        finally:
            self._tasks.discard(task)
            self.connections.pop(connection.number, None)
            writer.close()

    async def close(self) -> None:
        """End every connection, telling its client why."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, connection: Connection, full: bool) -> None:
        """Serve a client until it leaves, and say in the log why it was closed."""
        why = "client went away"
        try:
            async with asyncio.timeout(self.limits.login_seconds):
                session = await self._log_in(connection, full)
            if session is None:
                return
            connection.peer = f"{connection.peer} ({session.user}@{session.served.name})"
            await Conversation(connection, session).hold()
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
            why = "server is stopping"
            await connection.send_last(
                Failure(SHUTTING_DOWN, "terminating connection: the server is stopping")
            )
        finally:
            log.info("%s: closed: %s", connection.peer, one_line(why))

    async def _log_in(self, connection: Connection, full: bool) -> Session | None:
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
        if full:
            raise Failure(
                TOO_MANY_CONNECTIONS,
                f"too many connections; at most {self.limits.connections} are served",
            )
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
        self._register(connection, secrets.token_bytes(32 if newest else 4))
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

    def _register(self, connection: Connection, key: bytes) -> None:
        """Give a connection a number and a key, by which it can be cancelled."""
        number = secrets.randbelow(2**31 - 1) + 1
        while number in self.connections:
            number = secrets.randbelow(2**31 - 1) + 1
        connection.number, connection.key = number, key
        self.connections[number] = connection

    def _cancel(self, number: int, key: bytes) -> None:
        """Cancel what a connection runs, for whoever knows its key."""
        connection = self.connections.get(number)
        if connection is not None and hmac.compare_digest(connection.key, key):
            connection.cancel()

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
        exchange = Exchange(name, user, first.mechanism, certificate)
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
