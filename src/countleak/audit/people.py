"""The people under audit: their ids, what is known of them, and what each keeps secret."""

import csv
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.ids import are_integers, id_array, id_list, positions_of
from countleak.attack.secrets import Bit, Category, Clause, Number, Secret, parse_secret
from countleak.audit.tables import ids_of, read_parquet, read_table, typed, with_gaps
from countleak.errors import InputError, MissingExtra, ShapeError
from countleak.files import Name, replacing

COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
# A column with more values than this is no category: each value is a question per query.
MOST_VALUES = 50


@dataclass(frozen=True, eq=False)
class People:
    """n people: ``ids`` (n,), unique and in order, and named ``columns``, each (n,).

    ``id_column`` names the column of the ids, or the columns of a composite key, whose ids are
    tuples. ``table`` is what a table of these people is called.
    """

    ids: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]
    id_column: str | tuple[str, ...] = "client_id"
    table: str = "people"

    def __post_init__(self) -> None:
        if self.ids.size < 2:
            raise InputError(
                f"{self.ids.size} people, but a reconstruction needs at least 2; check the file "
                "or widen the id range"
            )
        ids = id_list(self.ids)
        if len(set(ids)) < len(ids):
            raise InputError("an id occurs more than once; keep one row per person")
        if any(a > b for a, b in pairwise(ids)):  # type: ignore[operator]
            raise InputError("the ids are not in ascending order; sort the people by id")
        for name, values in self.columns.items():
            if values.shape != self.ids.shape:
                raise ShapeError(f"{self.ids.size} ids but {values.size} values of {name}")

    def __len__(self) -> int:
        return self.ids.size

    def __repr__(self) -> str:
        return f"<{len(self)} people with {', '.join(self.columns) or 'ids only'}>"

    @property
    def key(self) -> tuple[str, ...]:
        """The id columns."""
        return (self.id_column,) if isinstance(self.id_column, str) else self.id_column

    @property
    def all_columns(self) -> dict[str, NDArray[Any]]:
        """The id columns and all others, as a table has them."""
        if isinstance(self.id_column, str):
            return {self.id_column: self.ids, **self.columns}
        parts = zip(*self.ids.tolist(), strict=True)
        keys = {name: np.array(values) for name, values in zip(self.id_column, parts, strict=True)}
        return {**keys, **self.columns}

    def column(self, name: str) -> NDArray[Any]:
        """The values (n,) of a column."""
        if name not in self.columns:
            raise InputError(
                f"there is no column {name!r}; the columns are {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]

    def named(self, secret: str | Secret) -> Secret:
        """The secret with all it needs: a category without values gets those of its column."""
        secret = parse_secret(secret) if isinstance(secret, str) else secret
        if not isinstance(secret, Category) or secret.values or secret.column not in self.columns:
            return secret
        values = sorted(
            {value for value in self.column(secret.column).tolist() if value is not None}
        )
        if len(values) > MOST_VALUES:
            raise InputError(
                f"{secret.column} has {len(values)} values, too many to ask about each; for "
                f"numbers write sum({secret.column}), or name the values of interest"
            )
        return replace(secret, values=tuple(values))

    def truth(self, secret: str | Secret) -> NDArray[Any]:
        """What is true of everyone (n,): bits, names of values, or numbers, as the secret is."""
        secret = self.named(secret)
        if isinstance(secret, Number):
            return self._numbers(secret)
        if isinstance(secret, Category):
            return self._names(secret)
        return self._bits(secret)

    def _numbers(self, number: Number) -> NDArray[np.float64]:
        values = self.column(number.column)
        if any(value is None for value in values.tolist()):
            raise InputError(f"{number.column} is missing for somebody; leave those people out")
        if not _are_numbers(values):
            raise InputError(f"{number.column} holds text, like {values[0]}; only numbers add up")
        return values.astype(np.float64)

    def _names(self, category: Category) -> NDArray[np.str_]:
        column = self.column(category.column)
        named = zip(category.values, category.names, strict=False)
        names = {_as_held(column, value, category, category.column): name for value, name in named}
        values, present = _comparable(column)
        pairs = zip(values.tolist(), present.tolist(), strict=True)
        known = [names.get(value) if there else None for value, there in pairs]
        if None in known and not category.open:
            stranger = column.tolist()[known.index(None)]
            raise InputError(
                f"{category}: somebody has {stranger!r}; name it too, or end the list with ..."
            )
        return np.array([category.names[-1] if name is None else name for name in known])

    def holds(self, bit: Bit) -> NDArray[np.int64]:
        """Whether a condition holds (n,), for anybody or nobody: bits that add up to any count."""
        every = [self._satisfies(clause, bit) for clause in bit.clauses]
        return np.asarray(np.all(every, axis=0), dtype=np.int64)

    def _satisfies(self, clause: Clause, bit: Bit) -> NDArray[np.bool_]:
        """Who satisfies a part of a condition (n,); what is missing does so only to IS NULL."""
        column = self.column(clause.column)
        values, present = _comparable(column)
        if not clause.values:
            # An empty field of a CSV file is missing, also among text.
            filled = present if _are_numbers(column) else present & (values != "")
            return filled if clause.comparison == "IS NOT NULL" else ~filled
        held = [_as_held(column, value, bit, clause.column) for value in clause.values]
        if clause.comparison in ("IN", "NOT IN"):
            among = np.isin(values, held)
            return np.asarray((among if clause.comparison == "IN" else ~among) & present)
        return np.asarray(COMPARISONS[clause.comparison](values, held[0]) & present)

    def knows(self, secret: Secret) -> bool:
        """Whether the columns are here that a secret is about."""
        return all(name in self.columns for name in secret.columns)

    def _bits(self, bit: Bit) -> NDArray[np.int64]:
        bits = self.holds(bit)
        if not bits.any():
            values, present = _comparable(self.column(bit.column))
            seen = ", ".join(str(v) for v in np.unique(values[present])[:6])
            raise InputError(f"{bit} holds for nobody; {bit.column} takes {seen} ...")
        return bits

    def among(self, ids: NDArray[Any]) -> "People":
        """The people with these ids, which must all be there, in order."""
        places = positions_of(ids, self.ids)
        if (places < 0).any():
            stranger = id_list(ids)[int(np.flatnonzero(places < 0)[0])]
            raise InputError(
                f"{int((places < 0).sum())} of {ids.size} people asked about are not among those "
                f"whose truth is known (id {stranger}); check both"
            )
        columns = {name: values[places] for name, values in self.columns.items()}
        return replace(self, ids=self.ids[places], columns=columns)

    def between(self, low: int, high: int) -> "People":
        """The people whose ids lie in [low, high]."""
        if not are_integers(self.ids):
            raise InputError("only whole-number ids have a range; choose the people another way")
        kept = (self.ids >= low) & (self.ids <= high)
        if kept.sum() < 2:
            raise InputError(
                f"{kept.sum()} people with ids from {low} to {high}; ids run from "
                f"{self.ids.min()} to {self.ids.max()}, widen the range"
            )
        columns = {name: values[kept] for name, values in self.columns.items()}
        return replace(self, ids=self.ids[kept], columns=columns)

    def write_csv(self, path: Name) -> None:
        """Write ids and columns as CSV."""
        with replacing(path) as file:
            writer = csv.writer(file, lineterminator="\n")
            columns = self.all_columns
            writer.writerow(columns)
            writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def people_of(frame: Any, id_column: str | tuple[str, ...], table: str = "people") -> People:
    """The people of a pandas or polars frame, one row per person."""
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtra("a frame of people", "frames") from None

    try:
        data = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"people are a People or a pandas or polars frame, not {type(frame).__name__}"
        ) from None
    columns = {name: _column(data[name]) for name in data.columns}
    return _people(columns, id_column, table)


def read_people(path: Name, id_column: str | None = None) -> People:
    """The people of a CSV file with a header line; the id column is the first unless named.

    A composite key is written as its columns with commas between. A Parquet file has a table just
    as well.
    """
    if Path(path).suffix == ".parquet":
        return _read_parquet(path, id_column)
    names, rows = read_table(path)
    chosen = _key(names, id_column, path)
    for number, row in rows:
        for name in chosen:
            if not row[names.index(name)]:
                raise InputError(f"{path} line {number}: the id is empty; fill it in")
    lines: dict[tuple[str, ...], int] = {}
    for number, row in rows:
        person = tuple(row[names.index(name)] for name in chosen)
        if person in lines:
            raise InputError(
                f"{path} line {number}: id {', '.join(person)} is a duplicate of line "
                f"{lines[person]}; keep one row per person"
            )
        lines[person] = number
    if len(lines) < 2:
        raise InputError(f"{path}: {len(lines)} people, but a reconstruction needs at least 2")
    columns = {
        name: (ids_of if name in chosen else typed)([row[at] for _, row in rows])
        for at, name in enumerate(names)
    }
    key = chosen if len(chosen) > 1 else chosen[0]
    return _people(columns, key, Path(path).stem)


def _read_parquet(path: Name, id_column: str | None) -> People:
    columns = read_parquet(path)
    key = _key(list(columns), id_column, path)
    for name in key:
        if missing := sum(value is None for value in columns[name].tolist()):
            raise InputError(f"{path}: {name} is missing in {missing} rows; leave those people out")
    return _people(columns, key[0] if len(key) == 1 else key, Path(path).stem)


def read_known(path: Name) -> dict[Any, Any]:
    """What a CSV file says of people known beforehand: an id and a value per line."""
    names, rows = read_table(path)
    if len(names) != 2:
        raise InputError(f"{path}: {len(names)} columns, expected an id and a value")
    if not rows:
        raise InputError(f"{path}: nobody is in this file; write an id and a value per line")
    for number, row in rows:
        if not all(row):
            raise InputError(f"{path} line {number}: the id or the value is empty; fill it in")
    ids, values = ids_of([row[0] for _, row in rows]), typed([row[1] for _, row in rows])
    known = dict(zip(id_list(ids), values.tolist(), strict=True))
    if len(known) < len(rows):
        raise InputError(f"{path}: an id is a duplicate; keep one line per person")
    return known


def _key(names: list[str], id_column: str | None, path: Name) -> tuple[str, ...]:
    """The id columns: the first, the one named, or those named with commas between."""
    if id_column is None or id_column in names:
        return (id_column or names[0],)
    chosen = tuple(part.strip() for part in id_column.split(","))
    if len(set(chosen)) < len(chosen):
        raise InputError(f"id columns {id_column!r}: one is named twice; name each once")
    for name in chosen:
        if name not in names:
            raise InputError(
                f"{path} line 1: there is no column {name!r}; the columns are {', '.join(names)}"
            )
    return chosen


def _people(
    columns: dict[str, NDArray[Any]], id_column: str | tuple[str, ...], table: str
) -> People:
    """People from columns, of which some are the key, in the order of their ids."""
    key = (id_column,) if isinstance(id_column, str) else tuple(id_column)
    if missing := [name for name in key if name not in columns]:
        raise InputError(f"there is no column {missing[0]!r}; the columns are {', '.join(columns)}")
    parts = [columns[name].tolist() for name in key]
    ids = parts[0] if len(key) == 1 else list(zip(*parts, strict=True))
    array = id_array(ids)
    plain = id_list(array)
    order = sorted(range(len(plain)), key=plain.__getitem__)
    rest = {name: values[order] for name, values in columns.items() if name not in key}
    return People(array[order], rest, key[0] if len(key) == 1 else key, table)


def _column(series: Any) -> NDArray[Any]:
    """A column of a frame; what is null or no number is missing."""
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return with_gaps([None if null or value != value else value for value, null in pairs])


def _are_numbers(column: NDArray[Any]) -> bool:
    """Whether all values that are not missing are numbers."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "iufb"
    return all(value is None or isinstance(value, int | float | Decimal) for value in column)


def _comparable(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values (n,) as numbers or as text, and where (n,) they are present."""
    present = np.ones(column.size, np.bool_)
    if column.dtype.kind != "O":
        return column if _are_numbers(column) else column.astype(np.str_), present
    present = np.array([value is not None for value in column.tolist()])
    if _are_numbers(column):
        return np.where(present, column, np.nan).astype(np.float64), present
    return np.where(present, column, "").astype(np.str_), present


def _as_held(column: NDArray[Any], value: str | float, secret: Secret, name: str) -> str | float:
    """A value to compare a column's with: a number among numbers, text among text."""
    if not _are_numbers(column):
        return str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{secret}: the values of {name} are numbers, like {column[0]}") from None


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
    columns = {
        "status": rng.choice(list(STATUS_SHARES), size=ids.size, p=list(STATUS_SHARES.values())),
        "amount": (payment * duration).astype(np.int64),
        "duration": duration.astype(np.int64),
    }
    return People(ids, columns, "client_id", "loans")


def generated_census(n: int, seed: int = 0) -> People:
    """n invented people with ids 1000, 1001, ... and one fair bit each, ``sex``."""
    if not 2 <= n <= 10_000_000:
        raise InputError(f"a census of {n} people; it can have from 2 to 10 million")
    rng = np.random.default_rng([seed, 1000])
    return People(np.arange(1000, 1000 + n), {"sex": rng.integers(0, 2, size=n)}, "uid", "census")
