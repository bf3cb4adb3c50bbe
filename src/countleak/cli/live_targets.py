"""Words that name a system to ask: an address, a file of a database, a function, a command."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countleak.audit.people import People
from countleak.audit.targets.callables import CallableTarget
from countleak.audit.targets.command import SCHEME, CommandTarget
from countleak.audit.targets.database import DatabaseTarget
from countleak.audit.targets.embedded import READERS, DuckTarget
from countleak.audit.targets.listing import listed_people, tables_of_postgres
from countleak.audit.targets.postgres import PostgresTarget
from countleak.audit.targets.rest import RestTarget
from countleak.audit.targets.sql import CountSql, SqlQuestions, System
from countleak.cli import console
from countleak.errors import InputError, TargetError
from countleak.foreign import clean
from countleak.own_code import load

if TYPE_CHECKING:
    from countleak.attack.secrets import Secret
    from countleak.cli.options import Who
    from countleak.cli.target_options import Live, TargetWord

LiveTarget = (
    PostgresTarget | RestTarget | DatabaseTarget | DuckTarget | CallableTarget | CommandTarget
)
DUCKDB = "duckdb:///"
# Where the table is not named yet.
UNNAMED = "?"
# Kinds of systems that answer all cells of a table at once.
TAKING_TABLES = ("postgresql", "database", "duckdb")
MOST_SHOWN = 10
# Questions per second to another machine, unless its owner allows for more.
GENTLE = 20.0
KINDS = {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "U": "text"}


def live_target(
    word: "TargetWord",
    live: "Live",
    people: People,
    secret: "Secret | None",
    system: System,
    dry_run: bool,
) -> LiveTarget:
    """The system that a word names, which may be asked; a command is started unless it is dry."""
    template = None if live.count_sql is None else CountSql(live.count_sql)
    table = live.table or _own_table(word, people)
    questions = SqlQuestions(
        table or UNNAMED,
        people.key,
        secret,
        system,
        template=template,
        takes_tables=word.kind in TAKING_TABLES,
    )
    if table is None and word.kind == "http":
        raise InputError("name the table that is asked about with --table")
    target = _authorised(_target(word, live, questions, people), live)
    if table is None:
        there = _there_is(_tables(target))
        raise InputError(f"name the table that is asked about with --table; {there}")
    if isinstance(target, CommandTarget) and not dry_run:
        target.start()
    return target


def named_people(
    word: "TargetWord", live: "Live", who: "Who", columns: Sequence[str], secret: bool
) -> People:
    """The people that the table of a database lists itself, where nobody else names them.

    What is not named, table, id or the secret, is asked for with what there is.
    """
    key = tuple(part.strip() for part in (who.id_column or "").split(",") if part.strip())
    table = live.table or _own_table(word, None)
    questions = SqlQuestions(table or UNNAMED, key or (UNNAMED,), None, live.system_at(word))
    target = _authorised(_target(word, live, questions, None), live)
    assert isinstance(target, PostgresTarget | DatabaseTarget | DuckTarget)
    wanted = {"--table": table, "--id": key, "--secret": secret}
    missing = [option for option, given in wanted.items() if not given]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise InputError(f"name {listed}; {_there_is(_tables(target), table)}")
    if isinstance(target, DatabaseTarget | DuckTarget):
        # SQLite would take a name that is no column for a text.
        _check_columns(target.tables(), str(table), columns)
    try:
        with console.waiting("reading ids"):
            return listed_people(target, columns, who.between)
    except (TargetError, InputError) as error:
        _check_names(target, str(table), [*key, *columns])
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the people cannot be read from the table ({error}); name them in a file, with "
            "--people"
        ) from None


def _authorised(target: LiveTarget, live: "Live") -> LiveTarget:
    """The target, which is on this machine, or somebody allows it: then it is asked gently."""
    if target.is_local:
        return target
    if (live.authorised_by or "").strip():
        if live.rate is None:
            target.limits = replace(target.limits, rate=GENTLE)
        return target
    raise InputError(
        f"{target} is not this machine; ask only systems you may audit, and say who allows it "
        "with --authorised-by NAME"
    )


def _tables(target: LiveTarget) -> dict[str, tuple[str, ...]]:
    """The columns of each table of a system that lists them, by name."""
    if isinstance(target, PostgresTarget):
        return tables_of_postgres(target)
    assert isinstance(target, DatabaseTarget | DuckTarget)
    return target.tables()


def _there_is(tables: Mapping[str, Sequence[str]], table: str | None = None) -> str:
    """The tables that there are and their columns, or those of the one that is named."""
    shown = [table] if table is not None and table in tables else [*tables]
    texts = [f"{name} ({', '.join(tables[name])})" for name in shown[:MOST_SHOWN]]
    more = ", ..." if len(shown) > MOST_SHOWN else ""
    return f"there is {clean(', '.join(texts)) or 'none'}{more}"


def _check_names(target: LiveTarget, table: str, columns: Sequence[str]) -> None:
    """Raise where a table or one of its columns is not there, if the system lists what is."""
    try:
        tables = _tables(target)
    except TargetError:
        return
    _check_columns(tables, table, columns)
    # A name of several parts may be that of a table which is not listed.
    if table not in tables and tables and not set('."`') & set(table):
        raise InputError(f"there is no table {clean(table)!r}; {_there_is(tables)}")


def _check_columns(tables: Mapping[str, Sequence[str]], table: str, columns: Sequence[str]) -> None:
    """Raise where a table that is listed lacks one of the columns."""
    strangers = [name for name in columns if name not in tables.get(table, columns)]
    if strangers:
        there = _there_is(tables, table)
        raise InputError(f"there is no column {clean(strangers[0])!r}; {there}")


def _own_table(word: "TargetWord", people: People | None) -> str | None:
    """The table that is asked about where none is named: a file's own, or that of the people."""
    path = Path(word.text.removeprefix(DUCKDB))
    if word.kind == "duckdb" and path.suffix.lower() in READERS:
        return path.stem
    return people.table if people and word.kind in ("callable", "command") else None


def _target(
    word: "TargetWord", live: "Live", questions: SqlQuestions, people: People | None
) -> LiveTarget:
    text, limits = word.text, live.limits
    if word.kind == "postgresql":
        return PostgresTarget(text, questions, limits)
    if word.kind == "http":
        if live.data_source is None:
            raise InputError("name the data source that is asked with --data-source")
        return RestTarget(text, live.data_source, questions, live.token, limits)
    if word.kind == "database":
        return DatabaseTarget(text, questions, limits)
    if word.kind == "duckdb":
        if not text.startswith(DUCKDB) or text == DUCKDB:
            raise InputError("name the file to ask, like duckdb:///loans.duckdb")
        return DuckTarget(text.removeprefix(DUCKDB), questions, limits)
    if word.kind == "callable":
        return CallableTarget(load(text), questions, limits, text)
    return CommandTarget(
        text.removeprefix(SCHEME), questions, limits, _kinds(people) if people else {}
    )


def _kinds(people: People) -> dict[str, str]:
    """What each column of the people holds, by name."""
    return {name: _kind(values) for name, values in people.all_columns.items()}


def _kind(values: "np.ndarray[Any, Any]") -> str:
    present = [value for value in values.tolist() if value is not None]
    return KINDS.get(np.array(present).dtype.kind, "text")
