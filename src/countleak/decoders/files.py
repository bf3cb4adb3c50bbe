"""Guesses as files: a header that says what the guess rests on, then one line a person."""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from countleak.decoders import Guess
from countleak.errors import InputError
from countleak.records import read_records, write_records


def write_guess(path: Path, guess: Guess) -> None:
    """Write a guess; people about whom nothing is claimed have no value."""
    people = zip(
        guess.ids.tolist(),
        guess.values.tolist(),
        guess.claimed.tolist(),
        guess.margin.tolist(),
        strict=True,
    )
    write_records(
        path,
        "guess",
        {"rests_on": basis(guess)},
        (
            {"id": person, "value": value, "margin": round(margin, 9)}
            if claimed
            else {"id": person}
            for person, value, claimed, margin in people
        ),
    )


def basis(guess: Guess) -> dict[str, Any]:
    """What a guess rests on, as plain fields: status, effort, certificate."""
    found: dict[str, Any] = {}
    if guess.solution is not None:
        found |= {
            "solver": guess.solution.solver,
            "status": guess.solution.status.name.lower(),
            "iterations": guess.solution.iterations,
            "seconds": round(guess.solution.seconds, 6),
        }
        if guess.solution.point is not None:
            found["point"] = guess.solution.point.value
    if guess.certificate is not None:
        fields = asdict(guess.certificate)
        found["certificate"] = {
            "kind": type(guess.certificate).__name__,
            **{k: v for k, v in fields.items() if not isinstance(v, float) or isfinite(v)},
        }
    return found


def read_guess(path: Path) -> Guess:
    """The guess of a file written by ``write_guess``; what it rests on stays in the file."""
    records = read_records(path, "guess")
    if not records.lines:
        raise InputError(f"{path}: there is no guess in this file; run `countleak solve` again")
    ids, values, claimed, margin = [], [], [], []
    for line, record in records.lines:
        person, value = record.get("id"), record.get("value")
        if not isinstance(person, int) or value not in (0, 1, None):
            raise records.fault(line, 'expected {"id": a number, "value": 0 or 1}')
        ids.append(person)
        values.append(value or 0)
        claimed.append(value is not None)
        margin.append(float(record.get("margin", 0.0)))
    return Guess(
        np.array(ids, dtype=np.int64),
        np.array(values, dtype=np.int8),
        np.array(claimed, dtype=np.bool_),
        np.array(margin),
    )
