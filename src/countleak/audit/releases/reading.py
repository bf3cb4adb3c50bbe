"""Published tables: the dimensions, and a count per cell, or what stands in its place."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from countleak.attack.noise import Range
from countleak.audit.releases.formats import MARKERS, Rows, Why, is_shown, read_rows
from countleak.audit.releases.formats.rows import Tree, number_of
from countleak.errors import InputError
from countleak.files import Name

_FEWER = re.compile(r"(?:<|<=|≤|under|fewer than|less than)\s*(\d{1,9})", re.IGNORECASE)
# A text that may have been meant for a number.
_LIKE_A_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,%]*(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Published:
    """A cell of a table: its ``labels``, one per dimension, and the count shown or none.

    Of a cell that is not shown, ``mark`` is what stands there, ``among`` what that says of its
    count, like <5, and ``why`` why it is not shown, where that is known.
    """

    labels: tuple[str, ...]
    value: float | None
    among: Range | None = None
    mark: str = ""
    why: Why | None = None


@dataclass(frozen=True)
class Release:
    """A published table: its ``dimensions``, and its ``numbers``, a cell each.

    ``trees`` are code lists that its file has, by dimension.
    """

    name: str
    dimensions: tuple[str, ...]
    count: str
    numbers: tuple[Published, ...]
    trees: Mapping[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """How a file is to be read, where it was said: its ``count``, its ``marks``, and a name.

    ``noisy`` counts may be negative and have decimals.
    """

    count: str | None = None
    name: str | None = None
    marks: Mapping[str, Why | Range] = field(default_factory=dict)
    noisy: bool = False


def read_release(path: Name, how: Reading | None = None) -> Release:
    """The table in a file; the last column of numbers is its count."""
    how = how or Reading()
    rows = read_rows(path, how.count)
    if not rows.rows:
        raise InputError(f"{path}: there is a header and no row below it")
    at = _count_column(path, rows, how)
    dimensions = tuple(name for i, name in enumerate(rows.names) if i != at)
    numbers, seen = [], set()
    for line, row in rows.rows:
        labels = tuple(part for i, part in enumerate(row) if i != at)
        where = f"{path} {rows.unit} {line}"
        if "" in labels:
            raise InputError(
                f"{where}: no {dimensions[labels.index('')]}; write a label, or Total for everyone"
            )
        if labels in seen:
            raise InputError(f"{where}: {', '.join(labels)} comes twice; keep one")
        seen.add(labels)
        number = _published(where, labels, row[at], rows, how)
        if number is not None:
            numbers.append(number)
    if not numbers:
        raise InputError(f"{path}: every number is marked as absent; correct its marks")
    name = how.name or Path(path).stem
    return Release(name, dimensions, rows.names[at], tuple(numbers), rows.trees)


def _count_column(path: Name, rows: Rows, how: Reading) -> int:
    """The column said, or the last of which every entry is a count, or marks one not shown."""
    if rows.count is not None:
        return rows.count
    names = list(rows.names)
    if how.count is not None:
        if how.count not in names:
            known = ", ".join(names)
            raise InputError(f"{path}: there is no column {how.count!r}; there are {known}")
        return names.index(how.count)
    for at in reversed(range(len(names))):
        texts = {row[at] for _, row in rows.rows}
        if any(number_of(text, how.noisy) is not None for text in texts) and all(
            _is_entry(text, how) for text in texts
        ):
            return at
    for line, row in rows.rows:
        if not is_shown(row[-1]) and _LIKE_A_NUMBER.fullmatch(row[-1]):
            raise InputError(
                f"{path}: no column holds counts; in {rows.unit} {line} the last field is "
                f"{row[-1]!r}, no whole number from 0 (noise? say so in a releases.toml)"
            )
    raise InputError(
        f"{path}: no column holds counts; one row per cell is expected, with the count in its "
        "last column"
    )


def _is_entry(text: str, how: Reading) -> bool:
    marks = text in how.marks or text.lower() in MARKERS or _FEWER.fullmatch(text)
    return bool(marks) or number_of(text, how.noisy) is not None


def _published(
    where: str, labels: tuple[str, ...], text: str, rows: Rows, how: Reading
) -> Published | None:
    """A cell by what stands in it; None where that says nothing of these people."""
    value = number_of(text, how.noisy)
    if value is not None:
        return Published(labels, value)
    said = how.marks.get(text, rows.why.get(text))
    if said is Why.ABSENT:
        return None
    if isinstance(said, Range):
        return Published(labels, None, said, text)
    if match := _FEWER.fullmatch(text):
        strictly = not text.startswith(("<=", "≤"))
        most = int(match[1]) - strictly
        if most >= 0:
            return Published(labels, None, Range(0, most), text, said or Why.PRIMARY)
    elif said is not None or text.lower() in MARKERS:
        return Published(labels, None, None, text, said)
    elif rows.count is not None and not _LIKE_A_NUMBER.fullmatch(text):
        return Published(labels, None, None, text)
    raise InputError(f"{where}: {text!r} is no count and marks none; fix it, or say what it marks")


def marks_in(numbers: Sequence[Published]) -> dict[str, int]:
    """How often each mark stands in the place of a count that is not shown."""
    found: dict[str, int] = {}
    for number in numbers:
        if number.value is None:
            found[number.mark] = found.get(number.mark, 0) + 1
    return found
