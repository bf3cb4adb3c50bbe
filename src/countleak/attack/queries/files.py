"""Queries as a file: whom they are about, what each asks, and the members of each.

The file holds parameters, never SQL: the text that is sent is built from them when it is asked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Family, Queries
from countleak.attack.queries.digits import Digits
from countleak.attack.queries.hashed import Hashed
from countleak.attack.queries.ids import id_array, id_list
from countleak.attack.queries.ranges import Ranges
from countleak.attack.queries.signs import Signs
from countleak.attack.queries.subsets import Subsets
from countleak.attack.queries.tables import Tables
from countleak.errors import InputError
from countleak.files import Name, Records, read_records, write_records

FAMILIES: dict[str, Family] = {
    family.name: family for family in (Digits(), Hashed(), Ranges(), Signs(), Subsets(), Tables())
}
MEMBERS = "members"
AGAIN = "run `countleak plan` again"


def write_queries(path: Name, queries: Queries) -> None:
    """Write queries to a file that holds all an attacker needs: whom, and what."""
    signed = bool((queries.matrix < 0).any())
    if not np.isin(queries.matrix, (-1, 1) if signed else (0, 1)).all():
        raise InputError("only subset (0/1) and sign (-1/+1) queries can be written to a file")
    if MEMBERS in queries.parameters:
        raise InputError(f"a column is called {MEMBERS!r}, as a key of the file is; rename it")
    rows = np.packbits(queries.matrix > 0, axis=1)
    header = {
        "queries": len(queries),
        "family": queries.family.name,
        "signed": signed,
        "ids": id_list(queries.ids),
    }
    parameters = {name: values.tolist() for name, values in queries.parameters.items()}
    write_records(
        path,
        "queries",
        header,
        (
            {
                **{name: values[i] for name, values in parameters.items()},
                MEMBERS: row.tobytes().hex(),
            }
            for i, row in enumerate(rows)
        ),
    )


def read_queries(path: Name) -> Queries:
    """The queries of a file written by ``write_queries``."""
    records = read_records(path, "queries")
    if not records.lines:
        raise InputError(f"{path}: there are no queries; {AGAIN}")
    header = records.header
    family, signed = FAMILIES.get(str(header.get("family"))), header.get("signed")
    if family is None or not isinstance(signed, bool):
        raise records.fault(1, f"the header is damaged; {AGAIN}")
    if header.get("queries") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {header.get('queries')} queries, the file holds "
            f"{len(records.lines)}; {AGAIN}",
        )
    ids = _ids(records)
    members = np.array([_members(records, line, row, ids.size) for line, row in records.lines])
    matrix = members.astype(np.int8)
    parameters = _parameters(records)
    for name in family.needs:
        if name not in parameters or parameters[name].dtype.kind not in "iuf":
            raise records.fault(1, f"{name} is missing or not a number; {AGAIN}")
    for name in family.texts:
        if name not in parameters:
            raise records.fault(1, f"{name} is missing; {AGAIN}")
    return Queries(ids, 2 * matrix - 1 if signed else matrix, family, parameters)


def _ids(records: Records) -> NDArray[Any]:
    people = records.header.get("ids")
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
