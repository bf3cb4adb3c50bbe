"""Limits on every request to the REST interface: its host, its type, its size and its time."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestGuard:
    """An application behind a limit on the size of a body and a list of host names.

    A page in a browser can make it call an address of this machine, but not under a name of this
    machine: requests for other hosts are refused where nobody has to show a token.
    """

    def __init__(
        self,
        app: ASGIApp,
        longest: int,
        seconds: float,
        hosts: Sequence[str] | None,
        kind: str = "application/json",
    ):
        """Let through bodies of ``longest`` bytes and this ``kind`` that come within ``seconds``.

        They must be for any of ``hosts`` (None: for all).
        """
        self._app = app
        self._longest = longest
        self._seconds = seconds
        self._hosts = hosts
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").rpartition(":")
        name = host[0] if host[1] and not host[2].endswith("]") else "".join(host)
        if self._hosts is not None and name not in self._hosts:
            await _refuse(400, "This server answers under its own name only.", scope, receive, send)
            return
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and kind != self._kind.encode():
            # A page elsewhere can have a browser post forms and texts, or nothing, but no JSON.
            await _refuse(415, f"Send the header content-type: {self._kind}.", scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._body(receive)
        except TimeoutError:
            await _refuse(408, "The client took too long.", scope, receive, send)
            return
        if body is None:
            await _refuse(
                413, f"A request has at most {self._longest} bytes.", scope, receive, send
            )
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, again, send)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body of a request; None where it is too long, or the client left."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if len(body) > self._longest:
                return None
            if not message.get("more_body"):
                return bytes(body)


async def _refuse(code: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    response: Any = JSONResponse({"detail": detail}, code)
    await response(scope, receive, send)
