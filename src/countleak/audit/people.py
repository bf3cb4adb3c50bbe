"""The people under attack: their ids, what is known of them, and the bit each keeps secret."""

import csv
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countleak.errors import InputError, ShapeError
from countleak.files import read_text, replacing

COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Condition:
    """A yes-no question about a person: ``column`` ``comparison`` ``value``."""

    column: str
    comparison: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The condition written ``status = 'C'`` or ``amount >= 5000``."""
        match = re.fullmatch(r"\s*(\w+)\s*(=|<>|<=|>=|<|>)\s*('[^']*'|[^\s'\"]+)\s*", text)
        if not match:
            raise InputError(
                f"condition {text!r} cannot be read; write it like status = 'C' or amount >= 5000"
            )
        column, comparison, value = match.groups()
        return cls(column, comparison, value.strip("'"))

    def __str__(self) -> str:
        quoted = self.value if re.fullmatch(r"-?\d+(\.\d+)?", self.value) else f"'{self.value}'"
        return f"{self.column} {self.comparison} {quoted}"


@dataclass(frozen=True)
class Total:
    """A number of each person that a system adds up: ``column``."""

    column: str

    def __str__(self) -> str:
        return self.column


@dataclass(frozen=True, eq=False)
class People:
    """n people: ``ids`` (n,), ascending and unique, and named ``columns``, each (n,)."""

    ids: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]
    id_column: str = "client_id"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^\W\d]\w*", self.id_column):
            raise InputError(f"id column {self.id_column!r} cannot stand in SQL; rename it")
        if self.ids.size < 2:
            raise InputError(
                f"{self.ids.size} people, but a reconstruction needs at least 2; check the file "
                "or widen the id range"
            )
        if (np.diff(self.ids) == 0).any():
            raise InputError("an id occurs more than once; keep one row a person")
        if (np.diff(self.ids) < 0).any():
            raise InputError("the ids are not in ascending order; sort the people by id")
        for name, values in self.columns.items():
            if values.shape != self.ids.shape:
                raise ShapeError(f"{self.ids.size} ids but {values.size} values of {name}")

    def __len__(self) -> int:
        return self.ids.size

    def column(self, name: str) -> NDArray[Any]:
        """The values (n,) of a column."""
        if name not in self.columns:
            raise InputError(
                f"there is no column {name!r}; the columns are {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]

    def numbers(self, total: Total) -> NDArray[np.float64]:
        """The numbers (n,) that a total adds up."""
        values = self.column(total.column)
        if values.dtype.kind not in "iuf":
            raise InputError(f"{total.column} holds words, like {values[0]}; only numbers add up")
        return values.astype(np.float64)

    def secret(self, condition: Condition) -> NDArray[np.int8]:
        """Bits (n,): 1 where the condition holds."""
        values = self.column(condition.column)
        value: str | float = condition.value
        if values.dtype.kind in "iuf":
            try:
                value = float(condition.value)
            except ValueError:
                raise InputError(
                    f"{condition}: the values of {condition.column} are numbers, like {values[0]}"
                ) from None
        bits = np.asarray(COMPARISONS[condition.comparison](values, value), dtype=np.int8)
        if not bits.any():
            seen = ", ".join(str(v) for v in np.unique(values)[:6])
            raise InputError(f"{condition} holds for nobody; {condition.column} takes {seen} ...")
        return bits

    def between(self, low: int, high: int) -> "People":
        """The people whose ids lie in [low, high]."""
        kept = (self.ids >= low) & (self.ids <= high)
        if kept.sum() < 2:
            raise InputError(
                f"{kept.sum()} people with ids from {low} to {high}; ids run from "
                f"{self.ids.min()} to {self.ids.max()}, widen the range"
            )
        columns = {name: values[kept] for name, values in self.columns.items()}
        return People(self.ids[kept], columns, self.id_column)

    def write_csv(self, path: Path) -> None:
        """Write ids and columns as CSV."""
        with replacing(path) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([self.id_column, *self.columns])
            columns = [values.tolist() for values in self.columns.values()]
            writer.writerows(zip(self.ids.tolist(), *columns, strict=True))


def read_people(path: Path, id_column: str | None = None) -> People:
    """The people of a CSV file with a header line; the id column is the first unless named."""
    rows = _read_rows(path)
    if not rows or not any(rows[0][1]):
        raise InputError(f"{path}: the file is empty, expected CSV with a header line")
    names = [name.strip() for name in rows[0][1]]
    id_column = id_column or names[0]
    if len(set(names)) < len(names):
        raise InputError(f"{path} line 1: two columns have the same name; rename one")
    if id_column not in names:
        raise InputError(
            f"{path} line 1: there is no column {id_column!r}; the columns are {', '.join(names)}"
        )
    lines: dict[int, int] = {}
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise InputError(
                f"{path} line {number}: {len(row)} fields where the header has {len(names)}; "
                "mend the line (is the file cut off?)"
            )
        person = _identifier(path, number, row[names.index(id_column)])
        if person in lines:
            raise InputError(
                f"{path} line {number}: id {person} stood on line {lines[person]} already; "
                "keep one row a person"
            )
        lines[person] = number
    if len(lines) < 2:
        raise InputError(f"{path}: {len(lines)} people, but a reconstruction needs at least 2")
    ids = np.array(list(lines), dtype=np.int64)
    order = np.argsort(ids)
    columns = {
        name: _typed([row[position].strip() for _, row in rows[1:]])[order]
        for position, name in enumerate(names)
        if name != id_column
    }
    return People(ids[order], columns, id_column)


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, each with the line it ends on."""
    reader = csv.reader(StringIO(read_text(path)), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(
            f"{path} line {reader.line_num}: not CSV ({error}); mend the line"
        ) from None


def _identifier(path: Path, number: int, text: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,15}\s*", text):
        raise InputError(
            f"{path} line {number}: id is {text[:20]!r}, expected a whole number of at most 15 "
            "digits"
        )
    return int(text)


def _typed(values: list[str]) -> NDArray[Any]:
    """The values as whole numbers if all are, else as numbers, else as text."""
    for kind in (np.int64, np.float64):
        try:
            column = np.array(values, dtype=kind)
        except (ValueError, OverflowError):
            continue
        if np.isfinite(column).all():
            return column
    return np.array(values, dtype=np.str_)


# Shares of the loan statuses A-D in the bank that the paper attacked.
STATUS_SHARES = {"A": 258 / 827, "B": 31 / 827, "C": 493 / 827, "D": 45 / 827}


def generated_bank(seed: int = 0) -> People:
    """827 invented loans with client ids from 2 to 13971: status, amount, duration.

    Only the size, the id range and the shares of the statuses follow the bank of the paper.
    """
    rng = np.random.default_rng([seed, 827])
    inner = rng.choice(np.arange(3, 13971), size=825, replace=False)
    ids = np.sort(np.concatenate([[2, 13971], inner]))
    duration = rng.choice([12, 24, 36, 48, 60], size=ids.size)
    payment = np.round(rng.lognormal(8.2, 0.5, size=ids.size))
    return People(
        ids,
        {
            "status": rng.choice(
                list(STATUS_SHARES), size=ids.size, p=list(STATUS_SHARES.values())
            ),
            "amount": (payment * duration).astype(np.int64),
            "duration": duration.astype(np.int64),
        },
    )


def generated_census(n: int, seed: int = 0) -> People:
    """n invented people with ids 1000, 1001, ... and one fair bit each, ``sex``."""
    if not 2 <= n <= 10_000_000:
        raise InputError(f"a census of {n} people; it can have from 2 to 10 million")
    rng = np.random.default_rng([seed, 1000])
    return People(np.arange(1000, 1000 + n), {"sex": rng.integers(0, 2, size=n)}, "uid")
