"""What a server sends, counted before libpq reads it.

libpq makes room for as much as a server announces, and reads on within one call for as long as
there is more: up to two gigabytes, past any deadline. So its socket is replaced by one end of a
pair. At the other end stands the thread that waits, and lets through a little at a time.
"""

import os
import select
import socket
from array import array
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD
from time import monotonic

# Fits into the buffers of a pair on every system.
CHUNK = 4096


class Relay:
    """Stands between a connected socket and libpq, which keeps its number; ``count`` hears bytes.

    Encryption is libpq's: what passes here is what the server and libpq say to each other.
    """

    def __init__(self, number: int, count: Callable[[int], None]):
        """Take the place of the socket of that number."""
        self._number, self._count = number, count
        self._server = socket.socket(fileno=os.dup(number))
        self._ours, libpqs = socket.socketpair()
        for each in (self._server, self._ours, libpqs):
            each.setblocking(False)
        os.dup2(libpqs.fileno(), number, inheritable=False)
        libpqs.close()
        self._outgoing = b""
        self._ended = False

    def wait(self, writing: bool, deadline: float) -> bool:
        """Whether libpq can read, or also write if that is wanted, before a deadline."""
        while True:
            self._forward()
            if self._ended or self._unread() or (writing and not self._outgoing):
                return True
            poll = select.poll()
            poll.register(self._server, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
            ready = poll.poll(max(0.0, 1000 * (deadline - monotonic())))
            if not ready:
                return False
            if ready[0][1] & ~select.POLLOUT:
                self._receive()

    def _receive(self) -> None:
        try:
            data = self._server.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._count(len(data))
            # All of it fits: libpq has read whatever came before.
            self._ours.send(data)
        else:
            self._end()

    def _forward(self) -> None:
        """Send on what libpq has written, as far as the server takes it at once."""
        while True:
            if not self._outgoing:
                with suppress(OSError):
                    self._outgoing = self._ours.recv(2**16)
            if not self._outgoing:
                return
            try:
                self._outgoing = self._outgoing[self._server.send(self._outgoing) :]
            except BlockingIOError:
                return
            except OSError:
                # It does not listen any more; what it said last is still to be read.
                self._outgoing = b""

    def _unread(self) -> bool:
        """Whether libpq left something unread."""
        size = array("i", [0])
        ioctl(self._number, FIONREAD, size)
        return size[0] > 0

    def _end(self) -> None:
        self._ended = True
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Send on libpq's last words, if the server takes them at once, and let go."""
        self._forward()
        self._server.close()
        self._ours.close()
