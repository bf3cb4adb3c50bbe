"""What comes back from a statement: rows under typed fields, and how PostgreSQL writes values."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

TEXT_FORMAT, BINARY_FORMAT = 0, 1
# What ``Result.forgotten`` says where all prepared statements are.
EVERY = "*"


@dataclass(frozen=True)
class Type:
    """A type of PostgreSQL: the number it goes by, its size in bytes (-1: any), and its writers."""

    name: str
    oid: int
    size: int
    text: Callable[[Any], str] = field(repr=False, compare=False)
    binary: Callable[[Any], bytes] = field(repr=False, compare=False)


def _float_text(value: float) -> str:
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _texts(values: Sequence[Any]) -> str:
    """An array as text, its elements in quotes."""
    return "{" + ",".join("NULL" if v is None else _quoted(str(v)) for v in values) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binary_texts(values: Sequence[Any]) -> bytes:
    encoded = [None if value is None else str(value).encode() for value in values]
    head = struct.pack("!iiI", 1 if encoded else 0, int(None in encoded), TEXT.oid)
    if not encoded:
        return head
    parts = [struct.pack("!i", -1) if e is None else struct.pack("!i", len(e)) + e for e in encoded]
    return head + struct.pack("!ii", len(encoded), 1) + b"".join(parts)


BOOL = Type("boolean", 16, 1, lambda value: "t" if value else "f", struct.Struct("!?").pack)
INT8 = Type("bigint", 20, 8, str, struct.Struct("!q").pack)
INT4 = Type("integer", 23, 4, str, struct.Struct("!i").pack)
TEXT = Type("text", 25, -1, str, lambda value: str(value).encode())
FLOAT8 = Type("double precision", 701, 8, _float_text, struct.Struct("!d").pack)
TEXTS = Type("text[]", 1009, -1, _texts, _binary_texts)


@dataclass(frozen=True)
class Field:
    """A column of a result."""

    name: str
    type: Type


@dataclass(frozen=True)
class Result:
    """Rows under their fields (or none), what was done, and what else the client is told."""

    tag: str
    fields: tuple[Field, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[str, ...] = ()
    # Settings whose new values a client wants to hear of.
    changed: dict[str, str] = field(default_factory=dict)
    # The prepared statement that is to be forgotten, or every one.
    forgotten: str | None = None
