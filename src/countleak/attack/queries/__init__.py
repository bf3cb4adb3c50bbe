"""Queries: whom each counting question weighs, and how it is written in SQL.

A family is one file: ``subsets``, ``hashed``, ``signs``, ``digits``, ``ranges``, ``tables``. Each
gives one meaning twice, as a matrix row and, where it has one, as an SQL predicate built from the
query's parameters.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries.ids import id_list
from countleak.errors import InputError, ShapeError

if TYPE_CHECKING:
    from sqlglot import exp


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

    ``ids`` (n,) names the columns of ``matrix`` (m, n); ``parameters``, each (m,), are what tells
    the queries of a ``family`` apart. The matrix holds -1, 0 and 1 in one byte each: a product of
    it with other bytes overflows beyond 127 people, ``dot`` does not.
    """

    ids: NDArray[Any]
    matrix: NDArray[np.int8]
    family: Family
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m, n = self.matrix.shape
        if m == 0:
            raise InputError("there are no queries; ask at least one")
        if n != self.ids.size:
            raise ShapeError(f"{self.ids.size} ids but queries over {n} people")
        for name, values in self.parameters.items():
            if values.shape != (m,):
                raise ShapeError(f"{m} queries but {values.size} values of {name}")

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __repr__(self) -> str:
        return f"<{len(self)} {self.family.name} queries about {self.ids.size} people>"

    def dot(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The exact answers (m,) for a secret x (n,), whatever its type.

        In double precision, where whole numbers are exact up to 2^53.
        """
        return np.asarray(self.matrix @ np.asarray(x, dtype=np.float64))

    def take(self, positions: NDArray[np.int64]) -> "Queries":
        """The queries at ``positions``, in that order."""
        return Queries(
            self.ids,
            self.matrix[positions],
            self.family,
            {name: values[positions] for name, values in self.parameters.items()},
        )

    def without(self, people: NDArray[np.bool_]) -> "Queries":
        """The same queries about everyone but ``people`` (n,)."""
        return Queries(self.ids[~people], self.matrix[:, ~people], self.family, self.parameters)

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
        content = hashlib.sha256(str(self.matrix.shape).encode())
        settings = {name: values.tolist() for name, values in self.parameters.items()}
        content.update(json.dumps([id_list(self.ids), self.family.name, settings]).encode())
        content.update(np.ascontiguousarray(self.matrix).tobytes())
        return content.hexdigest()[:16]
