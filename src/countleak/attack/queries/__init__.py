"""Queries: whom each counting question weighs, and how it is written in SQL.

A family is one file: ``subsets``, ``signs``, ``digits``. Each gives one meaning twice, as a
matrix row and, where it has one, as an SQL predicate.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countleak.errors import InputError, ShapeError
from countleak.files import Records, read_records, write_records


@dataclass(frozen=True, eq=False)
class Queries:
    """m linear queries over n people: query i asks for ``matrix[i] @ secret``.

    ``ids`` (n,) names the columns of ``matrix`` (m, n); ``parameters`` holds what tells the
    queries of the ``family`` apart, each (m,); ``where`` the m SQL predicates, or nothing.
    """

    ids: NDArray[np.int64]
    matrix: NDArray[np.int8]
    family: str
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        m, n = self.matrix.shape
        if m == 0:
            raise InputError("there are no queries; ask at least one")
        if n != self.ids.size:
            raise ShapeError(f"{self.ids.size} ids but queries over {n} people")
        for name, values in self.parameters.items():
            if len(values) != m:
                raise ShapeError(f"{m} queries but {len(values)} values of {name}")
        if self.where and len(self.where) != m:
            raise ShapeError(f"{m} queries but {len(self.where)} predicates")

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The exact answers (m,) for a secret x (n,)."""
        return self.matrix @ x

    def tdot(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The transposed product (n,) for weights y (m,)."""
        return self.matrix.T @ y

    def take(self, positions: NDArray[np.int64]) -> "Queries":
        """The queries at ``positions``, in that order."""
        return Queries(
            self.ids,
            self.matrix[positions],
            self.family,
            {name: values[positions] for name, values in self.parameters.items()},
            tuple(self.where[i] for i in positions) if self.where else (),
        )

    def groups_by(self, parameter: str) -> NDArray[np.int64]:
        """The group (m,) of each query, 0, 1, ...: those alike in ``parameter`` share one."""
        if parameter not in self.parameters:
            raise InputError(
                f"{self.family} queries have no parameter {parameter!r}; they have "
                f"{', '.join(self.parameters) or 'none'}"
            )
        return np.unique(self.parameters[parameter], return_inverse=True)[1].astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of what is asked about whom; answers carry it to find their queries."""
        content = hashlib.sha256(str(self.matrix.shape).encode())
        content.update(np.ascontiguousarray(self.ids).tobytes())
        content.update(np.ascontiguousarray(self.matrix).tobytes())
        return content.hexdigest()[:16]


def count_statement(
    where: str,
    *,
    table: str,
    column: str,
    condition: str | None = None,
    between: tuple[int, int] | None = None,
) -> str:
    """The SQL text of one counting query, written as the paper's attack wrote it."""
    parts = [where]
    if condition:
        parts.append(condition)
    if between:
        parts.append(f"{column} BETWEEN {between[0]} and {between[1]}")
    return f"SELECT count(DISTINCT {column}) FROM {table} WHERE {' AND '.join(parts)}"


def write_queries(path: Path, queries: Queries) -> None:
    """Write queries to a file that holds all an attacker needs: whom, what, and the SQL."""
    signed = bool((queries.matrix < 0).any())
    if not np.isin(queries.matrix, (-1, 1) if signed else (0, 1)).all():
        raise InputError("only subset (0/1) and sign (-1/+1) queries can be written to a file")
    rows = np.packbits(queries.matrix > 0, axis=1)
    header = {
        "queries": len(queries),
        "family": queries.family,
        "signed": signed,
        "ids": queries.ids.tolist(),
    }
    parameters = {name: values.tolist() for name, values in queries.parameters.items()}
    write_records(
        path,
        "queries",
        header,
        (
            {
                **{name: values[i] for name, values in parameters.items()},
                **({"where": queries.where[i]} if queries.where else {}),
                "members": row.tobytes().hex(),
            }
            for i, row in enumerate(rows)
        ),
    )


def read_queries(path: Path) -> Queries:
    """The queries of a file written by ``write_queries``."""
    records = read_records(path, "queries")
    if not records.lines:
        raise InputError(f"{path}: there are no queries; run `countleak plan` again")
    header = records.header
    people, family, signed = header.get("ids"), header.get("family"), header.get("signed")
    if not (
        isinstance(people, list)
        and all(type(i) is int and abs(i) < 10**15 for i in people)
        and 0 < len(set(people)) == len(people)
        and isinstance(family, str)
        and isinstance(signed, bool)
    ):
        raise records.fault(1, "the header is damaged; run `countleak plan` again")
    if header.get("queries") != len(records.lines):
        raise records.fault(
            1,
            f"the header promises {header.get('queries')} queries, the file holds "
            f"{len(records.lines)}; run `countleak plan` again",
        )
    ids = np.array(people, dtype=np.int64)
    members = np.array([_members(records, line, row, ids.size) for line, row in records.lines])
    matrix = members.astype(np.int8)
    names = [name for name in records.lines[0][1] if name not in ("members", "where")]
    for line, row in records.lines:
        if missing := [name for name in names if name not in row]:
            raise records.fault(line, f"{missing[0]} is missing; run `countleak plan` again")
    return Queries(
        ids,
        2 * matrix - 1 if signed else matrix,
        family,
        {name: np.array([row[name] for _, row in records.lines]) for name in names},
        tuple(str(row["where"]) for _, row in records.lines if "where" in row),
    )


def _members(records: Records, line: int, row: Mapping[str, Any], n: int) -> NDArray[np.uint8]:
    try:
        packed = np.frombuffer(bytes.fromhex(row["members"]), dtype=np.uint8)
    except (KeyError, TypeError, ValueError):
        packed = np.empty(0, dtype=np.uint8)
    if packed.size != -(-n // 8) or np.unpackbits(packed)[n:].any():
        raise records.fault(
            line, f"members must be {n} bits in hexadecimal; run `countleak plan` again"
        )
    return np.unpackbits(packed, count=n)
