"""A server from its start to its end: listeners opened, served, and closed in order."""

import asyncio
import ipaddress
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from countleak.diffix.server.databases import Served
from countleak.diffix.server.doors import Doors
from countleak.diffix.server.limits import Limits
from countleak.diffix.server.rest import make_app
from countleak.diffix.server.users import Users
from countleak.diffix.server.wire import Tls, Wire
from countleak.errors import InputError

log = logging.getLogger(__name__)
BACKLOG = 1024
# What a client may wait for its last answer when the server stops.
GRACE_SECONDS = 3
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Listening:
    """Where a server listens; a port of 0 is any free one, and None is no listener."""

    host: str = "127.0.0.1"
    postgres_port: int | None = 5433
    rest_port: int | None = 8033
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def check(self, users: Users, allow_remote: bool) -> None:
        """Refuse to be reached from elsewhere by chance, or without proof of who asks."""
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS takes a certificate and its key; name both or none")
        if self.is_loopback:
            return
        if not allow_remote:
            raise InputError(
                f"{self.host} can be reached from other machines; pass --allow-remote if it should"
            )
        for user in users.by_name.values():
            if user.trusted or (user.verifier is None and not user.tokens):
                raise InputError(
                    f"user {user.name} has no password; on an address other machines reach, every "
                    "user needs a password or a token"
                )

    def tls(self) -> Tls | None:
        """The certificate and its key, loaded."""
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
            return Tls(context, self.certificate.read_text())
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{self.certificate}, {self.key}: no certificate ({error})") from None


class _Rest(uvicorn.Server):
    """uvicorn, with signals left to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class Server:
    """Databases served to users over both protocols."""

    databases: Sequence[Served]
    users: Users
    listening: Listening = field(default_factory=Listening)
    limits: Limits = field(default_factory=Limits)

    async def serve(
        self, said: Callable[[str, str, int], None], stop: asyncio.Event | None = None
    ) -> None:
        """Serve until a signal comes, or ``stop`` is set; ``said`` hears of each listener.

        It is called with the protocol (``PostgreSQL``, ``REST``), the host and the port.
        """
        stopping = stop or asyncio.Event()
        if stop is None:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        by_name = {served.name: served for served in self.databases}
        tls, host = self.listening.tls(), self.listening.host
        wire = Wire(by_name, self.users, self.limits, tls)
        postgres, rest, serving = None, None, None
        try:
            if self.listening.postgres_port is not None:
                door = _door(host, self.listening.postgres_port)
                postgres = await asyncio.start_server(wire.serve, sock=door, backlog=BACKLOG)
                said("PostgreSQL", host, door.getsockname()[1])
            if self.listening.rest_port is not None:
                door = _door(host, self.listening.rest_port)
                rest = _Rest(self._rest_config(by_name))
                serving = asyncio.create_task(rest.serve(sockets=[door]))
                while not rest.started and not serving.done():
                    await asyncio.sleep(0.01)
                said("REST", host, door.getsockname()[1])
            await stopping.wait()
        finally:
            log.info("stopping")
            if postgres is not None:
                postgres.close()
            await wire.close()
            if rest is not None and serving is not None:
                rest.should_exit = True
                with suppress(asyncio.CancelledError):
                    await serving
            for served in self.databases:
                served.close()

    def _rest_config(self, by_name: dict[str, Served]) -> uvicorn.Config:
        # Whoever needs no token is protected by the name of the host alone.
        trusting = any(user.trusted for user in self.users.by_name.values())
        return uvicorn.Config(
            Doors(
                make_app(by_name, self.users, self.limits),
                self.limits.message_size,
                self.limits.stall_seconds,
                LOOPBACK_NAMES if trusting else None,
            ),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            limit_concurrency=self.limits.connections,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=self.listening.certificate,
            ssl_keyfile=self.listening.key,
        )


def _door(host: str, port: int) -> socket.socket:
    """A socket that listens at that address."""
    door = None
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, number)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(BACKLOG)
    except OSError as error:
        if door is not None:
            door.close()
        raise InputError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another port"
        ) from None
    door.setblocking(False)
    return door
