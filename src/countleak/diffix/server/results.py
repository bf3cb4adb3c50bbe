"""What comes back from a statement: rows under typed fields, and how PostgreSQL writes values."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from countleak.diffix.noise import STAR
from countleak.diffix.server.errors import Failure

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

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has the same types, and functions do not travel.
        return _of_oid, (self.oid,)


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
_BY_OID = {type.oid: type for type in (BOOL, INT8, INT4, TEXT, FLOAT8, TEXTS)}


def _of_oid(oid: int) -> Type:
    return _BY_OID[oid]


@dataclass(frozen=True)
class Field:
    """A column of a result."""

    name: str
    type: Type


@dataclass(frozen=True)
class Result:
    """Rows under their fields (or none), what was done, and what else the client is told.

    A row is the message that carries it.
    """

    tag: str
    fields: tuple[Field, ...] | None = None
    rows: Sequence[bytes] = ()
    notices: tuple[str, ...] = ()
    # Settings whose new values a client wants to hear of.
    changed: dict[str, str] = field(default_factory=dict)
    # The prepared statement that is to be forgotten, or every one.
    forgotten: str | None = None


def write_rows(
    rows: Iterable[Sequence[Any]], fields: Sequence[Field], formats: Sequence[int] = ()
) -> list[bytes]:
    """The message DataRow of each row, its values in those formats (none given: all as text)."""
    chosen = formats or [TEXT_FORMAT] * len(fields)
    columns = [(field.type, format) for field, format in zip(fields, chosen, strict=True)]
    written = []
    for row in rows:
        parts = [struct.pack("!H", len(columns))]
        for value, (type, format) in zip(row, columns, strict=True):
            raw = write_value(value, type, format)
            parts.append(b"\xff\xff\xff\xff" if raw is None else struct.pack("!I", len(raw)) + raw)
        body = b"".join(parts)
        written.append(b"D" + struct.pack("!I", len(body) + 4) + body)
    return written


def write_value(value: Any, type: Type, format: int) -> bytes | None:
    """A value as the wire carries it; None for NULL, and for a star, which numbers have none of."""
    if value is None or (type is not TEXT and isinstance(value, str) and value == STAR):
        return None
    try:
        return type.binary(value) if format == BINARY_FORMAT else type.text(value).encode()
    except (struct.error, ValueError, OverflowError):
        raise Failure("22003", f"A value does not fit the type {type.name}.") from None
