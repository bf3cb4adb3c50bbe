"""Guesses as files: a header that says what the guess rests on, then one line a person."""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from countleak.attack.decoders import Guess
from countleak.errors import InputError
from countleak.files import read_records, write_records


def write_guess(path: Path, guess: Guess) -> None:
    """Write a guess; people about whom nothing is claimed have no value."""
    header = {"people": guess.ids.size, "rests_on": basis(guess)}
    write_records(path, "guess", header, (_person(guess, i) for i in range(guess.ids.size)))


def _person(guess: Guess, i: int) -> dict[str, Any]:
    record: dict[str, Any] = {"id": int(guess.ids[i])}
    if guess.claimed[i]:
        record |= {"value": int(guess.values[i]), "margin": round(float(guess.margin[i]), 9)}
    if guess.probability is not None:
        record["probability"] = round(float(guess.probability[i]), 9)
    if guess.forced is not None and guess.forced[i]:
        record["forced"] = True
    return record


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
    return {**found, **guess.basis}


def read_guess(path: Path) -> tuple[Guess, dict[str, Any]]:
    """The guess of a file written by ``write_guess``, and what it rests on, as plain fields."""
    records = read_records(path, "guess")
    if not records.lines:
        raise InputError(f"{path}: there is no guess in this file; run `countleak solve` again")
    header = records.header
    if header.get("people") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {header.get('people')} people, the file holds "
            f"{len(records.lines)}; run `countleak solve` again",
        )
    seen: dict[int, int] = {}
    values, claimed, margin, chances, forced = [], [], [], [], []
    for line, record in records.lines:
        person, value, sure = record.get("id"), record.get("value"), record.get("margin", 0.0)
        chance = record.get("probability")
        if (
            not isinstance(person, int)
            or abs(person) >= 10**15
            or value not in (0, 1, None)
            or not isinstance(sure, int | float)
            or not 0 <= sure <= 1
            or not (chance is None or (isinstance(chance, int | float) and 0 <= chance <= 1))
        ):
            raise records.fault(
                line,
                'expected {"id": a number, "value": 0 or 1, "margin": 0 to 1} and perhaps '
                '"probability": 0 to 1',
            )
        if person in seen:
            raise records.fault(line, f"id {person} stood on line {seen[person]} already")
        seen[person] = line
        values.append(value or 0)
        claimed.append(value is not None)
        margin.append(float(sure))
        chances.append(chance)
        forced.append(record.get("forced") is True)
    guess = Guess(
        np.array(list(seen), dtype=np.int64),
        np.array(values, dtype=np.int8),
        np.array(claimed, dtype=np.bool_),
        np.array(margin),
        probability=None if None in chances else np.array(chances, dtype=np.float64),
        forced=np.array(forced) if any(forced) else None,
    )
    rests_on = header.get("rests_on")
    return guess, rests_on if isinstance(rests_on, dict) else {}
