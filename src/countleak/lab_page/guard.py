"""Who may send the lab requests, and what a page of it may load.

The lab knows its visitors by nothing: no cookie, no account. So a page of somebody else's, open in
the same browser, could ask as well as its visitor. It cannot say that it comes from here, though:
browsers name the origin of whatever posts, and of every request whether it crosses sites.
"""

from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Nothing but the lab's own files, no script or style within a page, in nobody's frame.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# From the page itself, or from the address bar.
OWN_SITES = ("same-origin", "none")
ELSEWHERE = "This request comes from another site; open the lab itself."


class OwnPagesOnly:
    """An application that only its own pages can drive, whose pages load nothing from elsewhere."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        app: Any = self._app if _is_own(scope) else PlainTextResponse(ELSEWHERE, 403)
        await app(scope, receive, with_headers)


def _is_own(scope: Scope) -> bool:
    """Whether a request comes from a page of the lab, or opens one."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    site = headers.get("sec-fetch-site")
    if scope["method"] in ("GET", "HEAD"):
        # A link on another site may open a page of the lab; nothing else of it may be loaded.
        return site in (None, *OWN_SITES) or headers.get("sec-fetch-mode") == "navigate"
    origin = headers.get("origin")
    own = f"{scope['scheme']}://{headers.get('host')}"
    return origin == own and site in (None, *OWN_SITES)
