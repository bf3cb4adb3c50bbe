"""Queries: whom each counting question weighs, and how it is written in SQL.

A family is one file: ``subsets``, ``modular``, ``hashed``, ``signs``, ``digits``, ``ranges``,
``tables``. Each gives one meaning twice, as a row of weights and, where it has one, as an SQL
predicate built from the query's parameters. What holds the rows is in ``rows``.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.hashing import HashedRows
from countleak.attack.queries.ids import id_list
from countleak.attack.queries.rows import Dense, Packed, Rows
from countleak.errors import InputError, ShapeError

if TYPE_CHECKING:
    from sqlglot import exp

# Entries up to which a matrix is written out, in a byte each, for whoever wants to see all of it.
MOST_ENTRIES = 300_000_000


class Family(Protocol):
    """What queries of one kind have in common."""

    @property
    def name(self) -> str:
        """How files and messages call it."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The parameters, numbers all, without which a query cannot be asked."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """The other parameters it cannot do without."""
        ...

    @property
    def explicit(self) -> bool:
        """Whether the SQL names people one by one, so that nobody else can match."""
        ...

    def predicate(self, queries: "Queries", position: int, key: tuple[str, ...]) -> "exp.Expr":
        """The SQL condition that holds for the people of a query, ``key`` being the id columns.

        Raises InputError for families that SQL cannot ask.
        """
        ...


@dataclass(frozen=True, eq=False)
class Queries:
    """m linear queries over n people: query i asks for ``dot(secret)[i]``.

    ``ids`` (n,) names the columns of ``weights``, a matrix (m, n) of -1, 0 and 1 in one byte each,
    or other ``Rows``; ``parameters``, each (m,), are what tells the queries of a ``family`` apart.
    """

    ids: NDArray[Any]
    weights: NDArray[np.int8] | Rows
    family: Family
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m, n = self.weights.shape
        if m == 0:
            raise InputError("there are no queries; ask at least one")
        if n != self.ids.size:
            raise ShapeError(f"{self.ids.size} ids but queries over {n} people")
        for name, values in self.parameters.items():
            if values.shape != (m,):
                raise ShapeError(f"{m} queries but {values.size} values of {name}")

    def __len__(self) -> int:
        return int(self.weights.shape[0])

    def __repr__(self) -> str:
        return f"<{len(self)} {self.family.name} queries about {self.ids.size} people>"

    @cached_property
    def rows(self) -> Rows:
        """Whom each query weighs, whatever holds it."""
        return Dense(self.weights) if isinstance(self.weights, np.ndarray) else self.weights

    @cached_property
    def matrix(self) -> NDArray[np.int8]:
        """Whom each query weighs (m, n), written out.

        A product of it with other bytes overflows beyond 127 people; ``dot`` does not.
        """
        m, n = self.weights.shape
        if not isinstance(self.weights, np.ndarray) and m * n > MOST_ENTRIES:
            raise InputError(
                f"{m} queries about {n} people are too many for this, which needs them all "
                f"written out; ask fewer, or decode with `auto`, `messages` or `ls`"
            )
        return self.rows.dense()

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The exact answers (m,) for a secret x (n,), whatever its type.

        In double precision, where whole numbers are exact up to 2^53.
        """
        return self.rows.dot(np.asarray(x, dtype=np.float64))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many people each query weighs (m,)."""
        if isinstance(self.rows, Dense):
            return np.asarray(np.abs(self.matrix).sum(axis=1, dtype=np.int64))
        return np.rint(self.dot(np.ones(self.ids.size))).astype(np.int64)

    def members(self, position: int) -> NDArray[np.int64]:
        """Whom a query counts, by their places among the ids."""
        return np.flatnonzero(self.rows.take(np.array([position])).dense()[0] == 1)

    def take(self, positions: NDArray[np.int64]) -> "Queries":
        """The queries at ``positions``, in that order."""
        parameters = {name: values[positions] for name, values in self.parameters.items()}
        return Queries(self.ids, _plain(self.rows.take(positions)), self.family, parameters)

    def without(self, people: NDArray[np.bool_]) -> "Queries":
        """The same queries about everyone but ``people`` (n,)."""
        rows = _plain(self.rows.without(people))
        return Queries(self.ids[~people], rows, self.family, self.parameters)

    def predicate(self, position: int, key: tuple[str, ...]) -> "exp.Expr":
        """The SQL condition of one query; ``key`` names the id columns."""
        return self.family.predicate(self, position, key)

    def groups_by(self, parameter: str) -> NDArray[np.int64]:
        """The group (m,) of each query, 0, 1, ...: those alike in ``parameter`` share one."""
        if parameter not in self.parameters:
            raise InputError(
                f"{self.family.name} queries have no parameter {parameter!r}; they have "
                f"{', '.join(self.parameters) or 'none'}"
            )
        return np.unique(self.parameters[parameter], return_inverse=True)[1].astype(np.int64)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of what is asked about whom; answers carry it to find their queries."""
        content = hashlib.sha256(str(self.weights.shape).encode())
        settings = {name: values.tolist() for name, values in self.parameters.items()}
        content.update(json.dumps([id_list(self.ids), self.family.name, settings]).encode())
        # How rows are held makes no difference; those of a hash are their parameters and a seed.
        if isinstance(self.rows, Packed):
            for block in self.rows.blocks():
                content.update(block.tobytes())
        elif isinstance(self.rows, HashedRows):
            content.update(str(self.rows.seed).encode())
        elif isinstance(self.rows, Dense):
            content.update(np.ascontiguousarray(self.matrix).tobytes())
        return content.hexdigest()[:16]


def _plain(rows: Rows) -> NDArray[np.int8] | Rows:
    return rows.matrix if isinstance(rows, Dense) else rows
