"""Parameters of a statement: their types, their values from the wire, and values put in.

Values enter as nodes of the parsed tree: a value cannot become anything but a value.
"""

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from countleak.diffix.server.errors import BAD_VALUE, REFUSED, Failure
from countleak.diffix.server.results import BINARY_FORMAT, FLOAT8, INT8, TEXT, Type
from countleak.diffix.sql.dates import date_of
from countleak.diffix.sql.statement import Kind, Table

LARGEST_EXPONENT = 400
# Characters of a number, which the server itself reads; with that exponent it has as many digits.
LONGEST_NUMBER = 1000
# As many as the longest IN list has elements, and some.
MOST_PARAMETERS = 2500
# PostgreSQL sends dates in days since 2000.
DAYS_TO_2000 = 10_957
Parameter = int | Decimal | bool | str | None
OF_KIND = {Kind.WHOLE: INT8, Kind.NUMBER: FLOAT8, Kind.TEXT: TEXT, Kind.DATE: TEXT}
# What gives texts; a date is read as the text that writes it.
_TEXTS_MADE = (
    *(exp.Lower, exp.Upper, exp.Substring, exp.Trim, exp.Left, exp.Right, exp.Concat, exp.DPipe),
    exp.TimestampTrunc,
)
_COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


def numbers_of(tree: exp.Expr) -> list[tuple[exp.Parameter, int]]:
    """The parameters of a tree, each with its number, which counts from 1."""
    numbered = []
    for node in tree.find_all(exp.Parameter):
        name = node.this.name if isinstance(node.this, exp.Expr) else ""
        if not name.isdigit() or not 1 <= int(name) <= MOST_PARAMETERS:
            raise Failure(
                BAD_VALUE, f"A parameter is written $1, $2, ..., at most ${MOST_PARAMETERS}."
            )
        numbered.append((node, int(name)))
    return numbered


def types_of(tree: exp.Expr, given: Sequence[int], tables: Sequence[Table]) -> tuple[int, ...]:
    """The type of each parameter: as given, or as what it is compared with."""
    inferred: dict[int, Type] = {}
    for node, number in numbers_of(tree):
        if number not in inferred or inferred[number] is FLOAT8:
            inferred[number] = _inferred(node, tables)
    count = max([len(given), *inferred])
    oids = [*given, *[0] * (count - len(given))]
    return tuple(
        # 705 is "unknown": a text whose type the server should tell.
        oid if oid not in (0, 705) else inferred.get(at, TEXT).oid
        for at, oid in enumerate(oids, 1)
    )


def _inferred(node: exp.Expr, tables: Sequence[Table]) -> Type:
    """The type of what a parameter is compared with."""
    above = node.parent
    if isinstance(above, exp.Cast):
        return _of_cast(above)
    while isinstance(above, exp.Paren | exp.Neg | exp.Tuple):
        above = above.parent
    if isinstance(above, exp.Like | exp.ILike):
        return TEXT
    if isinstance(above, _COMPARING):
        if not tables:
            return TEXT
        sides = [above.this, above.args.get("expression")]
        return next((found for side in sides if (found := _of_side(side, tables))), FLOAT8)
    return FLOAT8 if isinstance(above, exp.Binary) and tables else TEXT


def _of_side(side: Any, tables: Sequence[Table]) -> Type | None:
    """The type of what stands on the other side, where that is no number by default."""
    if isinstance(side, exp.Paren):
        return _of_side(side.this, tables)
    if isinstance(side, exp.Cast):
        return _of_cast(side)
    if isinstance(side, _TEXTS_MADE):
        return TEXT
    if not isinstance(side, exp.Column):
        return None
    # A subquery may call what it selects like a column of the table.
    aliases = side.root().find_all(exp.Alias)
    meant = next(
        (alias.this for alias in aliases if alias.alias.lower() == side.name.lower()), None
    )
    if meant is not None and meant is not side:
        return (
            _of_side(meant, tables)
            if not isinstance(meant, exp.Column)
            else _of_column(meant, tables)
        )
    return _of_column(side, tables)


def _of_column(column: exp.Column, tables: Sequence[Table]) -> Type | None:
    named = {t.alias_or_name.lower(): t.name.lower() for t in column.root().find_all(exp.Table)}
    asked = {named[column.table.lower()]} if column.table.lower() in named else {*named.values()}
    kinds = [
        kind
        for table in tables
        for name, kind in table.columns.items()
        if table.name.lower() in asked and name.lower() == column.name.lower()
    ]
    return OF_KIND[kinds[0]] if kinds else None


def _of_cast(cast: exp.Cast) -> Type:
    if cast.is_type(*exp.DataType.INTEGER_TYPES):
        return INT8
    return FLOAT8 if cast.is_type(*exp.DataType.NUMERIC_TYPES) else TEXT


def put_in(tree: exp.Expr, values: Sequence[Parameter], *, casts: bool = False) -> exp.Expr:
    """The tree with every parameter replaced by its value, and so a cast of one unless ``casts``.

    Diffix knows no casts; drivers write them around parameters to tell their types.
    """
    copied = tree.copy()
    for node, number in numbers_of(copied):
        if number > len(values):
            raise Failure(BAD_VALUE, f"There is no value for parameter ${number}.")
        place = node.parent if isinstance(node.parent, exp.Cast) and not casts else node
        place.replace(_literal(values[number - 1]))
    return copied


def _literal(value: Parameter) -> exp.Expr:
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case int() | Decimal():
            literal = exp.Literal.number(format(Decimal(value).copy_abs(), "f"))
            return exp.Neg(this=literal) if value < 0 else literal


def read_value(raw: bytes | None, oid: int, format: int) -> Parameter:
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
    if len(text) > LONGEST_NUMBER:
        raise ValueError("too long a number")
    number = Decimal(text.strip())
    exponent = number.as_tuple().exponent
    # Written out, a number has as many digits as its exponent says.
    if not isinstance(exponent, int) or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError("not a number")
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
    raise ValueError("not a boolean")


def _numeric(raw: bytes) -> Decimal:
    """A binary numeric: digits to the base 10,000, the weight of the first, sign and scale."""
    count, weight, sign, _ = struct.unpack_from("!HhHH", raw)
    if sign not in (0x0000, 0x4000):
        raise ValueError("not a number")
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
    1082: (lambda text: text, lambda raw: date_of(struct.unpack("!i", raw)[0] + DAYS_TO_2000)),
    # "char", name, text, unknown, bpchar, varchar
    **dict.fromkeys((18, 19, 25, 705, 1042, 1043), _TEXTS),
}
