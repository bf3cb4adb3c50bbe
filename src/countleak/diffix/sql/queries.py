"""What a statement asks the database: its buckets, what is left without some, and contributions.

How many statements a question takes depends on its text alone, never on the rows: whoever measures
time must not learn whether anything was suppressed. Databases are quick where there is no row at
all, so there always is one: nobody's, whose columns are NULL, and which counts for nothing. Groups
that are kept are sent as arrays and joined, so their number costs no more than that of rows.
``Dialect.matching`` may add decoys to few rows, which count for nothing either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countleak.diffix.sql.joins import stand_ins
from countleak.diffix.sql.per_user import per_user_sources
from countleak.diffix.sql.render import (
    Dialect,
    Hash,
    Sql,
    Value,
    Values,
    parameter,
    quote,
    write_amount,
    write_key,
    write_where,
)
from countleak.diffix.sql.statement import (
    Aggregate,
    Column,
    Expression,
    Kind,
    Statement,
    columns_of,
    mentioned,
)

Key = tuple[object, ...]
# Expressions in SQL under their names.
Selected = Mapping[str, str]
# The bucket of all groups that are not kept.
REST = -1


@dataclass(frozen=True)
class Asked:
    """A statement as it is asked of a database: ``materials`` are the columns to hash."""

    statement: Statement
    materials: tuple[Column, ...]
    dialect: Dialect

    def buckets(self, least: int) -> Sql:
        """For every group of at least ``least`` users: key, users, hashes of user set and values.

        Without groups there is one bucket, whatever its size.
        """
        values: Values = []
        rows, keys = self._rows(self._measured(), values), self._key_names()
        text = f"SELECT {', '.join([*keys, *self._measures()])} FROM ({rows}) AS r"
        if keys:
            text += f" GROUP BY {', '.join(keys)} HAVING {self._users()} >= {least}"
        return Sql(text, values)

    def rest(self, kept: Sequence[Key]) -> Sql:
        """Users and hashes, as of a bucket, of all rows that are in none of the ``kept`` groups."""
        values: Values = []
        rows = self._labelled(self._measured(), kept, values)
        return Sql(
            f"SELECT {', '.join(self._measures())} FROM ({rows}) AS r WHERE bucket = {REST}", values
        )

    def contributions(self, aggregate: Aggregate, most: int, kept: Sequence[Key]) -> Sql:
        """For every bucket by number: what its users add, and what those below 0 subtract.

        Each side is how many users, their sum, and the ``most`` largest contributions.
        """
        values: Values = []
        selected = {"u": quote(self.statement.table.user), "v": write_amount(aggregate)}
        rows = self._labelled(selected, kept, values)
        if aggregate.function == "stddev":
            rows = _squared(rows, self.dialect)
        users = (
            _credited(rows, self.dialect)
            if aggregate.distinct
            else _added(rows, aggregate, self.dialect)
        )
        sides = []
        for sign, added in ((">=", "c"), ("<", "-c")):
            side = f"CASE WHEN c {sign} 0 THEN {added} END"
            largest = self.dialect.largest(f"coalesce({side}, 0)", most)
            sides += [
                f"count(CASE WHEN c {sign} 0 THEN u END)",
                f"coalesce(sum({side}), 0)",
                largest,
            ]
        return Sql(f"SELECT bucket, {', '.join(sides)} FROM ({users}) AS s GROUP BY bucket", values)

    def ranked(self, aggregate: Aggregate, most: int, kept: Sequence[Key]) -> Sql:
        """For every bucket by number: how many users, and ``most`` of their values, descending.

        These are the largest values, one per user, for a maximum, and those of the negative for a
        minimum; for a median those around the middle, one more if need be to be centred.
        """
        values: Values = []
        name = quote(aggregate.column.name) if aggregate.column else "1"
        amount = f"CAST({name} AS DOUBLE PRECISION)"
        amount = f"-{amount}" if aggregate.function == "min" else amount
        selected = {"u": quote(self.statement.table.user), "v": amount}
        rows = self._labelled(selected, kept, values)
        of_user = "avg(v)" if aggregate.function == "median" else "max(v)"
        users = (
            f"SELECT bucket, u, {self.dialect.counted(of_user)} AS c FROM ({rows}) AS a "
            f"GROUP BY bucket, u{self.dialect.apart}"
        )
        number, shown = "count(c)", users
        if aggregate.function == "median":
            shown = (
                "SELECT bucket, c, count(c) OVER (PARTITION BY bucket) AS n, row_number() OVER "
                f"(PARTITION BY bucket ORDER BY c NULLS LAST, u) AS place FROM ({users}) AS q"
            )
            shown = f"SELECT * FROM ({shown}) AS w WHERE abs(2 * place - n - 1) <= {most}"
            number = "max(n)"
        return Sql(
            f"SELECT bucket, {number}, {self.dialect.largest('c', most + 1)} FROM ({shown}) AS s "
            "GROUP BY bucket",
            values,
        )

    def _users(self) -> str:
        table = self.statement.table
        return f"count({'' if table.one_row_per_user else 'DISTINCT '}{quote(table.user)})"

    def _measures(self) -> list[str]:
        """Users, and the hashes of their set and of the set of values of each material."""
        single = self.statement.table.single
        return [self._users()] + [
            f"bit_xor({'' if h.column.name in single else 'DISTINCT '}{quote(h.name)})"
            for h in self._hashes()
        ]

    def _measured(self) -> Selected:
        """The columns that are measured."""
        user, names = quote(self.statement.table.user), [quote(h.name) for h in self._hashes()]
        return {user: self.dialect.counted(user)} | {name: name for name in names}

    def _key_names(self) -> list[str]:
        return [quote(f"key {place}") for place in range(len(self.statement.groups))]

    def _hashes(self) -> list[Hash]:
        table = self.statement.table
        user = Hash(Column(table.user, table.columns[table.user]), "user")
        return [user, *(Hash(column, "value") for column in self.materials)]

    def _rows(self, selected: Selected, values: Values) -> str:
        """Matching rows, and nobody's, with their keys and what is ``selected``."""
        statement, dialect = self.statement, self.dialect
        groups = zip(statement.groups, self._key_names(), strict=True)
        columns = {name: write_key(group, values) for group, name in groups} | dict(selected)
        named = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
        table, hashes = statement.table, self._hashes()
        if table.per_user:
            source, decoys = per_user_sources(statement, hashes, dialect, values)
            hashes = [of for of in hashes if of.column in table.per_user.columns]
        else:
            source = dialect.source(table, self._columns())
            others = stand_ins(table, self._columns(), dialect)
            decoys = f"SELECT * FROM {others} WHERE {quote(table.user)} IS NOT NULL"
        where = write_where(table, statement.outer, values)
        matching = dialect.matching(table, source, hashes, where, decoys)
        return f"SELECT {named}{dialect.apart} FROM {matching}"

    def _columns(self) -> list[Column]:
        """The columns that are needed of the table."""
        statement = self.statement
        columns = [of.column for of in self._hashes()]
        columns += [c for group in statement.groups for c in columns_of(group)]
        columns += [c for condition in statement.conditions for c in mentioned(condition)]
        columns += [a.column for a in statement.aggregates if a.column is not None]
        return list(dict.fromkeys(columns))

    def _labelled(self, selected: Selected, kept: Sequence[Key], values: Values) -> str:
        """Matching rows with the number of their bucket among the ``kept``; without groups 0."""
        statement = self.statement
        rows = self._rows(selected, values)
        if not statement.groups:
            return f"SELECT 0 AS bucket, r.* FROM ({rows}) AS r"
        arrays, same = [], []
        for place, group in enumerate(statement.groups):
            arrays += _arrays(place, group, [key[place] for key in kept], values)
            name, other = self._key_names()[place], "''" if group.kind is Kind.TEXT else "0"
            same.append(f"({name} IS NULL) = {quote(f'unknown {place}')}")
            same.append(f"coalesce({name}, {other}) = {quote(f'value {place}')}")
        numbers = parameter(list(range(len(kept))), "BIGINT[]", values)
        return (
            f"SELECT coalesce(k.number, {REST}) AS bucket, r.* FROM ({rows}) AS r LEFT JOIN "
            f"(SELECT {', '.join(arrays)}, unnest({numbers}) AS number) AS k "
            f"ON {' AND '.join(same)}"
        )


def _arrays(place: int, group: Expression, keys: Sequence[object], values: Values) -> list[str]:
    """The keys of groups in one place, as columns: whether each is unknown, and what it is."""
    unknown = parameter([key is None for key in keys], "BOOLEAN[]", values)
    array: Value
    if group.kind is Kind.TEXT:
        array, kind = ["" if key is None else str(key) for key in keys], "VARCHAR[]"
    else:
        array = [0.0 if key is None else float(key) for key in keys]  # type: ignore[arg-type]
        kind = "DOUBLE PRECISION[]"
    return [
        f"unnest({unknown}) AS {quote(f'unknown {place}')}",
        f"unnest({parameter(array, kind, values)}) AS {quote(f'value {place}')}",
    ]


def _squared(rows: str, dialect: Dialect) -> str:
    """The rows with the square of what they are away from the average of their bucket."""
    away = f"v - avg(v) OVER (PARTITION BY bucket{dialect.apart})"
    return f"SELECT bucket, u, power({away}, 2) AS v{dialect.apart} FROM ({rows}) AS a"


def _added(rows: str, aggregate: Aggregate, dialect: Dialect) -> str:
    """What each user of a bucket adds; to a count everyone adds something, if only 0."""
    value = "CASE WHEN u IS NOT NULL THEN count(v) END"
    if aggregate.function != "count":
        value = "sum(v)"
    return _per_user(rows, value, dialect)


def _per_user(rows: str, value: str, dialect: Dialect) -> str:
    """A value of each user in a bucket."""
    apart = dialect.apart
    return (
        f"SELECT bucket, {dialect.counted('u')} AS u, {dialect.weighed(value)} AS c "
        f"FROM ({rows}) AS a GROUP BY bucket, u{apart}"
    )


def _credited(rows: str, dialect: Dialect) -> str:
    """How many distinct values each user of a bucket is credited with.

    A value that several users have is one value: it is credited to one with the fewest.
    """
    columns, bucket = f"bucket, u, v{dialect.apart}", f"PARTITION BY bucket{dialect.apart}"
    pairs = f"SELECT DISTINCT {columns} FROM ({rows}) AS a"
    sized = f"SELECT {columns}, count(v) OVER ({bucket}, u) AS n FROM ({pairs}) AS p"
    ranked = (
        f"SELECT {columns}, row_number() OVER ({bucket}, v ORDER BY n, u) AS place "
        f"FROM ({sized}) AS q"
    )
    return _per_user(
        f"SELECT * FROM ({ranked}) AS w WHERE place = 1",
        "CASE WHEN count(v) > 0 THEN count(v) END",
        dialect,
    )
