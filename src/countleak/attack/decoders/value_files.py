"""Guesses of values and of numbers as files: a header, then one line a person."""

from pathlib import Path
from typing import Any

import numpy as np

from countleak.attack.decoders.categorical import Categories
from countleak.attack.decoders.sums import Amounts
from countleak.errors import InputError
from countleak.files import Record, Records, read_records, write_records


def write_categories(path: Path, guess: Categories) -> None:
    """Write a guess of values; people about whom nothing is claimed have no value."""
    rows = zip(
        guess.ids.tolist(),
        guess.values.tolist(),
        guess.claimed.tolist(),
        guess.probability.tolist(),
        strict=True,
    )
    write_records(
        path,
        "categories",
        {"people": guess.ids.size, "values": guess.names, "rests_on": dict(guess.basis)},
        (
            {
                "id": person,
                **({"value": value} if claimed else {}),
                "probability": [round(p, 9) for p in chances],
            }
            for person, value, claimed, chances in rows
        ),
    )


def read_categories(path: Path) -> Categories:
    """The guess of a file written by ``write_categories``."""
    records = read_records(path, "categories")
    names = records.header.get("values")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise records.fault(1, "the header names no values; run `countleak categories` again")
    _check(records, "categories")
    seen: dict[int, int] = {}
    chances: list[list[float]] = []
    claimed: list[bool] = []
    for line, record in records.lines:
        _person(records, line, record, seen)
        given = record.get("probability")
        if (
            not isinstance(given, list)
            or len(given) != len(names)
            or not all(isinstance(p, int | float) and 0 <= p <= 1 for p in given)
            or record.get("value") not in (None, *names)
        ):
            raise records.fault(
                line,
                f'expected {{"id": a number, "value": one of {", ".join(names)}, "probability": '
                f"{len(names)} numbers from 0 to 1}}",
            )
        chances.append([float(p) for p in given])
        claimed.append("value" in record)
    return Categories(
        np.array(list(seen), dtype=np.int64),
        tuple(names),
        np.array(chances),
        np.array(claimed, dtype=np.bool_),
        _basis(records),
    )


def write_amounts(path: Path, guess: Amounts) -> None:
    """Write a guess of numbers, each with its standard error and interval."""
    fields = (guess.values, guess.error, guess.low, guess.high)
    rows = zip(guess.ids.tolist(), *(values.tolist() for values in fields), strict=True)
    header = {"people": guess.ids.size, "level": guess.level, "rests_on": dict(guess.basis)}
    write_records(
        path,
        "amounts",
        header,
        (
            {"id": person, "value": value, "error": error, "low": low, "high": high}
            for person, value, error, low, high in rows
        ),
    )


def read_amounts(path: Path) -> Amounts:
    """The guess of a file written by ``write_amounts``."""
    records = read_records(path, "amounts")
    level = records.header.get("level")
    if not isinstance(level, float) or not 0 < level < 1:
        raise records.fault(1, "the header gives no level; run `countleak sums` again")
    _check(records, "sums")
    seen: dict[int, int] = {}
    columns: dict[str, list[float]] = {"value": [], "error": [], "low": [], "high": []}
    for line, record in records.lines:
        _person(records, line, record, seen)
        for name, values in columns.items():
            number = record.get(name)
            if not isinstance(number, int | float) or not np.isfinite(number):
                raise records.fault(line, f"{name} is {number!r}, expected a number")
            values.append(float(number))
    value, error, low, high = (np.array(values) for values in columns.values())
    ids = np.array(list(seen), dtype=np.int64)
    return Amounts(ids, value, error, low, high, level, _basis(records))


def _check(records: Records, verb: str) -> None:
    if not records.lines:
        raise InputError(f"{records.path}: there is no guess in this file; run `countleak {verb}`")
    if records.header.get("people") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {records.header.get('people')} people, the file holds "
            f"{len(records.lines)}; run `countleak {verb}` again",
        )


def _person(records: Records, line: int, record: Record, seen: dict[int, int]) -> None:
    person = record.get("id")
    if not isinstance(person, int) or abs(person) >= 10**15:
        raise records.fault(line, f"id is {person!r}, expected a whole number")
    if person in seen:
        raise records.fault(line, f"id {person} stood on line {seen[person]} already")
    seen[person] = line


def _basis(records: Records) -> dict[str, Any]:
    rests_on = records.header.get("rests_on")
    return rests_on if isinstance(rests_on, dict) else {}
