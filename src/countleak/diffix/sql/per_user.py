"""A subquery that groups by the user id, in SQL: a row per user, with aggregates of their rows."""

from collections.abc import Sequence

from countleak.diffix.sql.joins import stand_ins
from countleak.diffix.sql.render import Dialect, Hash, Values, quote, write_amount, write_where
from countleak.diffix.sql.statement import Aggregate, Column, Kind, PerUser, Statement, mentioned


def per_user_sources(
    statement: Statement, hashes: Sequence[Hash], dialect: Dialect, values: Values
) -> tuple[str, str]:
    """The rows of the subquery, for FROM, and rows that cost as much.

    Each has the user, the aggregates, and those ``hashes`` that are not of aggregates. The values
    that a user has in a column are hashed into one; where there is one row per user, it is the hash
    of its value.
    """
    per_user = statement.table.per_user
    if per_user is None:
        raise AssertionError(statement.table)
    table = per_user.table
    columns = [Column(table.user, table.columns[table.user])]
    columns += [of.column for of in hashes if of.column not in per_user.columns]
    columns += [column for condition in statement.inner for column in mentioned(condition)]
    columns += [each.column for each in per_user.aggregates if each.column is not None]
    rows = dialect.source(table, list(dict.fromkeys(columns)))
    where = write_where(table, statement.inner, values).text
    hashes = [of for of in hashes if of.column not in per_user.columns]
    others = stand_ins(table, list(dict.fromkeys(columns)), dialect)
    return _grouped(per_user, hashes, dialect, f"{rows} WHERE {where}"), _decoys(
        per_user, hashes, dialect, others
    )


def _grouped(per_user: PerUser, hashes: Sequence[Hash], dialect: Dialect, rows: str) -> str:
    table, user = per_user.table, quote(per_user.table.user)
    made = {quote(each.label): _aggregated(each) for each in per_user.aggregates}
    for of in hashes:
        function = "min(" if of.column.name == table.user else "bit_xor(DISTINCT "
        made[quote(of.name)] = f"{function}{dialect.hashed(table, of)})"
    # Nobody's row stays nobody's: all of it is NULL.
    selected = [f"CASE WHEN {user} IS NOT NULL THEN {made[name]} END AS {name}" for name in made]
    return f"(SELECT {', '.join([user, *selected])} FROM {rows} GROUP BY {user}) AS t"


def _decoys(per_user: PerUser, hashes: Sequence[Hash], dialect: Dialect, rows: str) -> str:
    table, user = per_user.table, quote(per_user.table.user)
    types = {Kind.WHOLE: "BIGINT", Kind.NUMBER: "DOUBLE PRECISION"}
    columns = [f"CAST(1 AS {types[column.kind]})" for column in per_user.columns]
    hashed = [f"{dialect.hashed(table, of)} & 0" for of in hashes]
    return f"SELECT {', '.join([user, *columns, *hashed])} FROM {rows} WHERE {user} IS NOT NULL"


def _aggregated(aggregate: Aggregate) -> str:
    """An aggregate of a user's rows: a whole number or a double that no row takes out of bounds."""
    column = "*" if aggregate.column is None else quote(aggregate.column.name)
    distinct = "DISTINCT " if aggregate.distinct else ""
    # Decimals add up to the same in any order, and so do hashes of the sum.
    total = f"CAST(sum({write_amount(aggregate)}) AS DOUBLE PRECISION)"
    match aggregate.function:
        case "sum":
            return total
        case "avg":
            return f"{total} / nullif(count({column}), 0)"
    return f"{aggregate.function}({distinct}{column})"
