"""The rows of an answer as they were asked for: chosen, sorted, and no more of them.

All of it works on what is released, after noise and suppression, so it gives nothing more away.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from countleak.diffix.noise import STAR
from countleak.diffix.sql.statement import Having, Order, Statement

T = TypeVar("T")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Row:
    """A row of an answer: what was selected, in that order; None where it is suppressed."""

    values: tuple[Any, ...]
    released: bool


def finish(statement: Statement, rows: list[Row]) -> tuple[Row, ...]:
    """The rows of all groups and aggregates as the statement wants to see them."""
    rows = [row for row in rows if all(_holds(having, row) for having in statement.having)]
    # The last order first: sorting keeps the order of equal rows.
    for order in reversed(statement.order):
        rows = _sorted(order, rows)
    rows = [replace(row, values=chosen(row.values, statement.shown)) for row in rows]
    if statement.distinct:
        rows = list(dict.fromkeys(rows))
    stop = None if statement.limit is None else statement.offset + statement.limit
    return tuple(rows[statement.offset : stop])


def chosen(items: tuple[T, ...], positions: tuple[int, ...]) -> tuple[T, ...]:
    """The items at these positions."""
    return tuple(items[at] for at in positions)


def _holds(having: Having, row: Row) -> bool:
    value = row.values[having.position]
    if value is None or isinstance(value, str) != isinstance(having.value, str):
        # Nothing compares with NULL, and the star of merged groups is no number.
        return False
    return COMPARE[having.operator](value, having.value)


def _sorted(order: Order, rows: list[Row]) -> list[Row]:
    """The rows by one value, with NULL at its end and the star of merged groups behind all."""

    def value(row: Row) -> Any:
        return row.values[order.position]

    stars = [row for row in rows if value(row) == STAR]
    nulls = [row for row in rows if value(row) is None]
    others = [row for row in rows if value(row) is not None and value(row) != STAR]
    others.sort(key=value, reverse=order.descending)
    return [*nulls, *others, *stars] if order.nulls_first else [*others, *nulls, *stars]
