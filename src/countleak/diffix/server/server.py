"""A server from its start to its end: listeners opened, served, and closed in order."""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import uvicorn

from countleak.diffix.server.http_server import BACKLOG, Http
from countleak.diffix.server.memory import frozen
from countleak.diffix.server.options import Limits, Listening, Tls
from countleak.diffix.server.request_guard import RequestGuard
from countleak.diffix.server.rest import make_app
from countleak.diffix.server.session import Served
from countleak.diffix.server.users import Users
from countleak.diffix.server.wire import Wire
from countleak.errors import InputError

log = logging.getLogger(__name__)
# What a client may wait for its last answer when the server stops.
GRACE_SECONDS = 3
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


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
                asyncio.get_running_loop().add_signal_handler(number, self._stop, stopping)
        _allow_files()
        async with AsyncExitStack() as stack:
            for served in self.databases:
                stack.callback(served.close)
            if not await self._load(stopping):
                return
            refuse = await self._listen(stack, announce)
            if stop is None:
                stack.enter_context(frozen())
            await stopping.wait()
            log.info("stopping")
            refuse()
            seconds = self.limits.drain_seconds
            await asyncio.gather(*(served.drain(seconds) for served in self.databases))

    def _stop(self, stopping: asyncio.Event) -> None:
        """Stop when what runs is done; asked again, at once."""
        if stopping.is_set():
            for served in self.databases:
                served.close()
        stopping.set()

    async def _load(self, stopping: asyncio.Event) -> bool:
        """Load all databases; whether that came to its end before it was to stop."""
        loading = asyncio.gather(*(served.start() for served in self.databases))
        waiting = asyncio.create_task(stopping.wait())
        waiting.add_done_callback(lambda _: loading.cancel())
        try:
            await loading
        except asyncio.CancelledError:
            return False
        finally:
            waiting.cancel()
        return True

    async def _listen(
        self, stack: AsyncExitStack, announce: Callable[[str, str, int], None]
    ) -> Callable[[], object]:
        """Listen until the stack ends; what to call to refuse new connections before that."""
        by_name = {served.name: served for served in self.databases}
        tls, host = self.listening.tls(), self.listening.host
        # Both ports are taken before anyone hears of either.
        ports = (self.listening.postgres_port, self.listening.rest_port)
        for_wire, for_rest = (None if at is None else listener_at(host, at) for at in ports)
        self.keep()
        refuse: Callable[[], object] = bool
        if for_wire is not None:
            wire = Wire(by_name, self.users, self.limits, tls, self.listening.require_tls)
            refuse = await stack.enter_async_context(_serving_wire(wire, for_wire))
            announce("PostgreSQL", host, for_wire.getsockname()[1])
        if for_rest is not None:
            http = self._http(by_name, tls)
            await stack.enter_async_context(serving_http(http, for_rest))
            announce("REST", host, for_rest.getsockname()[1])
        return refuse

    def _http(self, by_name: dict[str, Served], tls: Tls | None) -> Http:
        # Whoever needs no token is protected by the name of the host alone.
        trusting = any(user.trusted for user in self.users.by_name.values())
        config = uvicorn.Config(
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
            limit_concurrency=self.limits.connections + 1,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        return Http(config, self.limits, tls.context if tls is not None else None)


@asynccontextmanager
async def _serving_wire(wire: Wire, listener: socket.socket) -> AsyncIterator[Callable[[], object]]:
    """The PostgreSQL protocol, served in the block; what to call to refuse new connections."""
    server = await asyncio.start_server(wire.serve, sock=listener, backlog=BACKLOG)
    try:
        yield server.close
    finally:
        server.close()
        await wire.close()


@asynccontextmanager
async def serving_http(http: Http, listener: socket.socket) -> AsyncIterator[None]:
    """HTTP, served in the block."""
    serving = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        while not http.started and not serving.done():
            await asyncio.sleep(0.01)
        yield
    finally:
        http.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving


def _allow_files() -> None:
    """Let this process hold as many connections as the system lets it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def listener_at(host: str, port: int) -> socket.socket:
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
