"""A client that says what it wants, right or wrong, over a plain socket."""

import socket
from contextlib import contextmanager

from pygwire import BackendMessageDecoder, ConnectionPhase, messages


class Raw:
    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._decoder = BackendMessageDecoder()
        self._decoder.phase = ConnectionPhase.EXTENDED_QUERY

    def send(self, *parts: messages.PGMessage | bytes) -> None:
        self.socket.sendall(b"".join(p if isinstance(p, bytes) else p.to_wire() for p in parts))

    def next(self) -> messages.PGMessage | None:
        """The next message; None where the server has closed the connection."""
        while True:
            for message in self._decoder:
                return message
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._decoder.feed(data)

    def until(self, *kinds: type) -> list[messages.PGMessage]:
        """The messages up to one of those kinds, or to the end."""
        found = []
        while (message := self.next()) is not None:
            found.append(message)
            if isinstance(message, kinds):
                break
        return found

    def start(self, user: str = "analyst", database: str = "bank", **more: str):
        self.phase(ConnectionPhase.AUTHENTICATING)
        self.send(messages.StartupMessage({"user": user, "database": database, **more}))

    def login(self) -> None:
        """Come in as the trusted user."""
        self.start()
        self.phase(ConnectionPhase.INITIALIZATION)
        assert isinstance(self.until(messages.ReadyForQuery)[-1], messages.ReadyForQuery)
        self.phase(ConnectionPhase.EXTENDED_QUERY)

    def phase(self, phase: ConnectionPhase) -> None:
        self._decoder.phase = phase

    def rest(self) -> bytes:
        """All that still comes, after nothing more is sent."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            parts = []
            while data := self.socket.recv(65536):
                parts.append(data)
        except OSError:
            return b""
        return b"".join(parts)


@contextmanager
def raw(port: int):
    client = Raw(port)
    try:
        yield client
    finally:
        client.socket.close()


def error_of(message: messages.PGMessage | None) -> tuple[str, str]:
    """State and text of an error."""
    assert isinstance(message, messages.ErrorResponse), message
    return message.fields["C"], message.fields["M"]
