"""Queries as a file: whom they are about, what each asks, and the members of each, or their seed.

The file holds parameters, never SQL: the text that is sent is built from them when it is asked.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Family, Queries
from countleak.attack.queries.digits import Digits
from countleak.attack.queries.hashed import Hashed, hashed_queries
from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.ids import are_integers, id_array, id_list
from countleak.attack.queries.modular import Modular
from countleak.attack.queries.ranges import Ranges
from countleak.attack.queries.rows import CHUNK, SMALL, Dense, Packed, Rows, held
from countleak.attack.queries.sidecar import read_members, remove_members, write_members
from countleak.attack.queries.signs import Signs
from countleak.attack.queries.subsets import Subsets
from countleak.attack.queries.tables import Tables
from countleak.errors import InputError
from countleak.files import Name, Records, read_records, write_records

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (Digits(), Hashed(), Modular(), Ranges(), Signs(), Subsets(), Tables())
}
# Ids that follow each other are written out up to so many; and no file is about more rows.
MANY, MOST_ROWS = 100_000, 2**31
MEMBERS = "members"
AGAIN = "run `countleak plan` again"


def write_queries(path: Name, queries: Queries) -> None:
    """Write queries to a file that holds all an attacker needs: whom, and what.

    Many bits get a file of their own beside it; of queries made by a hash the seed is enough.
    """
    if MEMBERS in queries.parameters:
        raise InputError(f"a column is called {MEMBERS!r}, as a key of the file is; rename it")
    header = {"queries": len(queries), "family": queries.family.name, "signed": False}
    lines: Iterable[Mapping[str, Any]]
    if isinstance(queries.rows, HashedRows):
        header, lines = {**header, **_seed_of(queries.rows)}, ()
    elif len(queries) * queries.ids.size > SMALL and not _is_signed(queries):
        header["sidecar"], lines = write_members(path, queries.rows), _rest(queries)
    else:
        header["signed"] = _is_signed(queries)
        packed = np.packbits(queries.matrix > 0, axis=1)
        lines = (
            {**rest, MEMBERS: row.tobytes().hex()}
            for rest, row in zip(_rest(queries), packed, strict=True)
        )
    write_records(path, "queries", {**header, "ids": _as_written(queries.ids)}, lines)
    if "sidecar" not in header:
        remove_members(path)


def _seed_of(rows: HashedRows) -> dict[str, Any]:
    first = np.array_equal(rows.rows, np.arange(rows.rows.size))
    return {"seed": rows.seed, **({} if first else {"rows": rows.rows.tolist()})}


def _is_signed(queries: Queries) -> bool:
    """Whether the weights are -1 and 1; raises if they are neither that nor 0 and 1."""
    if not isinstance(queries.rows, Dense):
        return False
    blocks = np.array_split(queries.matrix, -(-queries.matrix.size // CHUNK))
    lowest, highest = min(each.min() for each in blocks), max(each.max() for each in blocks)
    if lowest < -1 or highest > 1 or (lowest < 0 and any((each == 0).any() for each in blocks)):
        raise InputError("only subset (0/1) and sign (-1/+1) queries can be written to a file")
    return bool(lowest < 0)


def _rest(queries: Queries) -> Iterator[dict[str, Any]]:
    """The parameters of every query, where it has any."""
    parameters = {name: values.tolist() for name, values in queries.parameters.items()}
    for i in range(len(queries)):
        yield {name: values[i] for name, values in parameters.items()}


def _as_written(ids: NDArray[Any]) -> Any:
    """The ids as a list, or many that follow each other by the first and the last."""
    many = ids.size > MANY and are_integers(ids)
    if many and bool((np.diff(ids) == 1).all()):
        return {"first": int(ids[0]), "last": int(ids[-1])}
    return id_list(ids)


def read_queries(path: Name) -> Queries:
    """The queries of a file written by ``write_queries``."""
    records = read_records(path, "queries")
    header = records.header
    family, signed = FAMILIES.get(str(header.get("family"))), header.get("signed")
    if family is None or not isinstance(signed, bool):
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    if isinstance(family, Hashed):
        return _of_seed(records)
    if not records.lines:
        raise InputError(f"{path}: there are no queries; {AGAIN}")
    if header.get("queries") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {header.get('queries')} queries, the file holds "
            f"{len(records.lines)}; {AGAIN}",
        )
    ids = _ids(records)
    weights: NDArray[np.int8] | Rows
    if "sidecar" in header:
        weights = read_members(records, (len(records.lines), ids.size))
    else:
        members = (_members(records, line, row, ids.size) for line, row in records.lines)
        weights = held((row[None, :] for row in members), len(records.lines), ids.size)
        if signed:
            weights = (
                2 * np.asarray(weights.dense() if isinstance(weights, Packed) else weights) - 1
            )
    parameters = _parameters(records)
    for name in family.needs:
        if name not in parameters or parameters[name].dtype.kind not in "iuf":
            raise records.fault(1, f"{name} is missing or not a number; {AGAIN}")
    for name in family.texts:
        if name not in parameters:
            raise records.fault(1, f"{name} is missing; {AGAIN}")
    return Queries(ids, weights, family, parameters)


def _of_seed(records: Records) -> Queries:
    """The queries that the seed in the header makes."""
    count, seed = records.header.get("queries"), records.header.get("seed")
    if type(count) is not int or not 0 < count <= MOST_ROWS or type(seed) is not int:
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    rows = records.header.get("rows", range(count))
    if len(rows) != count or not all(type(row) is int and 0 <= row < MOST_ROWS for row in rows):
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    try:
        return hashed_queries(_ids(records), np.array(rows, dtype=np.int64), seed)
    except InputError as error:
        raise records.fault(1, f"{error}; {AGAIN}") from None


def _ids(records: Records) -> NDArray[Any]:
    people = records.header.get("ids")
    if isinstance(people, dict) and people.keys() == {"first", "last"}:
        first, last = people["first"], people["last"]
        if type(first) is int and type(last) is int and MANY < last - first + 1 <= MOST_ROWS:
            return np.arange(first, last + 1, dtype=np.int64)
    if not isinstance(people, list):
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    try:
        ids = id_array(people)
    except InputError as error:
        raise records.fault(1, str(error)) from None
    if not 0 < len(set(id_list(ids))) == ids.size:
        raise records.fault(1, f"an id is missing or occurs twice; {AGAIN}")
    return ids


def _parameters(records: Records) -> dict[str, NDArray[Any]]:
    """What every line gives, besides the members; each value is a number, a text or nothing."""
    names = [name for name in records.lines[0][1] if name != MEMBERS]
    for line, row in records.lines:
        if missing := [name for name in names if name not in row]:
            raise records.fault(line, f"{missing[0]} is missing; {AGAIN}")
        for name in row:
            if name not in (MEMBERS, *names):
                raise records.fault(line, f"unknown key {name!r}; {AGAIN}")
            if not isinstance(row[name], str | int | float | None):
                raise records.fault(line, f"{name} must be a number or a text; {AGAIN}")
    return {name: _column([row[name] for _, row in records.lines]) for name in names}


def _column(values: list[Any]) -> NDArray[Any]:
    """One parameter of all queries; Python objects where they are not all of one kind."""
    numbers = all(type(value) in (int, float) and abs(value) < 2**63 for value in values)
    if numbers or all(isinstance(value, str) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _members(records: Records, line: int, row: Mapping[str, Any], n: int) -> NDArray[np.uint8]:
    try:
        packed = np.frombuffer(bytes.fromhex(row[MEMBERS]), dtype=np.uint8)
    except (KeyError, TypeError, ValueError):
        packed = np.empty(0, dtype=np.uint8)
    if packed.size != -(-n // 8) or np.unpackbits(packed)[n:].any():
        raise records.fault(line, f"members must be {n} bits in hexadecimal; {AGAIN}")
    return np.unpackbits(packed, count=n)
