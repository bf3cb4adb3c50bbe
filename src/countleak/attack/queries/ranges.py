"""Ranges of a known column, numbers or dates: the filter that every dashboard has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countleak.attack.queries import Queries
from countleak.attack.queries.groupings import DAY
from countleak.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Ranges:
    """The people whose value of a column lies from one to another, both included."""

    name: str = "ranges"
    needs: tuple[str, ...] = ()
    texts: tuple[str, ...] = ("column", "low", "high")
    explicit: bool = False

    def predicate(self, queries: Queries, position: int, key: tuple[str, ...]) -> "exp.Expr":
        from sqlglot import exp

        from countleak.attack.queries.predicates import column

        name, low, high = (queries.parameters[part][position] for part in ("column", "low", "high"))
        return exp.Between(this=column(str(name)), low=_literal(low), high=_literal(high))


def _literal(end: Any) -> "exp.Expr":
    from sqlglot import exp

    value = end.item() if isinstance(end, np.generic) else end
    if isinstance(value, str) and DAY.fullmatch(value):
        return exp.cast(exp.Literal.string(value), "DATE")
    if isinstance(value, int | float):
        return exp.convert(value)
    raise InputError(f"a range ends at {value!r}, neither a number nor a day")


def fits_ranges(values: NDArray[Any]) -> bool:
    """Whether a column has ranges: numbers or days, more than two of them, and of everyone."""
    found = values.tolist()
    distinct = set(found)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct)
    days = all(isinstance(v, str) and DAY.fullmatch(v) for v in distinct)
    return len(distinct) > 2 and (numbers or days)


def range_queries(
    ids: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    m: int,
    rng: np.random.Generator,
) -> Queries:
    """m ranges of the ``columns``, each (n,), whose ends are values that somebody has."""
    if m < 1:
        raise InputError(f"{m} queries; ask at least one")
    fitting = [name for name, values in columns.items() if fits_ranges(values)]
    if not fitting:
        raise InputError("no known column has ranges; name one of numbers or dates")
    matrix = np.empty((m, ids.size), dtype=np.int8)
    names, lows, highs = (np.empty(m, dtype=object) for _ in range(3))
    for row in range(m):
        name = fitting[int(rng.integers(len(fitting)))]
        low, high = np.sort(rng.choice(np.unique(columns[name]), 2, replace=False)).tolist()
        matrix[row] = (columns[name] >= low) & (columns[name] <= high)
        names[row], lows[row], highs[row] = name, low, high
    return Queries(ids, matrix, Ranges(), {"column": names, "low": lows, "high": highs})
