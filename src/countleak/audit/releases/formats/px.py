r"""PX files of statistical offices: ``KEYWORD("subkey")="text","text";``, the numbers at the end.

Read by hand: pyaxis fetches addresses that a name looks like, sets up logging for the whole program
and puts one mark for all kinds of dots.
"""

import re
from collections.abc import Iterator
from math import prod
from pathlib import Path

from countleak.audit.releases.formats.cube import Dimension, rows_of
from countleak.audit.releases.formats.rows import Rows, require_few
from countleak.errors import InputError
from countleak.files import Name

# A text in quotes, or what ends a statement or begins its value.
_TOKEN = re.compile(r'"[^"]*"|[;=]')
_KEY = re.compile(r"([A-Z][A-Z0-9_-]*)(?:\[[A-Za-z-]+\])?\s*(?:\((.*)\))?", re.DOTALL)
_CELL = re.compile(r'"([^"]*)"|([^\s,";]+)')
# What stands for nobody; dots stand for what is not shown, whatever their number means.
NIL = "-"

Entries = dict[tuple[str, str], str]


def read_px(path: Name, count: str | None = None) -> Rows:
    """The numbers of a PX file in its own language."""
    entries = _entries(path, _decoded(path))
    names = [*_quoted(entries.get(("STUB", ""))), *_quoted(entries.get(("HEADING", "")))]
    data = entries.get(("DATA", ""))
    if data is None or not names:
        raise InputError(f"{path}: not a PX file; it needs STUB or HEADING, VALUES and DATA")
    if any(key == "KEYS" for key, _ in entries):
        raise InputError(f"{path}: a PX file with KEYS; write it without, every number in DATA")
    measures = "".join(_quoted(entries.get(("CONTVARIABLE", ""))))
    dimensions = []
    for name in names:
        labels = _quoted(entries.get(("VALUES", name)))
        if not labels:
            raise InputError(f"{path}: there are no VALUES of {name!r}; is the file cut off?")
        codes = _quoted(entries.get(("CODES", name)))
        if len(set(labels)) < len(labels) and len(set(codes)) == len(labels):
            labels = codes
        dimensions.append(Dimension(name, labels, name == measures))
    size = prod(len(dimension.labels) for dimension in dimensions)
    require_few(path, size)
    cells = ["0" if NIL in pair else "".join(pair) for pair in _CELL.findall(data)]
    if len(cells) != size:
        raise InputError(f"{path}: {len(cells)} numbers where the VALUES make {size}; fix the file")
    return rows_of(path, dimensions, enumerate(cells), count)


def _decoded(path: Name) -> str:
    """The text, by the code page that it names; that of Windows where it names none."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    named = re.search(rb'(?:CODEPAGE|CHARSET)\s*=\s*"([^"]*)"', raw[:4096])
    code = named[1].decode("ascii", "replace").lower() if named else "windows-1252"
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return raw.decode("windows-1252" if code in ("ansi", "utf-8") else code)
    except (UnicodeDecodeError, LookupError):
        raise InputError(f"{path}: cannot be read as text ({code}); write it as UTF-8") from None


def _entries(path: Name, text: str) -> Entries:
    """The values by keyword and first subkey; those in other languages are left out."""
    entries: Entries = {}
    for key, value in _statements(path, text):
        match = _KEY.fullmatch(key)
        if match is None:
            raise InputError(f"{path}: {key[:40]!r} is no keyword of a PX file; fix the file")
        if "[" not in key.partition("(")[0]:
            subkeys = _quoted(match[2])
            entries.setdefault((match[1], subkeys[0] if subkeys else ""), value)
    return entries


def _statements(path: Name, text: str) -> Iterator[tuple[str, str]]:
    key, start = None, 0
    for token in _TOKEN.finditer(text):
        if token[0] == "=" and key is None:
            key, start = text[start : token.start()].strip(), token.end()
        elif token[0] == ";" and key is not None:
            yield key, text[start : token.start()]
            key, start = None, token.end()
    if key is not None and key.strip() == "DATA":
        raise InputError(f"{path}: DATA has no end (;); is the file cut off?")


def _quoted(text: str | None) -> list[str]:
    """The texts in quotes; one that goes over several lines is in one pair of them each."""
    if text is None:
        return []
    joined = re.sub(r'"\s*\n\s*"', "", text)
    return [part.strip() for part in re.findall(r'"([^"]*)"', joined)]
