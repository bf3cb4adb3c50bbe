"""The rows of tables that are joined by the user id, in SQL: of a table like another."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from countleak.diffix.sql.render import Dialect, Hash, quote
from countleak.diffix.sql.statement import Column, Table

Source = Callable[[Table, Sequence[Column]], str]


def join_rows(table: Table, columns: Sequence[Column], source: Source, *, hashed: bool) -> str:
    """The rows of a join with these columns, and nobody's, for FROM; ``hashed`` with their hashes.

    OFFSET keeps conditions out of it. A database that applied them first would read less where
    nobody meets them, and whoever measures time could tell.
    """
    parts = [_part(part, columns, source, hashed=hashed) for part in table.joined]
    joined, *others = (f"({text}) AS j{place}" for place, (text, _) in enumerate(parts))
    users = [quote(part.in_join(part.user)) for part in table.joined]
    for other, user in zip(others, users[1:], strict=True):
        joined += f" JOIN {other} ON {users[0]} = {user}"
    nobody = ", ".join("NULL" for _, names in parts for _ in names)
    return f"(SELECT * FROM {joined} UNION ALL SELECT {nobody} OFFSET 0) AS t"


def stand_ins(table: Table, columns: Sequence[Column], dialect: Dialect) -> str:
    """Rows of a table that cost as much as those that match, and some that are nobody's, for FROM.

    Those of a join are not of one user each, so that few of them are had without joining all.
    """
    if not table.joined:
        return dialect.source(table, columns)
    (first, _), *others = (
        _part(part, columns, dialect.source, hashed=False) for part in table.joined
    )
    rows = f"({first}) AS j0"
    for place, ((text, _), part) in enumerate(zip(others, table.joined[1:], strict=True), 1):
        user = quote(part.user)
        rows += f" CROSS JOIN ({text} WHERE {user} IS NOT NULL LIMIT 1) AS j{place}"
    return f"(SELECT * FROM {rows}) AS t"


def _part(
    part: Table, columns: Iterable[Column], source: Source, *, hashed: bool
) -> tuple[str, list[str]]:
    """What a join needs of a table, under its names there, and these names."""
    needed = {column.name for column in columns} | {part.in_join(part.user)}
    own = [Column(n, kind) for n, kind in part.columns.items() if part.in_join(n) in needed]
    named = {column.name: part.in_join(column.name) for column in own}
    for column in own if hashed else ():
        joined = replace(column, name=part.in_join(column.name))
        roles = ("value", "user") if column.name == part.user else ("value",)
        named |= {Hash(column, role).name: Hash(joined, role).name for role in roles}
    selected = ", ".join(f"{quote(name)} AS {quote(as_)}" for name, as_ in named.items())
    return f"SELECT {selected} FROM {source(part, own)}", [*named.values()]
