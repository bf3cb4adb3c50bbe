"""HTTP connections that end in time, and give way to others while they have asked nothing."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from countleak.diffix.server.options import Limits

BACKLOG = 1024


class Http(uvicorn.Server):
    """uvicorn with limits of its own on connections, and signals left to whoever runs it."""

    def __init__(self, config: uvicorn.Config, limits: Limits, tls: ssl.SSLContext | None):
        super().__init__(config)
        self.limits = limits
        # Connections without a whole request, in the order they came.
        self.unfinished: dict[_Connection, None] = {}
        self._tls = tls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        """Listen; a handshake takes no longer than a login."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                lambda: _Connection(self),
                sock=listener,
                ssl=self._tls,
                backlog=BACKLOG,
                ssl_handshake_timeout=self.limits.login_seconds if self._tls else None,
            )
            for listener in sockets
        ]
        self.started = True


class _Connection(H11Protocol):
    """uvicorn's connection, with a limit on the time until the head of a request is there."""

    def __init__(self, http: Http):
        super().__init__(http.config, http.server_state, http.lifespan.state)
        self._http = http
        self._head_timer: asyncio.TimerHandle | None = None
        self._taking_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        oldest = next(iter(self._http.unfinished))
        if len(self.connections) > self._http.limits.connections and oldest is not self:
            # Whoever means it asks at once, and is through before others push it out.
            del self._http.unfinished[oldest]
            self.connections.discard(oldest)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self._http.limits.stall_seconds
        self._taking_timer = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking_timer is not None:
            self._taking_timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        if self._taking_timer is not None:
            self._taking_timer.cancel()
        self._http.unfinished.pop(self, None)
        super().connection_lost(exc)

    def _wait(self) -> None:
        """The next request is to come; its head must within the limit."""
        self._forget_timer()
        if not self.transport.is_closing():
            self._http.unfinished[self] = None
            seconds = self._http.limits.login_seconds
            # Not even what is still unsent is waited for.
            self._head_timer = self.loop.call_later(seconds, self.transport.abort)

    def _look(self) -> None:
        """See how far the request has come."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._forget_timer()
            if not cycle.more_body:
                self._http.unfinished.pop(self, None)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
