"""How each release made noise, suppressed low counts, and what more it refused."""

from collections.abc import Callable
from dataclasses import dataclass, field

from countleak.diffix.noise import (
    HIDDEN_BY_RANGES,
    ONE_PAIR,
    ONE_PER_CONDITION,
    STATIC_AND_UID,
    Layering,
    Threshold,
)
from countleak.diffix.sql.statement import (
    Call,
    Column,
    Condition,
    Constant,
    Equal,
    Expression,
    Range,
    Statement,
    expressions_of,
    is_width,
    mentioned,
)
from countleak.errors import InputError, Refused


def refuse_isolating(statement: Statement) -> None:
    """Refuse conditions and groups that are not clear on columns that single out users."""
    groups = tuple(Equal(group, group) for group in statement.groups)
    for condition in (*statement.conditions, *groups):
        for column in mentioned(condition):
            if column.name in statement.table.isolating and not _is_clear(condition):
                raise Refused(
                    f"The column `{column.name}` is isolating and cannot be used in this condition."
                )


def only_tables(statement: Statement) -> None:
    """Refuse all but equality of columns with constants, and groups of generalised columns."""
    user = statement.table.user
    if statement.table.per_user is not None:
        raise Refused("A subquery that groups is not allowed.")
    if statement.table.joined:
        raise Refused("A JOIN is not allowed.")
    for condition in statement.conditions:
        if not (
            isinstance(condition, Equal)
            and isinstance(condition.right, Constant)
            and _is_generalised(condition.left)
        ):
            raise Refused("Only equality of a generalised column with a constant is allowed.")
    for expression in [*statement.groups, *_expressions(statement.conditions)]:
        if not isinstance(expression, Constant) and not _is_generalised(expression):
            raise Refused(
                "Only columns, floor_by or round_by of a column with a width of 1, 2 or 5 times "
                "a power of ten, and substring of a column from its first character, are allowed."
            )
    filtered = [c.name for condition in statement.conditions for c in mentioned(condition)]
    grouped = [group.name for group in statement.groups if isinstance(group, Column)]
    if user in (*filtered, *grouped):
        raise Refused(f"The user id column `{user}` can only be counted, or grouped in ranges.")
    for aggregate in statement.aggregates:
        if aggregate.function != "count":
            raise Refused("Only counts are allowed.")


def _is_clear(condition: Condition) -> bool:
    return isinstance(condition, Range) or all(
        isinstance(expression, Column | Constant) for expression in _expressions((condition,))
    )


def _is_generalised(expression: Expression) -> bool:
    match expression:
        case Column():
            return True
        case Call(function="floor_by" | "round_by", arguments=(Column(), Constant(value=width))):
            return not isinstance(width, str) and is_width(width)
        case Call(function="substring", arguments=(Column(), Constant(value=1), *_)):
            return True
    return False


def _expressions(conditions: tuple[Condition, ...]) -> list[Expression]:
    return [expression for condition in conditions for expression in expressions_of(condition)]


@dataclass(frozen=True)
class Release:
    """``sd`` of a layer's noise in a count, which layers there are, and who is suppressed.

    ``check`` refuses statements that others answer; ``generalises`` says whether the functions
    ``floor_by`` and ``round_by`` exist; ``least`` is the smallest count that is released.
    """

    name: str
    sd: float
    layering: Layering = field(repr=False)
    check: Callable[[Statement], None] | None = field(default=None, repr=False)
    threshold: Threshold = field(default_factory=Threshold)
    least: int = 2
    generalises: bool = False


RELEASES = {
    release.name: release
    for release in (
        Release("18.1", 2.0, HIDDEN_BY_RANGES),
        Release("18.3", 2.0, STATIC_AND_UID, refuse_isolating),
        Release("paper", 1.0, ONE_PER_CONDITION),
        Release("tables", 1.0, ONE_PAIR, only_tables, Threshold(5.8, 0.7, 3), 3, generalises=True),
    )
}


def release_of(name: str) -> Release:
    """The release of that name."""
    if name not in RELEASES:
        raise InputError(f"there is no release {name!r}; choose {', '.join(RELEASES)}")
    return RELEASES[name]
