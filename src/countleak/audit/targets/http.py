"""JSON over HTTP in which nothing waits beyond a deadline or reads beyond a limit.

The standard library's client limits the lines and the number of headers; its timeouts hold for
every single read, so a server could trickle for ever. Here each read gets what is left of the time
for the whole request. Redirects and proxies are not followed, and nothing is decompressed.
"""

import json
import re
import socket
import ssl
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from time import monotonic, time
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote

Result = TypeVar("Result")
# Statuses of a server, or of what stands before it, that may be otherwise soon.
BUSY = (429, 502, 503, 504)
# Bytes of an answer: a count has a few hundred.
MOST = 2**20


class HttpError(Exception):
    """Why there is no response; the text may hold a server's words."""


class Overdue(HttpError):
    """A server did not do its part in time."""


class Lost(HttpError):
    """There is no connection, or none any more."""


class Busy(HttpError):
    """A server has no time now; it asks to be left for ``retry_after`` seconds, or says nothing."""

    def __init__(self, words: str, retry_after: float | None):
        super().__init__(words)
        self.retry_after = retry_after


class _Timed:
    """A socket whose reads and writes share one deadline."""

    deadline = 0.0

    def recv_into(self, *given: Any) -> int:
        self._allow_the_rest()
        return super().recv_into(*given)  # type: ignore[misc, no-any-return]

    def sendall(self, *given: Any) -> None:
        self._allow_the_rest()
        super().sendall(*given)  # type: ignore[misc]

    def _allow_the_rest(self) -> None:
        self.settimeout(_left(self.deadline))  # type: ignore[attr-defined]


class _Socket(_Timed, socket.socket):
    pass


class _TlsSocket(_Timed, ssl.SSLSocket):
    pass


class _Connection(HTTPConnection):
    """The library's connection, made before a deadline."""

    deadline = 0.0
    sock: _Socket | _TlsSocket | None
    tls: ssl.SSLContext | None = None

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), _left(self.deadline))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is None:
            self.sock = _Socket(fileno=plain.detach())
        else:
            plain.settimeout(_left(self.deadline))
            with plain:
                wrapped = self.tls.wrap_socket(plain, server_hostname=self.host)
            assert isinstance(wrapped, _TlsSocket)
            self.sock = wrapped
        self.sock.deadline = self.deadline


class HttpSession:
    """Requests to the server of an address, over one connection that is kept open."""

    def __init__(self, address: SplitResult, headers: dict[str, str]):
        """Connect with the first request."""
        assert address.hostname is not None
        is_tls = address.scheme == "https"
        self._connection = _Connection(address.hostname, address.port or (443 if is_tls else 80))
        if is_tls:
            self._connection.tls = ssl.create_default_context()
            self._connection.tls.sslsocket_class = _TlsSocket
        self._base = quote(address.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self._headers = {**headers, "Accept": "application/json", "Accept-Encoding": "identity"}

    def open(self, deadline: float) -> None:
        """Connect now."""
        self._within(deadline, self._connection.connect)

    def request(self, method: str, path: str, deadline: float, body: Any = None) -> tuple[int, Any]:
        """The status of a response, and the JSON in it; None where there is none."""
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        if self._is_stale():
            self._connection.close()

        def exchange() -> tuple[int, str | None, bytes]:
            self._connection.request(method, self._base + path, content, headers)
            response = self._connection.getresponse()
            return response.status, response.getheader("Retry-After"), _body(response)

        status, wait, text = self._within(deadline, exchange)
        if status in BUSY:
            raise Busy(f"status {status}", _seconds(wait))
        try:
            return status, json.loads(text)
        except (ValueError, RecursionError):
            return status, None

    def close(self) -> None:
        """Give it up."""
        self._connection.close()

    def _within(self, deadline: float, act: Callable[[], Result]) -> Result:
        connection = self._connection
        connection.deadline = deadline
        if connection.sock is not None:
            connection.sock.deadline = deadline
        try:
            return act()
        except (HttpError, HTTPException, OSError, ValueError) as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise Overdue("no answer in time") from None
            if isinstance(error, HttpError):
                raise
            kind = Lost if isinstance(error, OSError | IncompleteRead) else HttpError
            raise kind(str(error) or type(error).__name__) from None

    def _is_stale(self) -> bool:
        """Whether the server has closed the connection, or said something unasked."""
        if (sock := self._connection.sock) is None:
            return False
        sock.settimeout(0)
        try:
            # Past any encryption, which may have left something of its own to read.
            said = socket.socket.recv(sock, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not said or self._connection.tls is None


def _body(response: HTTPResponse) -> bytes:
    if response.getheader("Content-Encoding", "identity").lower() != "identity":
        raise HttpError("the answer is compressed, which was not asked for")
    if (response.length or 0) <= MOST and len(body := response.read(MOST + 1)) <= MOST:
        return body
    raise HttpError(f"the answer is longer than {MOST // 2**20} MiB")


def _seconds(wait: str | None) -> float | None:
    """How long a header Retry-After says to wait: seconds, or until a date."""
    if wait is None:
        return None
    if re.fullmatch("[0-9]{1,9}", wait.strip()):
        return float(wait)
    try:
        return max(0.0, parsedate_to_datetime(wait).timestamp() - time())
    except (ValueError, OverflowError):
        return None


def _left(deadline: float) -> float:
    if (left := deadline - monotonic()) <= 0:
        raise TimeoutError
    return left
