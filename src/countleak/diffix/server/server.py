"""A server from its start to its end: listeners opened, served, and closed in order."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import uvicorn

from countleak.diffix.server.options import Limits, Listening
from countleak.diffix.server.request_guard import RequestGuard
from countleak.diffix.server.rest import make_app
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import Users
from countleak.diffix.server.wire import Wire
from countleak.errors import InputError

log = logging.getLogger(__name__)
BACKLOG = 1024
# What a client may wait for its last answer when the server stops.
GRACE_SECONDS = 3
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


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
    # Called once all ports are taken: what a server that never ran should not leave behind.
    keep: Callable[[], object] = lambda: None

    async def serve(
        self, announce: Callable[[str, str, int], None], stop: asyncio.Event | None = None
    ) -> None:
        """Serve until a signal comes, or ``stop`` is set; ``announce`` hears of each listener.

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
            # Both ports are taken before anyone hears of either.
            ports = (self.listening.postgres_port, self.listening.rest_port)
            for_wire, for_rest = (None if at is None else _listener(host, at) for at in ports)
            self.keep()
            if for_wire is not None:
                postgres = await asyncio.start_server(wire.serve, sock=for_wire, backlog=BACKLOG)
                announce("PostgreSQL", host, for_wire.getsockname()[1])
            if for_rest is not None:
                rest = _Rest(self._rest_config(by_name))
                serving = asyncio.create_task(rest.serve(sockets=[for_rest]))
                while not rest.started and not serving.done():
                    await asyncio.sleep(0.01)
                announce("REST", host, for_rest.getsockname()[1])
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
            RequestGuard(
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


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens at that address."""
    listener = None
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, number)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise InputError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another port"
        ) from None
    listener.setblocking(False)
    return listener
