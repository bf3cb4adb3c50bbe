"""Frozen dataclasses from the plain fields of a file, each checked against its annotation."""

from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from countleak.errors import InputError

T = TypeVar("T")


def structured(kind: type[T], record: Any, where: str = "") -> T:
    """The dataclass that a JSON object holds; one that holds something else raises.

    Keys that the dataclass does not know are left out: a later version may have written them.
    """
    if not isinstance(record, dict):
        raise InputError(f"{where or 'it'} must be a JSON object")
    hints = get_type_hints(kind)
    parts = {}
    for field in fields(kind):  # type: ignore[arg-type]
        place = f"{where}.{field.name}" if where else field.name
        if field.name in record:
            parts[field.name] = _value(hints[field.name], record[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{place} is missing")
    return kind(**parts)


def _value(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        kinds = [kind for kind in inner if kind is not NoneType]
        return _first_fitting(kinds, value, where)
    if origin is tuple:
        return _tuple(inner, value, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"{where} must be a JSON object")
        return {name: _value(inner[1], part, f"{where}.{name}") for name, part in value.items()}
    if is_dataclass(hint):
        return structured(hint, value, where)  # type: ignore[arg-type]
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise InputError(f"{where} is {repr(value)[:40]}, expected {hint.__name__}")
    return value


def _first_fitting(kinds: list[Any], value: Any, where: str) -> Any:
    for kind in kinds[:-1]:
        try:
            return _value(kind, value, where)
        except InputError:
            continue
    return _value(kinds[-1], value, where)


def _tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list")
    if inner[-1] is Ellipsis:
        return tuple(_value(inner[0], part, f"{where}[{i}]") for i, part in enumerate(value))
    if len(value) != len(inner):
        raise InputError(f"{where} must be a list of {len(inner)}")
    pairs = zip(inner, value, strict=True)
    return tuple(_value(kind, part, f"{where}[{i}]") for i, (kind, part) in enumerate(pairs))
