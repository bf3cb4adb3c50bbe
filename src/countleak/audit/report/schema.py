"""The JSON schema of a report, read off the dataclasses that hold it."""

import json
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from countleak.audit.report.report import VERSION, Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def report_schema() -> dict[str, Any]:
    """The schema of ``report.json``, which the package ships as ``report.schema.json``."""
    definitions: dict[str, Any] = {}
    root = _object(Report, definitions)
    marks = {"countleak": {"const": "report"}, "version": {"const": VERSION}}
    return {
        "$schema": DIALECT,
        "title": "A report of countleak",
        **root,
        "properties": {**marks, **root["properties"]},
        "required": [*marks, *root["required"]],
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    required = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    return {
        "description": " ".join(str(kind.__doc__).split()).replace("``", "`"),
        "type": "object",
        "properties": {field.name: _of(hints[field.name], definitions) for field in fields(kind)},
        "required": required,
        "additionalProperties": False,
    }


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = [_of(part, definitions) for part in inner if part is not NoneType]
        return {"anyOf": [*parts, {"type": "null"}]} if NoneType in inner else {"anyOf": parts}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _of(inner[0], definitions)}
    if origin is tuple:
        items = [_of(part, definitions) for part in inner]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inner[1], definitions)}
    if is_dataclass(hint):
        name = getattr(hint, "__name__", "")
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [member.value for member in hint]}
    return {} if hint is Any else {"type": PRIMITIVES[hint]}


if __name__ == "__main__":
    (Path(__file__).parent / "report.schema.json").write_text(
        json.dumps(report_schema(), indent=2) + "\n", encoding="utf-8"
    )
