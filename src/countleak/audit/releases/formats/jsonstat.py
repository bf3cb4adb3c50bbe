"""JSON-stat 1.x and 2.0: a cube whose numbers are listed with the last dimension fastest.

Read by hand: pyjstat leaves out ``status``, which says what was suppressed, and reads all as text.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from countleak.audit.releases.formats.cube import Dimension, rows_of
from countleak.audit.releases.formats.rows import Rows, Tree, require_few, text_of
from countleak.errors import InputError
from countleak.files import Name


def read_dataset(path: Name, record: Any, count: str | None = None) -> Rows:
    """The numbers of a dataset; of several measures those that ``count`` names."""
    dataset = _dataset(path, record)
    try:
        return _rows(path, dataset, count)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(
            f"{path}: not JSON-stat that can be read ({type(error).__name__}: {error}); a dataset "
            "has id, size, dimension and value"
        ) from None


def _dataset(path: Name, record: Any) -> Mapping[str, Any]:
    """The one dataset of a file: itself, or the only part of a 1.x bundle."""
    if isinstance(record, dict) and "value" in record and "dimension" in record:
        return record
    parts = list(record.values()) if isinstance(record, dict) else []
    sets = [part for part in parts if isinstance(part, dict) and "value" in part]
    if len(sets) == 1:
        return dict(sets[0])
    if sets:
        raise InputError(f"{path}: {len(sets)} JSON-stat datasets; write each to a file of its own")
    raise InputError(f"{path}: neither JSON-stat nor SDMX-JSON; a dataset has dimension and value")


def _rows(path: Name, dataset: Mapping[str, Any], count: str | None) -> Rows:
    described = dataset["dimension"]
    # In 1.x these are fields of the dimensions.
    ids = dataset.get("id") or described["id"]
    size = [int(length) for length in dataset.get("size") or described["size"]]
    roles = dataset.get("role") or described.get("role") or {}
    if len(ids) != len(size) or any(length < 1 for length in size):
        raise InputError(f"{path}: {len(ids)} dimensions but sizes {size}; fix the file")
    values, status = dataset["value"], dataset.get("status")
    require_few(path, len(values))
    if isinstance(values, list) and len(values) != prod(size):
        raise InputError(
            f"{path}: {len(values)} numbers where the dimensions have {prod(size)}; is it cut off?"
        )
    dimensions = []
    for name, length in zip(ids, size, strict=True):
        category = described[name].get("category") or {}
        labels = _labels(path, name, category, length)
        dimensions.append(Dimension(str(name), labels, name in roles.get("metric", ())))
    rows = rows_of(path, dimensions, _texts(path, values, status, prod(size)), count)
    trees = {name: tree for name in ids if (tree := _tree(described[name].get("category") or {}))}
    return Rows(rows.names, rows.rows, rows.count, rows.why, trees, rows.unit)


def _labels(path: Name, name: str, category: Mapping[str, Any], length: int) -> tuple[str, ...]:
    """The labels of a dimension in order; its codes where labels are not all different."""
    names, index = category.get("label") or {}, category.get("index")
    if index is None:
        codes = list(names)
    elif isinstance(index, dict):
        codes = sorted(index, key=lambda code: int(index[code]))
    else:
        codes = list(index)
    if len(codes) != length or len(set(codes)) != length:
        raise InputError(f"{path}: the dimension {name!r} has not {length} categories; fix it")
    labels = tuple(text_of(names.get(code, code)) for code in codes)
    return labels if len(set(labels)) == length else tuple(map(str, codes))


def _tree(category: Mapping[str, Any]) -> Tree:
    """The code list of a dimension, where the file has one."""
    names, children = category.get("label") or {}, category.get("child") or {}
    called = {code: text_of(names.get(code, code)) for part in children.values() for code in part}
    called |= {code: text_of(names.get(code, code)) for code in children}
    return {called[code]: tuple(called[part] for part in parts) for code, parts in children.items()}


def _texts(path: Name, values: Any, status: Any, size: int) -> Iterator[tuple[int, str]]:
    """The numbers by position, or the status of those that are not shown."""

    def mark(at: int) -> str:
        if isinstance(status, dict):
            return text_of(status.get(str(at)))
        if isinstance(status, list):
            return text_of(status[at]) if at < len(status) else ""
        return text_of(status)

    if isinstance(values, list):
        given = list(enumerate(values))
    else:
        marked = status if isinstance(status, dict) else {}
        given = [(int(at), values.get(at)) for at in dict.fromkeys([*values, *marked])]
    for at, value in given:
        if not 0 <= at < size:
            raise InputError(f"{path}: there is a number at {at}, but there are {size}; fix it")
        if value is None or isinstance(value, str):
            yield at, mark(at) or text_of(value)
        else:
            yield at, text_of(value)
