"""A guess as a file: a header that says what it rests on, then one line per person."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.guess import FromFile, Guess, Intervals
from countleak.attack.queries.ids import Id, as_id, id_array, id_list
from countleak.attack.secrets import Category, Number, Secret, parse_secret
from countleak.errors import InputError
from countleak.files import Name, Record, Records, read_records, write_records

AGAIN = "run `countleak solve` again"


def write_guess(path: Name, guess: Guess, secret: Secret) -> None:
    """Write a guess of a secret; people about whom nothing is claimed have no value."""
    header = {
        "people": guess.ids.size,
        "secret": str(secret),
        **({"values": guess.names} if guess.names else {}),
        **({"level": guess.intervals.level} if guess.intervals is not None else {}),
        "rests_on": guess.basis.record(),
    }
    people = id_list(guess.ids)
    write_records(
        path,
        "guess",
        header,
        ({"id": person, **_record(guess, i)} for i, person in enumerate(people)),
    )


def _record(guess: Guess, i: int) -> Record:
    record: Record = {}
    if guess.claimed[i]:
        record["value"] = guess.values[i].item()
        if guess.margin is not None:
            record["margin"] = round(float(guess.margin[i]), 9)
    if guess.probability is not None:
        record["probability"] = np.round(guess.probability[i], 9).tolist()
    if guess.intervals is not None:
        parts = guess.intervals
        record |= {
            "error": float(parts.error[i]),
            "low": float(parts.low[i]),
            "high": float(parts.high[i]),
        }
    if guess.forced[i]:
        record["forced"] = True
    return record


def read_guess(path: Name) -> tuple[Guess, Secret]:
    """The guess of a file written by ``write_guess``, and the secret it is about."""
    records = read_records(path, "guess")
    secret = _secret(records)
    ids = _ids(records)
    names = _names(records) if isinstance(secret, Category) else ()
    claimed = np.array(["value" in record for _, record in records.lines])
    guess = Guess(
        ids,
        _values(records, secret, names),
        claimed,
        _basis(records),
        margin=_numbers(records, "margin", 0.0, 1.0),
        probability=_probability(records, names),
        names=names,
        intervals=_intervals(records) if isinstance(secret, Number) else None,
        forced=np.array([record.get("forced") is True for _, record in records.lines]),
    )
    return guess, secret


def _basis(records: Records) -> FromFile:
    held = records.header.get("rests_on")
    held = held if isinstance(held, dict) else {}
    rules = {name: held.get(name, []) for name in ("stated", "inferred")}
    for name, words in rules.items():
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise records.fault(1, f"{name} must be a list of rules in words; {AGAIN}")
    return FromFile(
        decoder=str(held.get("decoder", "unknown")),
        stated=tuple(rules["stated"]),
        inferred=tuple(rules["inferred"]),
        assuming=str(held.get("assuming", "")),
        misfit=str(held.get("misfit", "")),
        fields_of_file=held,
    )


def _secret(records: Records) -> Secret:
    if not records.lines:
        raise InputError(f"{records.path}: there is no guess in this file; {AGAIN}")
    if records.header.get("people") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {records.header.get('people')} people, the file holds "
            f"{len(records.lines)}; {AGAIN}",
        )
    described = records.header.get("secret")
    if not isinstance(described, str):
        raise records.fault(1, f"the header names no secret; {AGAIN}")
    try:
        return parse_secret(described)
    except InputError as error:
        raise records.fault(1, str(error)) from None


def _ids(records: Records) -> NDArray[Any]:
    seen: dict[Id, int] = {}
    for line, record in records.lines:
        try:
            person = as_id(record.get("id"))
        except InputError as error:
            raise records.fault(line, str(error)) from None
        if person in seen:
            raise records.fault(line, f"id {person} is a duplicate of line {seen[person]}")
        seen[person] = line
    try:
        return id_array(seen)
    except InputError as error:
        raise InputError(f"{records.path}: {error}") from None


def _names(records: Records) -> tuple[str, ...]:
    names = records.header.get("values")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        names = []
    if not 0 < len(set(names)) == len(names):
        raise records.fault(1, f"the header names no values, or one twice; {AGAIN}")
    return tuple(names)


def _values(records: Records, secret: Secret, names: tuple[str, ...]) -> NDArray[Any]:
    """Everyone's value; a filler of the right type where nothing is claimed."""
    values: list[Any] = []
    for line, record in records.lines:
        value = record.get("value")
        if isinstance(secret, Number):
            valid, expected = _is_number(value), "a number"
            filler: Any = np.nan
        elif names:
            valid, expected, filler = value in names, f"one of {', '.join(names)}", names[0]
        else:
            valid, expected, filler = type(value) is int and value in (0, 1), "0 or 1", 0
        if "value" in record and not valid:
            raise records.fault(line, f"value is {value!r}, expected {expected}")
        values.append(value if "value" in record else filler)
    if isinstance(secret, Number):
        return np.array(values, dtype=np.float64)
    return np.array(values) if names else np.array(values, dtype=np.int64)


def _probability(records: Records, names: tuple[str, ...]) -> NDArray[np.float64] | None:
    if not names:
        return _numbers(records, "probability", 0.0, 1.0)
    rows = []
    for line, record in records.lines:
        row = record.get("probability")
        if (
            not isinstance(row, list)
            or len(row) != len(names)
            or not all(_is_number(p) and 0 <= p <= 1 for p in row)
        ):
            raise records.fault(line, f"probability must be {len(names)} numbers from 0 to 1")
        rows.append([float(p) for p in row])
    return np.array(rows)


def _numbers(
    records: Records, name: str, low: float = -np.inf, high: float = np.inf
) -> NDArray[np.float64] | None:
    """A number of everyone, in [low, high]; None where any line has none."""
    values = []
    for line, record in records.lines:
        value = record.get(name)
        if name in record and not (_is_number(value) and low <= float(str(value)) <= high):
            raise records.fault(line, f"{name} is {value!r}, expected {low:g} to {high:g}")
        values.append(value)
    return None if None in values else np.array(values, dtype=np.float64)


def _intervals(records: Records) -> Intervals:
    level = records.header.get("level")
    if not isinstance(level, float) or not 0 < level < 1:
        raise records.fault(1, f"the header gives no level; {AGAIN}")
    parts = [_numbers(records, name) for name in ("error", "low", "high")]
    error, low, high = parts
    if error is None or low is None or high is None:
        raise records.fault(2, f"error, low or high is missing; {AGAIN}")
    return Intervals(error, low, high, level)


def _is_number(value: Any) -> bool:
    # A comparison, for whole numbers may be too large to convert; NaN compares false.
    return type(value) in (int, float) and abs(value) <= np.finfo(np.float64).max
