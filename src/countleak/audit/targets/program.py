"""A program that is written to and read line by line, with a limit on each line and each wait.

One thread reads what it says on both its streams, and hands each line to whoever waits for it.
"""

import json
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Any

# Bytes of a line that it may send, and of the end of its error stream that are kept.
LONGEST_LINE, LONGEST_ERROR = 2**16, 2**12
# Seconds in which a program that closes its output may say why, and end.
LAST_WORDS = 1.0
# A whole number beyond 2^63 is no answer, and Python would take long over some.
LONGEST_NUMBER = 400


class ProgramError(Exception):
    """Why a program answers nothing any more; the text may hold its words."""


class Silent(ProgramError):
    """A program did not answer in time."""


class Program:
    """A program that runs, in a process group of its own."""

    def __init__(self, words: Sequence[str]):
        """Start it; raises OSError where that cannot be."""
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        self._numbers = count(1)
        self._writing, self._waiting_lock = Lock(), Lock()
        self._waiting: dict[int, SimpleQueue[dict[str, Any] | ProgramError]] = {}
        self._fault: ProgramError | None = None
        self._last_words = b""
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._stdin, False)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def number(self) -> int:
        """The id of another message."""
        return next(self._numbers)

    def exchange(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The reply to a message, by its id, within so many seconds."""
        deadline = monotonic() + seconds
        reply: SimpleQueue[dict[str, Any] | ProgramError] = SimpleQueue()
        with self._waiting_lock:
            if self._fault is not None:
                raise self._fault
            self._waiting[message["id"]] = reply
        try:
            self._write(json.dumps(message).encode() + b"\n", deadline)
            said = reply.get(timeout=max(0.0, deadline - monotonic()))
        except Empty:
            raise Silent("no answer in time") from None
        finally:
            with self._waiting_lock:
                self._waiting.pop(message["id"], None)
        if isinstance(said, ProgramError):
            raise said
        return said

    def close(self) -> None:
        """Kill it and its group, and let go of it; nothing is waited for that it could hold up."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):
            os.write(self._woken, b"x")
        self._reader.join(LAST_WORDS)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_WORDS)
        if not self._reader.is_alive():
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            os.close(self._wake)
            os.close(self._woken)

    @property
    def _stdin(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _write(self, text: bytes, deadline: float) -> None:
        """Write a line, whole or never again another."""
        if not self._writing.acquire(timeout=max(0.0, deadline - monotonic())):
            raise Silent("it takes no questions")
        try:
            poll = select.poll()
            poll.register(self._stdin, select.POLLOUT)
            while text:
                if not poll.poll(max(0.0, 1000 * (deadline - monotonic()))):
                    self._fail(ProgramError("it takes no questions"))
                    raise Silent("it takes no questions")
                try:
                    text = text[os.write(self._stdin, text) :]
                except BlockingIOError:
                    continue
        except (OSError, ValueError):
            # It does not listen; why, its reader hears.
            return
        finally:
            self._writing.release()

    def _read(self) -> None:
        """Take in all that it says until it ends, breaks a rule, or is closed."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        output, errors = self._process.stdout.fileno(), self._process.stderr.fileno()
        poll = select.poll()
        for each in (output, errors, self._wake):
            poll.register(each, select.POLLIN)
        unread = b""
        while True:
            ready = {number for number, _ in poll.poll()}
            if self._wake in ready:
                self._fail(ProgramError("it was closed"))
                return
            if errors in ready and not self._take_words(errors):
                poll.unregister(errors)
            if output not in ready:
                continue
            if not (data := _chunk(output)):
                self._end(errors)
                return
            *lines, unread = (unread + data).split(b"\n")
            try:
                for line in lines:
                    self._take(line)
                if len(unread) > LONGEST_LINE:
                    raise ProgramError(f"it sent a line of more than {LONGEST_LINE // 1024} KiB")
            except ProgramError as error:
                self._fail(error)
                return

    def _take(self, line: bytes) -> None:
        """Hand a line to whoever waits for it."""
        if not line.strip():
            return
        if len(line) > LONGEST_LINE:
            raise ProgramError(f"it sent a line of more than {LONGEST_LINE // 1024} KiB")
        try:
            reply = json.loads(line, parse_int=_whole)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict) or type(reply.get("id")) is not int:
            shown = line[:60].decode("utf-8", "replace")
            raise ProgramError(f"it sent {shown!r}, which is no answer of the protocol")
        with self._waiting_lock:
            waiting = self._waiting.pop(reply["id"], None)
        if waiting is None:
            raise ProgramError(f"it answered id {reply['id']}, which was not asked or is answered")
        waiting.put(reply)

    def _take_words(self, errors: int) -> bool:
        """Keep the end of what it says on its error stream; whether there may be more."""
        data = _chunk(errors)
        self._last_words = (self._last_words + data)[-LONGEST_ERROR:]
        return bool(data)

    def _end(self, errors: int) -> None:
        """Tell everyone how it ended."""
        end = monotonic() + LAST_WORDS
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(LAST_WORDS)
        poll = select.poll()
        poll.register(errors, select.POLLIN)
        # Something it started may hold the stream open, and write on.
        while monotonic() < end and poll.poll(0) and self._take_words(errors):
            pass
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}"
        words = [
            line
            for line in self._last_words.decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
        self._fail(ProgramError(f"it {how}" + (f": {words[-1].strip()}" if words else "")))

    def _fail(self, error: ProgramError) -> None:
        with self._waiting_lock:
            self._fault = self._fault or error
            waiting, self._waiting = list(self._waiting.values()), {}
        for each in waiting:
            each.put(error)


def _chunk(number: int) -> bytes:
    try:
        return os.read(number, 2**16)
    except OSError:
        return b""


def _whole(text: str) -> int | float:
    """A whole number; one too long to be a count as infinity, which is none."""
    return int(text) if len(text) <= LONGEST_NUMBER else float("inf")
