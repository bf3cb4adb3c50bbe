"""What every adapter needs: the people of a CSV file, and answers to countleak's questions.

An adapter hands ``serve`` a function that opens its engine over the people; that one returns a
function that counts. The lines that come and go are those of docs/protocol.md. Only the standard
library is used, for each adapter runs in the environment of its engine.
"""

import argparse
import csv
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

KINDS: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "number": float,
    "text": str,
    "boolean": lambda text: text.lower() in ("true", "t", "yes", "1"),
}
# 01 is no number but a code.
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
# A text in quotes, or a name in quotes.
QUOTED = re.compile(r"'(?:[^']|'')*'|\"([^\"]*)\"")


class Refused(Exception):
    """The engine does not answer this question; the text says why, in its words."""


@dataclass(frozen=True)
class Question:
    """A question: its condition in SQL, and what it is made of.

    ``members`` are the ids it is about, ``held`` is what must hold of them, in SQL or None, and
    ``rows`` are the numbers of the rows that fit both.
    """

    where: str
    members: Sequence[Any]
    held: str | None
    rows: Sequence[int]


class Table:
    """Columns of rows, which conditions in SQL can be put to."""

    def __init__(self, columns: dict[str, list[Any]]):
        """Take in equally long columns by name."""
        self.columns = columns
        self._database = sqlite3.connect(":memory:")
        # With their types, so that 7 and '7' are compared as in other databases.
        names = ", ".join(f"[{name}] {_type(values)}" for name, values in columns.items())
        self._database.execute(f"CREATE TABLE rows ({names})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        self._database.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
        self.matching = cache(self._matching)

    def _matching(self, condition: str) -> list[int]:
        """The numbers of the rows for which a condition holds."""
        # SQLite takes "name" for a text where there is no such column; [name] it rejects.
        in_brackets = QUOTED.sub(lambda at: at[0] if at[1] is None else f"[{at[1]}]", condition)
        select = f"SELECT rowid - 1 FROM rows WHERE {in_brackets}"
        return [number for (number,) in self._database.execute(select)]


class People(Table):
    """The rows of a CSV file, one per person; ``key`` are their id columns."""

    def __init__(self, path: str, key: Sequence[str], kinds: dict[str, str]):
        """Read the file; ``kinds`` say of columns that they hold an integer or a number."""
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file)
        if missing := [name for name in (*key, *kinds) if name not in header]:
            raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(header)}")
        texts = dict(zip(header, zip(*rows, strict=True), strict=True))
        super().__init__({name: _read(texts[name], kinds.get(name)) for name in header})
        self.key = tuple(key)
        ids = zip(*(self.columns[name] for name in key), strict=True)
        self._rows = {id_: number for number, id_ in enumerate(ids)}

    @property
    def id_column(self) -> str:
        """The id column, for engines that take one."""
        if len(self.key) > 1:
            raise ValueError(f"this engine takes one id column, not {', '.join(self.key)}")
        return self.key[0]

    def rows(self, members: Sequence[Any], held: str | None) -> list[int]:
        """The rows of some people, by id, for which what must be ``held`` holds."""
        numbers = [self._rows[tuple(m) if isinstance(m, list) else (m,)] for m in members]
        if held is None:
            return numbers
        holds = set(self.matching(held))
        return [number for number in numbers if number in holds]


def _read(texts: Sequence[str], kind: str | None) -> list[Any]:
    """The cells of a column, which holds numbers if it is said so, or all of it reads like that."""
    present = [text for text in texts if text != ""]
    if kind is None:
        numbers = present and all(map(NUMBER.fullmatch, present))
        kind = "text" if not numbers else "number" if "." in "".join(present) else "integer"
    return [None if text == "" else KINDS[kind](text) for text in texts]


def _type(values: Sequence[Any]) -> str:
    present = {type(value) for value in values if value is not None}
    if present <= {int, bool}:
        return "INTEGER"
    return "REAL" if present <= {int, float} else "TEXT"


# Counts a question; None where the count is suppressed.
Counter = Callable[[Question], float | None]


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser for an adapter's words, the first of which is the file of people."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("people", help="CSV file with one row per person")
    return parser


def serve(name: str, path: str, open_engine: Callable[[People], Counter]) -> None:
    """Answer questions about the people of a file until there are no more."""
    # Engines print, too: whatever they say goes to the error stream.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(number: int, **reply: Any) -> None:
        print(json.dumps({"id": number, **reply}), file=answers, flush=True)

    hello = json.loads(sys.stdin.readline())
    try:
        if hello["sum"] is not None:
            raise ValueError("this adapter counts people and adds up nothing; ask for a condition")
        people = People(path, hello["key"], hello["columns"] or {})
        count = open_engine(people)
    except Exception as error:
        say(0, error=_in_words(error))
        return
    say(0, protocol=1, name=name)
    for line in sys.stdin:
        say(**_reply(json.loads(line), people, count))


def _reply(question: dict[str, Any], people: People, count: Counter) -> dict[str, Any]:
    number = {"number": question["id"]}
    try:
        if question["members"] is None:
            raise Refused("this adapter answers about people one by one; name another family")
        members, held = question["members"], question["held"]
        rows = people.rows(members, held)
        value = count(Question(question["where"], members, held, rows))
    except Refused as refused:
        return {**number, "refused": str(refused)}
    except Exception as error:
        # Whatever an engine raises is a fault that ends the run in one line.
        return {**number, "error": _in_words(error)}
    return {**number, "suppressed": True} if value is None else {**number, "value": float(value)}


def _in_words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
