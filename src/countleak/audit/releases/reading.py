"""Published tables in files: a row per cell, the dimensions in columns, and a count."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countleak.attack.noise import Range
from countleak.audit.tables import read_parquet, read_table
from countleak.errors import InputError, MissingExtra
from countleak.files import Name

# What stands in the place of a count that is not shown.
_SYMBOLS = ("", "*", "**", "..", "...", ":", "-", ".", "[c]", "[x]", "c", "x", "s", "z")
_WORDS = ("n/a", "na", "nan", "null", "none", "suppressed", "redacted", "confidential")
MARKERS = frozenset((*_SYMBOLS, *_WORDS))
_FEWER = re.compile(r"(?:<|<=|≤|under|fewer than|less than)\s*(\d{1,9})", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.0+)?")
MOST_NUMBERS = 2_000_000
# Of a number that is hidden for another reason than the rule of its table.
ANY = Range(0, 2**53)


@dataclass(frozen=True)
class Published:
    """A cell of a table: its ``labels``, one per dimension, and the count shown or none.

    ``among`` is what a cell that is not shown says of its count by how it is marked, like <5.
    """

    labels: tuple[str, ...]
    value: int | None
    among: Range | None = None


@dataclass(frozen=True)
class Release:
    """A published table: its ``dimensions``, and its ``numbers``, a cell each."""

    name: str
    dimensions: tuple[str, ...]
    count: str
    numbers: tuple[Published, ...]


def read_release(path: Name, count: str | None = None, name: str | None = None) -> Release:
    """The table in a CSV, Parquet or XLSX file; the last column of numbers is its count."""
    names, rows = _rows(path)
    if len(rows) > MOST_NUMBERS:
        raise InputError(f"{path}: {len(rows)} rows; a table may have {MOST_NUMBERS}, so split it")
    at = _count_column(path, names, rows) if count is None else _named(path, names, count)
    dimensions = tuple(name for i, name in enumerate(names) if i != at)
    numbers, seen = [], set()
    for line, row in rows:
        labels = tuple(part for i, part in enumerate(row) if i != at)
        if labels in seen:
            raise InputError(f"{path} line {line}: {', '.join(labels)} comes twice; keep one")
        seen.add(labels)
        numbers.append(_published(path, line, labels, row[at]))
    if not numbers:
        raise InputError(f"{path}: there is a header and no row below it")
    return Release(name or Path(path).stem, dimensions, names[at], tuple(numbers))


def _rows(path: Name) -> tuple[list[str], list[tuple[int, list[str]]]]:
    match Path(path).suffix.lower():
        case ".parquet":
            columns = read_parquet(path)
            values = zip(*(column.tolist() for column in columns.values()), strict=True)
            texts = [[_text(value) for value in row] for row in values]
            return list(columns), list(enumerate(texts, 1))
        case ".xlsx":
            return _sheet(path)
    return read_table(path)


def _sheet(path: Name) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The first sheet of a workbook."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("an XLSX file", "tables") from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = [[_text(v) for v in row] for row in book.worksheets[0].iter_rows(values_only=True)]
        book.close()
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path}: not an XLSX file that can be read ({error})") from None
    except Exception as error:
        # A damaged archive raises whatever its parts do.
        raise InputError(f"{path}: not an XLSX file ({type(error).__name__})") from None
    rows = [row for row in rows if any(row)]
    if not rows:
        raise InputError(f"{path}: the first sheet is empty")
    return rows[0], list(enumerate(rows[1:], 2))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _count_column(path: Name, names: list[str], rows: Sequence[tuple[int, list[str]]]) -> int:
    """The last column of which every entry is a count, or marks one that is not shown."""
    for at in reversed(range(len(names))):
        texts = {row[at] for _, row in rows}
        if any(_COUNT.fullmatch(text) for text in texts) and all(map(_is_entry, texts)):
            return at
    raise InputError(
        f"{path}: no column holds counts; one row per cell is expected, with the count in its "
        "last column"
    )


def _named(path: Name, names: list[str], count: str) -> int:
    if count not in names:
        raise InputError(f"{path}: there is no column {count!r}; there are {', '.join(names)}")
    return names.index(count)


def _is_entry(text: str) -> bool:
    return bool(text.lower() in MARKERS or _COUNT.fullmatch(text) or _FEWER.fullmatch(text))


def _published(path: Name, line: int, labels: tuple[str, ...], text: str) -> Published:
    if _COUNT.fullmatch(text):
        return Published(labels, int(float(text.replace(",", ""))))
    if match := _FEWER.fullmatch(text):
        strictly = not text.startswith(("<=", "≤"))
        most = int(match[1]) - strictly
        if most >= 0:
            return Published(labels, None, Range(0, most))
    elif text.lower() in MARKERS:
        return Published(labels, None)
    raise InputError(f"{path} line {line}: {text!r} is no count and marks none; fix the line")
