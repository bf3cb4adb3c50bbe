"""Tables in files, as columns: CSV with commas, semicolons or tabs, and Parquet."""

import csv
import re
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.ids import id_array
from countleak.errors import InputError
from countleak.files import Name, is_file, read_text
from countleak.foreign import first_line

# Of equally many the first counts.
DELIMITERS = (",", ";", "\t")


def read_table(path: Name) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of a CSV file's columns, and its rows, each with the line it ends on."""
    text = read_text(path)
    reader = csv.reader(StringIO(text), delimiter=_delimiter(text), strict=True)
    try:
        rows = [(reader.line_num, [part.strip() for part in row]) for row in reader if row]
    except csv.Error as error:
        raise InputError(
            f"{path} line {reader.line_num}: not CSV ({error}); fix the line"
        ) from None
    if not rows or not any(rows[0][1]):
        raise InputError(f"{path}: the file is empty, expected CSV with a header line")
    names = rows[0][1]
    if len(set(names)) < len(names):
        raise InputError(f"{path} line 1: two columns have the same name; rename one")
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise InputError(
                f"{path} line {number}: {len(row)} fields where the header has {len(names)}; "
                "fix the line (is the file cut off?)"
            )
    return names, rows[1:]


def _delimiter(text: str) -> str:
    """What parts the fields: what there is most of in the header, outside quotes; else a comma."""
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    return max(DELIMITERS, key=header.count)


def read_parquet(path: Name) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file; dates and whatever else is no number are text."""
    # Loaded here: most of countleak needs no database.
    import duckdb

    if not is_file(path):
        raise InputError(f"{path}: no such file; check the name")
    try:
        with duckdb.connect() as connection:
            relation = connection.from_parquet(str(Path(path)))
            names, rows = list(relation.columns), relation.fetchall()
    except duckdb.Error as error:
        raise InputError(f"{path}: {first_line(str(error))}") from None
    return {name: with_gaps([_plain(row[at]) for row in rows]) for at, name in enumerate(names)}


def ids_of(values: list[str]) -> NDArray[Any]:
    """Ids as whole numbers where all are written as such, else as text."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,999}", value) for value in values):
        return id_array(map(int, values))
    return id_array(values)


def typed(values: list[str]) -> NDArray[Any]:
    """The values as whole numbers if all are, else as numbers, else as text.

    Among numbers an empty field is a missing one.
    """
    filled = [value for value in values if value]
    for kind in (np.int64, np.float64):
        try:
            column = np.array(filled, dtype=kind)
        except (ValueError, OverflowError):
            continue
        if filled and np.isfinite(column).all():
            numbers = iter(column.tolist())
            return with_gaps([next(numbers) if value else None for value in values])
    return np.array(values, dtype=np.str_)


def with_gaps(values: list[Any]) -> NDArray[Any]:
    """Numbers or text as an array; as Python objects where something is missing."""
    if None not in values:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _plain(value: Any) -> Any:
    """A value as a number or text; what is no number is missing."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return None if value != value else value
    return str(value)
