"""Servers that say what a test wants, right or wrong, to whoever connects, over plain sockets."""

import re
import socket
import struct
from contextlib import contextmanager, suppress
from threading import Event, Thread

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
INT8, FLOAT8, NUMERIC, TEXT = 20, 701, 1700, 25


class Closed(Exception):
    """The client is gone."""


class Peer:
    """The server's end of one connection."""

    def __init__(self, connection: socket.socket, over: Event):
        self.socket = connection
        self.over = over
        self._buffer = b""

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            raise Closed from None

    def read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        while len(self._buffer) < count:
            self._more()
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def until(self, end: bytes) -> bytes:
        """What comes up to ``end``, which is taken too."""
        while end not in self._buffer:
            self._more()
        data, _, self._buffer = self._buffer.partition(end)
        return data

    def stall(self) -> None:
        """Say nothing any more, until the test is over or the client gone."""
        with suppress(OSError):
            while self.socket.recv(65536):
                pass
        raise Closed

    def stream(self, data: bytes) -> None:
        """Say the same until the client goes away."""
        while True:
            self.send(data)

    def _more(self) -> None:
        try:
            data = self.socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            raise Closed
        self._buffer += data


class Hostile:
    """A server on a port of its own that hands every connection to ``serve``, in a thread."""

    def __init__(self, serve):
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.over = Event()
        self._peers: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self.over.is_set():
                connection.close()
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers.append(connection)
            self._threads.append(Thread(target=self._handle, args=(connection,)))
            self._threads[-1].start()

    def _handle(self, connection: socket.socket) -> None:
        with suppress(Closed):
            self._serve(Peer(connection, self.over))
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._threads[0].join(30)
        self._listener.close()
        for connection in self._peers:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        for connection in self._peers:
            connection.close()


@contextmanager
def hostile(serve):
    server = Hostile(serve)
    try:
        yield server
    finally:
        server.close()


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of PostgreSQL's protocol."""
    return kind + struct.pack("!i", len(body) + 4) + body


def row(text: bytes | None, oid: int = INT8, name: bytes = b"count") -> bytes:
    """The answer of one value, and that the server is ready."""
    value = struct.pack("!i", -1) if text is None else struct.pack("!i", len(text)) + text
    return b"".join(
        [
            message(b"T", b"\0\1" + name + b"\0" + struct.pack("!ihihih", 0, 0, oid, 8, -1, 0)),
            message(b"D", struct.pack("!h", 1) + value),
            message(b"C", b"SELECT 1\0"),
            READY,
        ]
    )  # fmt: skip


def error(text: bytes, state: bytes = b"XX000", kind: bytes = b"E") -> bytes:
    fields = ((b"S", b"ERROR"), (b"V", b"ERROR"), (b"C", state), (b"M", text))
    return message(kind, b"".join(key + value + b"\0" for key, value in fields) + b"\0")


READY = message(b"Z", b"I")
LOGIN = message(b"R", struct.pack("!i", 0))
SET = message(b"C", b"SET\0") + READY


def startup(peer: Peer) -> dict[str, str]:
    """What a client says to begin with; encryption is declined."""
    while True:
        size, code = struct.unpack("!ii", peer.read(8))
        body = peer.read(size - 8)
        if code not in (SSL_REQUEST, GSS_REQUEST):
            parts = body.decode().split("\0")
            return dict(zip(parts[::2], parts[1::2], strict=False))
        peer.send(b"N")


def statement(peer: Peer) -> str:
    """The next statement of a client that is logged in."""
    kind, size = struct.unpack("!ci", peer.read(5))
    body = peer.read(size - 4)
    if kind != b"Q":
        raise Closed
    return body.rstrip(b"\0").decode()


def postgres(reply):
    """A server that lets everyone in, and replies to a statement with ``reply(statement)``.

    A reply is bytes, or a function that is handed the connection.
    """

    def serve(peer: Peer) -> None:
        startup(peer)
        peer.send(LOGIN + READY)
        while True:
            text = statement(peer)
            said = SET if text.startswith("SET ") else reply(text)
            if callable(said):
                said(peer)
            else:
                peer.send(said)

    return serve


def http(reply):
    """A server that replies to a request with ``reply(method, path, body)``, as above."""

    def serve(peer: Peer) -> None:
        while True:
            head = peer.until(b"\r\n\r\n").decode()
            method, path, _ = head.split("\r\n")[0].split(" ")
            length = re.search(r"(?i)^content-length: *(\d+)", head, re.MULTILINE)
            said = reply(method, path, peer.read(int(length[1])) if length else b"")
            if callable(said):
                said(peer)
            else:
                peer.send(said)

    return serve


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body
