"""Files of records that only ever grow, each with one writer at a time."""

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

from countleak.errors import InputError
from countleak.files import (
    Name,
    Records,
    beginning_of,
    header_line,
    is_stream,
    plain_errors,
    read_records,
    record_line,
    require_file,
)
from countleak.foreign import clean

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

# What a power failure may cost a journal.
SYNC_SECONDS = 0.5


class JournalFile:
    """A file of ``kind`` records that only grows; ``earlier`` is what stood there, or None.

    Opening it changes nothing. The first ``append`` writes the header of a new file together with
    its records, or removes a last line that was cut off when an earlier writer was killed.
    """

    def __init__(self, path: Name, kind: str, header: Mapping[str, Any]):
        """Read what stands at ``path``; ``header`` is that of a new file."""
        self.path = Path(path)
        self._kind, self._new = kind, header_line(kind, header)
        self._handle: int | None = None
        self._synced = 0.0
        self._is_held = False
        self._read()

    def _read(self) -> None:
        self._size = _size(self.path)
        self.earlier: Records | None = None
        self._pending = ""
        if beginning_of(self.path):
            self.earlier = read_records(self.path, self._kind, drop_torn=True)
        else:
            require_file(self.path)
            self._pending = self._new
        self._torn = self.earlier is not None

    @contextmanager
    def held(self) -> Iterator[bool]:
        """A block in which nobody else writes here; whether ``earlier`` was read anew for it.

        Within another such block of the same object it is that block.
        """
        if self._is_held or is_stream(self.path):
            yield False
            return
        with locked(self.path):
            changed = _size(self.path) != self._size
            if changed:
                self._read()
            self._is_held = True
            try:
                yield changed
            finally:
                self._is_held = False
                self.close()

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; when this returns they are safe from the end of this process.

        From a power failure they are safe half a second later, or when the block of ``held`` ends.
        """
        with self.held(), plain_errors(self.path):
            if self._torn:
                drop_torn_line(self.path)
                self._torn = False
            if self._handle is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._handle = os.open(self.path, flags, 0o666)
            text = self._pending + "".join(map(record_line, records))
            self._write(self._handle, text.encode())
            self._pending = ""

    def _write(self, handle: int, text: bytes) -> None:
        """Write the text; where that fails the file is as it was."""
        before = os.fstat(handle).st_size
        try:
            while text:
                text = text[os.write(handle, text) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, before)
                if not before and not is_stream(self.path):
                    self.path.unlink()
            raise
        if monotonic() > self._synced + SYNC_SECONDS:
            with suppress(OSError):
                # A pipe has no disk.
                os.fsync(handle)
            self._synced = monotonic()

    def close(self) -> None:
        """Let go of the file, and see it on disk."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):
                os.fsync(handle)
            os.close(handle)
        self._size = _size(self.path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


@contextmanager
def locked(path: Name) -> Iterator[None]:
    """A block in which no other process is in such a block for the same file.

    A hidden file beside it, which says who holds it, is locked by the system and goes with the
    block. The lock ends with its process, however that ends. Where a system has no such locks
    (Windows) nothing is locked.
    """
    if fcntl is None:
        yield
        return
    target = Path(path).resolve()
    lock = target.with_name(f".{target.name[:200]}.lock")
    new = [each for each in target.parents if not each.exists()]
    with plain_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = _lock(path, lock)
        os.ftruncate(handle, 0)
        since = datetime.now().isoformat(" ", "seconds")
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)
        for folder in new:
            # Those that are still empty: what was to be written did not come.
            with suppress(OSError):
                folder.rmdir()


def _lock(path: Name, lock: Path) -> int:
    """The locked file, open; who holds it otherwise is told."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed it since it was opened.
            if _size(lock) is not None and os.path.samestat(os.fstat(handle), lock.stat()):
                return handle
        except BlockingIOError:
            holder = os.read(handle, 200).decode("utf-8", "replace")
            os.close(handle)
            raise InputError(
                f"{path}: another run is writing there ({clean(holder) or 'just begun'}); wait for "
                "it, or name another file"
            ) from None
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def drop_torn_line(path: Name) -> None:
    """Remove a last line that was cut off when the writer was killed."""
    content = Path(path).read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)
