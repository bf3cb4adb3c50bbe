"""Values on the wire: PostgreSQL's types, in text and in binary."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from countleak.diffix.server.failures import BAD_VALUE, REFUSED, Failure

TEXT_FORMAT, BINARY_FORMAT = 0, 1
LARGEST_EXPONENT = 400


@dataclass(frozen=True)
class Type:
    """A type of PostgreSQL: the number it goes by, and its size in bytes (-1: any)."""

    name: str
    oid: int
    size: int


BOOL = Type("boolean", 16, 1)
INT8 = Type("bigint", 20, 8)
INT4 = Type("integer", 23, 4)
TEXT = Type("text", 25, -1)
FLOAT8 = Type("double precision", 701, 8)
TEXTS = Type("text[]", 1009, -1)


@dataclass(frozen=True)
class Field:
    """A column of a result."""

    name: str
    type: Type


def write(value: Any, type: Type, format: int) -> bytes | None:
    """A value as the wire carries it; None for NULL."""
    if value is None:
        return None
    try:
        if format == BINARY_FORMAT:
            return _BINARY[type.oid](value)
        return _written(value, type).encode()
    except (struct.error, ValueError, OverflowError):
        raise Failure("22003", f"A value does not fit the type {type.name}.") from None


def _written(value: Any, type: Type) -> str:
    if type is BOOL:
        return "t" if value else "f"
    if type is FLOAT8:
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if type is TEXTS:
        return "{" + ",".join("NULL" if v is None else _quoted(str(v)) for v in value) + "}"
    return str(int(value)) if type in (INT4, INT8) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binary_texts(values: list[Any]) -> bytes:
    encoded = [None if value is None else str(value).encode() for value in values]
    head = struct.pack("!iiI", 1 if encoded else 0, int(None in encoded), TEXT.oid)
    if not encoded:
        return head
    parts = [struct.pack("!i", -1) if e is None else struct.pack("!i", len(e)) + e for e in encoded]
    return head + struct.pack("!ii", len(encoded), 1) + b"".join(parts)


_BINARY: dict[int, Callable[[Any], bytes]] = {
    BOOL.oid: lambda value: struct.pack("!?", bool(value)),
    INT8.oid: lambda value: struct.pack("!q", int(value)),
    INT4.oid: lambda value: struct.pack("!i", int(value)),
    TEXT.oid: lambda value: str(value).encode(),
    FLOAT8.oid: lambda value: struct.pack("!d", float(value)),
    TEXTS.oid: _binary_texts,
}

Parameter = int | Decimal | bool | str | None


def read(raw: bytes | None, oid: int, format: int) -> Parameter:
    """The value of a parameter of type ``oid`` that came as text or binary."""
    if raw is None:
        return None
    if oid not in _READERS:
        raise Failure(REFUSED, f"Parameters of type {oid} are not read; send text or a number.")
    from_text, from_binary = _READERS[oid]
    try:
        return from_binary(raw) if format == BINARY_FORMAT else from_text(raw.decode())
    except (ValueError, struct.error, InvalidOperation):
        raise Failure(BAD_VALUE, "A parameter cannot be read as a value of its type.") from None


def _number(text: str) -> Decimal:
    number = Decimal(text.strip())
    exponent = number.as_tuple().exponent
    # Written out, a number has as many digits as its exponent says.
    if not isinstance(exponent, int) or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError("no number")
    return number


def _whole(size: str) -> Callable[[bytes], Parameter]:
    return lambda raw: int(struct.unpack(size, raw)[0])


def _float(size: str) -> Callable[[bytes], Parameter]:
    return lambda raw: _number(repr(struct.unpack(size, raw)[0]))


def _bool(text: str) -> bool:
    if text.lower() in ("t", "true", "1", "on", "yes"):
        return True
    if text.lower() in ("f", "false", "0", "off", "no"):
        return False
    raise ValueError("no boolean")


def _numeric(raw: bytes) -> Decimal:
    """A binary numeric: digits to the base 10,000, the weight of the first, sign and scale."""
    count, weight, sign, _ = struct.unpack_from("!HhHH", raw)
    if sign not in (0x0000, 0x4000):
        raise ValueError("no number")
    digits = "".join(f"{digit:04}" for digit in struct.unpack(f"!{count}H", raw[8:]))
    return _number(f"{'-' if sign else ''}{digits or 0}e{4 * (weight + 1 - count)}")


_TEXTS: tuple[Callable[[str], Parameter], Callable[[bytes], Parameter]] = (
    lambda text: text,
    bytes.decode,
)
_READERS: dict[int, tuple[Callable[[str], Parameter], Callable[[bytes], Parameter]]] = {
    16: (_bool, lambda raw: bool(struct.unpack("!?", raw)[0])),
    20: (int, _whole("!q")),
    21: (int, _whole("!h")),
    23: (int, _whole("!i")),
    26: (int, _whole("!I")),
    700: (_number, _float("!f")),
    701: (_number, _float("!d")),
    1700: (_number, _numeric),
    # "char", name, text, unknown, bpchar, varchar
    **dict.fromkeys((18, 19, 25, 705, 1042, 1043), _TEXTS),
}
