"""Logs of queries as statements: plain SQL, CSV, JSON lines, and PostgreSQL's own logs.

Nothing is judged here: whatever stands where a statement should be is handed on as one.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from countleak.audit.tables import read_table
from countleak.errors import InputError
from countleak.files import Name, read_text

STATEMENT = ("statement", "query", "sql", "query_text")
TIME = ("time", "timestamp", "ts", "date", "log_time", "at")
USER = ("user", "user_name", "username", "usename", "login")
ANSWER = ("answer", "count", "result", "value")
# What marks the statement in a message of PostgreSQL.
MESSAGE = re.compile(r"(?:duration: [\d.]+ ms +)?(?:statement|execute [^:]*): (.*)", re.DOTALL)
ENTRY = re.compile(
    r"^(?P<prefix>.*?)\b(?P<level>LOG|DETAIL|ERROR|WARNING|HINT|STATEMENT|FATAL|NOTICE|CONTEXT):  "
    r"(?P<message>.*)$"
)
PARAMETER = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [A-Z]{2,5}\b)?")
# Of the columns of PostgreSQL's csvlog: time, user, message and detail.
CSVLOG, CSVLOG_WIDTH = (0, 1, 13, 14), 22
# What may stand around a semicolon, and how it ends.
MARKS = re.compile(r"""[;'"]|--|/\*""")
GAP = re.compile(r"\s+|--[^\n]*|/\*")
CLOSES = {"'": "'", '"': '"', "--": "\n", "/*": "*/"}


@dataclass(frozen=True)
class Logged:
    """A statement of a log: its ``number`` from 1 on, the line it begins on, and who asked when.

    ``parameters`` are what stands for $1, $2 and so on. The ``answer`` is as it was logged; None:
    the log has none.
    """

    number: int
    line: int
    text: str
    parameters: tuple[str | None, ...] = ()
    time: str = ""
    user: str = ""
    answer: str | None = None


def read_log(path: Name) -> list[Logged]:
    """The statements of a log file, in the order of the file; its form is seen by itself."""
    text = read_text(path)
    begins = text.lstrip()[:1]
    if begins == "{":
        found = _of_json(path, text)
    elif Path(path).suffix.lower() == ".csv":
        found = _of_csv(path, text)
    elif any(map(_is_entry, text.split("\n"))):
        found = _of_server(text)
    else:
        found = _of_sql(text)
    numbered = [Logged(number, *fields) for number, fields in enumerate(found, 1)]
    if not numbered:
        raise InputError(f"{path}: no statement is in this file; name a log of queries")
    return numbered


Fields = tuple[Any, ...]


def _of_sql(text: str) -> Iterator[Fields]:
    """Statements that end at a semicolon, or, where no line ends with one, at their line's end."""
    if any(line.rstrip().endswith(";") for line in text.split("\n")):
        parts = _at_semicolons(text)
    else:
        parts = _at_lines(text)
    line, counted = 1, 0
    for start, end in parts:
        part = text[start:end]
        if not _is_empty(part):
            begin = start + len(part) - len(part.lstrip())
            line += text.count("\n", counted, begin)
            counted = begin
            yield line, part.strip()


def _is_empty(part: str) -> bool:
    """Whether there is nothing but comments."""
    place = 0
    while gap := GAP.match(part, place):
        place = gap.end()
        if gap[0] == "/*":
            close = part.find("*/", place)
            if close < 0:
                return False
            place = close + 2
    return place == len(part)


def _at_lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _at_semicolons(text: str) -> Iterator[tuple[int, int]]:
    """Where statements start and end, semicolons within quotes and comments aside.

    A quote that nothing closes ends with its line, so that it takes no other statement along.
    """
    start = place = 0
    never: set[str] = set()
    while mark := MARKS.search(text, place):
        kind = mark[0]
        if kind == ";":
            yield start, mark.start()
            start = place = mark.end()
            continue
        close = -1 if kind in never else text.find(CLOSES[kind], mark.end())
        if close >= 0:
            place = close + len(CLOSES[kind])
            continue
        never.add(kind)
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        yield start, end
        start = place = end
    yield start, len(text)


def _of_json(path: Name, text: str) -> Iterator[Fields]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(
                f"{path} line {number}: not JSON; write one object per line, or SQL as it is"
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"{path} line {number}: expected a JSON object; correct the line")
        lower = {str(name).lower(): value for name, value in record.items()}
        statement = _first(lower, STATEMENT)
        if not isinstance(statement, str):
            raise InputError(
                f"{path} line {number}: no statement; call it {' or '.join(STATEMENT)}"
            )
        time, user, answer = (_first(lower, names) for names in (TIME, USER, ANSWER))
        yield (
            number,
            statement,
            (),
            _text(time),
            _text(user),
            None if answer is None else _text(answer),
        )


def _first(record: dict[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _of_csv(path: Name, text: str) -> Iterator[Fields]:
    """A table with a header that names the statement's column, or PostgreSQL's csvlog."""
    header = [name.strip().lower() for name in re.split("[,;\t]", text.partition("\n")[0])]
    plain = [name.strip('"') for name in header]
    if not set(STATEMENT) & set(plain):
        yield from _of_csvlog(path, text)
        return
    names, rows = read_table(path)
    lower = [name.lower() for name in names]
    places = [
        next((lower.index(name) for name in group if name in lower), None)
        for group in (STATEMENT, TIME, USER, ANSWER)
    ]
    for line, row in rows:
        statement, time, user, answer = ("" if at is None else row[at] for at in places)
        yield line, statement, (), time, user, answer or None


def _of_csvlog(path: Name, text: str) -> Iterator[Fields]:
    reader = csv.reader(StringIO(text))
    try:
        for row in reader:
            if len(row) < CSVLOG_WIDTH:
                raise InputError(
                    f"{path} line {reader.line_num}: no column is called {' or '.join(STATEMENT)}, "
                    "nor is this PostgreSQL's csvlog; add a header line"
                )
            time, user, message, detail = (row[at] for at in CSVLOG)
            if logged := MESSAGE.fullmatch(message):
                yield reader.line_num, logged[1], _parameters(detail), time, user
    except csv.Error as error:
        raise InputError(
            f"{path} line {reader.line_num}: not CSV ({error}); fix the line"
        ) from None


def _is_entry(line: str) -> bool:
    entry = ENTRY.match(line)
    return entry is not None and entry["level"] == "LOG" and bool(MESSAGE.match(entry["message"]))


def _of_server(text: str) -> Iterator[Fields]:
    """PostgreSQL's stderr: an entry begins with its level, and goes on in lines with a tab."""
    entries: list[tuple[int, str, str, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        entry = ENTRY.match(line)
        if entry is not None and not line.startswith("\t"):
            entries.append((number, entry["level"], entry["prefix"], [entry["message"]]))
        elif entries:
            entries[-1][3].append(line)
    details = [*entries[1:], (0, "", "", [""])]
    for (number, level, prefix, lines), after in zip(entries, details, strict=True):
        message = MESSAGE.fullmatch("\n".join(lines).rstrip())
        if level != "LOG" or message is None:
            continue
        detail = "\n".join(after[3]) if after[1] == "DETAIL" else ""
        time, user = STAMP.search(prefix), re.search(r"([\w.-]+)@[\w.-]+", prefix)
        yield (
            number,
            message[1],
            _parameters(detail),
            time[0] if time else "",
            user[1] if user else "",
        )


def _parameters(detail: str) -> tuple[str | None, ...]:
    """The values of $1, $2 and so on, as PostgreSQL writes them."""
    if not detail.lower().startswith("parameters: "):
        return ()
    found = {
        int(number): None if value == "NULL" else value[1:-1].replace("''", "'")
        for number, value in PARAMETER.findall(detail)
    }
    return tuple(found.get(number) for number in range(1, len(found) + 1))
