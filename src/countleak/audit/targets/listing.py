"""What a database lists of itself: its tables, and the people of one of them."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from countleak.attack.queries.groupings import as_label
from countleak.attack.queries.ids import id_array
from countleak.audit.people import People
from countleak.audit.targets.pool import Connection, Rows, TakesTables
from countleak.audit.targets.sql import SqlQuestions
from countleak.errors import InputError, TargetError
from countleak.progress import Progress, silent

# Rows that are read at once.
PAGE = 5_000
# Of more people nobody should wait to learn that they are too many to attack at once.
MOST_PEOPLE = 20_000
OWN_SCHEMAS = ("pg_catalog", "information_schema")


class Lists(Protocol):
    """A system that lists rows."""

    questions: SqlQuestions

    def connect(self) -> Connection[str]:
        """A connection of its own."""
        ...


def tables_of_postgres(target: Lists) -> dict[str, tuple[str, ...]]:
    """The columns of each table of a PostgreSQL server that may be read, by name."""
    text = (
        "SELECT table_schema, table_name, column_name FROM information_schema.columns "
        "ORDER BY table_schema, table_name, ordinal_position"
    )
    found: dict[str, tuple[str, ...]] = {}
    for schema, table, column in _rows(target, text):
        if schema not in OWN_SCHEMAS:
            name = str(table) if schema == "public" else f"{schema}.{table}"
            found[name] = (*found.get(name, ()), str(column))
    return found


def listed_people(
    target: Lists,
    columns: Sequence[str] = (),
    between: tuple[int, int] | None = None,
    progress: Progress = silent,
) -> People:
    """The people of the target's own table, one per id, and ``columns`` of what each has.

    Only those with ids ``between`` two are read, if so; of more than ``MOST_PEOPLE`` none are. A
    row without an id is nobody's. Raises where the system does not list rows, as a noisy front.
    """
    from sqlglot import exp

    from countleak.attack.queries.predicates import is_between

    questions = target.questions
    names = list(dict.fromkeys([*questions.key, *columns]))
    selected = [exp.column(name, quoted=True) for name in names]
    order = [column.copy() for column in selected[: len(questions.key)]]
    select = exp.select(*selected).distinct().from_(questions.parsed_table).order_by(*order)
    if between is not None and len(questions.key) == 1:
        select = select.where(is_between(questions.key[0], *between))
    rows: list[Sequence[object]] = []
    with closing(_opened(target)) as connection:
        while True:
            page = select.limit(PAGE).offset(len(rows)) if rows else select.limit(PAGE)
            part = connection.rows(page.sql(dialect=questions.dialect, identify=True))
            rows += part
            progress(len(rows), len(rows))
            if len(part) < PAGE:
                break
            if len(rows) > MOST_PEOPLE:
                raise InputError(
                    f"{questions.table} lists more than {MOST_PEOPLE:,} people; choose some by a "
                    "range of ids, or name them in a file"
                )
    people = [row for row in rows if all(value is not None for value in row[: len(questions.key)])]
    if len(people) < 2:
        raise InputError(
            f"{questions.table} lists {len(people)} people; check the table and its id"
        )
    return _people(people, names, questions)


def _people(rows: Sequence[Sequence[object]], names: list[str], questions: SqlQuestions) -> People:
    width = len(questions.key)
    values = [[as_label(value) for value in column] for column in zip(*rows, strict=True)]
    ids = list(zip(*values[:width], strict=True)) if width > 1 else values[0]
    order = sorted(range(len(ids)), key=lambda at: ids[at])  # type: ignore[return-value,arg-type]
    columns = {}
    for name, column in zip(names[width:], values[width:], strict=True):
        columns[name] = _column([column[at] for at in order])
    key: str | tuple[str, ...] = questions.key if width > 1 else questions.key[0]
    return People(id_array([ids[at] for at in order]), columns, key, questions.table)


def _column(values: list[Any]) -> np.ndarray[Any, Any]:
    if len({type(value) for value in values}) == 1 and values[0] is not None:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _rows(target: Lists, text: str) -> Rows:
    with closing(_opened(target)) as connection:
        return connection.rows(text)


def _opened(target: Lists) -> TakesTables:
    connection = target.connect()
    if isinstance(connection, TakesTables):
        return connection
    connection.close()
    raise TargetError("this system lists no rows; name the people in a file")
