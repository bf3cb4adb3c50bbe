"""What a worker is asked, and what it replies: everything that passes between the processes."""

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from countleak.diffix.server.control import Control
from countleak.diffix.server.parameters import Parameter
from countleak.diffix.server.results import Field, Result
from countleak.diffix.sql.statement import Table

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True)
class Describe:
    """What does this statement take and return? Answered by a ``Description``, None if empty."""

    user: str
    text: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True)
class Description:
    """The types of a statement's parameters, and its columns; or what it says to the session."""

    types: tuple[int, ...] = ()
    fields: tuple[Field, ...] | None = None
    control: Control | None = None


@dataclass(frozen=True)
class Run:
    """Run the first statement of a text; answered by a ``Ran``.

    ``values`` are those of its parameters, ``formats`` those of the columns that come back.
    In a transaction that ``failed`` nothing is run but what ends it.
    """

    user: str
    text: str
    types: tuple[int, ...] = ()
    values: tuple[Parameter, ...] = ()
    formats: tuple[int, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class Ran:
    """What a statement returned (None if it was empty), or says to the session; and the others."""

    result: Result | Control | None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """Answer a question in JSON, as bytes: columns, rows and notices."""

    user: str
    text: str


Request = Describe | Run | Ask


@dataclass(frozen=True)
class Ready:
    """A worker has loaded its tables."""

    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Failed:
    """Why there is no answer: a PostgreSQL state and one line; ``trace`` is for the log."""

    state: str
    text: str
    trace: str = ""


@dataclass(frozen=True)
class Reply:
    """What a worker replies, the line for the log, and whether the worker ends with it."""

    value: Any
    line: str | None = None
    is_last: bool = False


def pack(message: object) -> bytes:
    """A message as it goes between processes: its length first."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Unpacking:
    """Puts messages together from the parts in which they come."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are whole with this part."""
        self._parts += data
        messages: list[Any] = []
        while len(self._parts) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._parts)[0]
            if len(self._parts) < end:
                break
            messages.append(pickle.loads(memoryview(self._parts)[_LENGTH.size : end]))
            del self._parts[:end]
        return messages
