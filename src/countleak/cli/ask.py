"""`countleak ask`: the questions of a plan, or one of your own, put to a system."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from countleak.attack.queries.files import read_queries
from countleak.attack.secrets import parse_secret
from countleak.attack.transcript import Journal, Transcript
from countleak.audit.run import ask_into
from countleak.audit.targets.diffix import Diffix
from countleak.cli import console, options
from countleak.cli.option_rules import ABSENT, needs
from countleak.cli.target_options import (
    SIMULATED,
    TARGET_HELP,
    Live,
    Opened,
    Release,
    Simulation,
    Systems,
    TargetWord,
    read_target,
    show,
    target_needs,
    warn_of_suppression,
)
from countleak.diffix.databases.database import Database
from countleak.diffix.databases.postgres import connect
from countleak.diffix.salt import Salt, keep_salt, read_salt
from countleak.errors import InputError


@needs(
    {
        **target_needs("--target"),
        "--sql": {"--target": ("diffix",), "QUERIES": ABSENT},
        "--database": {"--target": ("diffix",), "--people": ABSENT},
        "--table": {"--target": ("postgresql", "http", "diffix")},
        "--dry-run": {"--target": ("postgresql", "http")},
    }
)
def ask(
    who: options.Who,
    simulation: Simulation,
    release: Release,
    live: Live,
    queries: Annotated[
        Path | None, typer.Argument(help="Queries written by `countleak plan`.")
    ] = None,
    target: Annotated[
        TargetWord, typer.Option(help=TARGET_HELP, parser=read_target, metavar="TARGET")
    ] = SIMULATED,
    secret: Annotated[
        str | None,
        typer.Option(help="What is secret about a person, see `countleak audit --help`."),
    ] = None,
    sql: Annotated[
        str | None, typer.Option(help="diffix: one question in SQL instead of a plan.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="diffix: data to ask instead of --people: postgresql://..., or a CSV, Parquet or "
            "DuckDB file, with --table and --id."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Ask at most so many now; run again to resume.", min=1)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be asked; send nothing.")
    ] = False,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, or to resume.")] = Path(
        "answers.jsonl"
    ),
    json: options.Json = False,
) -> None:
    """Put the questions to a system and keep its answers as they come; or one of your own."""
    if (queries is None) == (sql is None):
        raise InputError("name a file of queries written by `countleak plan`, or pass --sql")
    with ExitStack() as stack:
        if sql is not None:
            system = _diffix(stack, who, release, live.table, database)
            _ask_one(system, sql, json)
            return
        assert queries is not None
        if secret is None:
            raise InputError("say what is secret with --secret, like \"status = 'C'\"")
        planned = read_queries(queries)
        if database is not None:
            system = _diffix(stack, who, release, live.table, database, secret)
            opened = Opened(system, f"Diffix {release.release} over {live.table}, {system.secret}")
            named = parse_secret(secret)
        else:
            people = who.read(target.people)
            named = people.named(secret)
            opened = Systems(simulation, release, live).open(target, people, named, planned, seed)
        journal = Journal(out, planned, named, opened.about, live.authorised_by)
        remaining = journal.open_questions()[:limit]
        if target.is_live or dry_run:
            show(opened, planned, remaining.tolist(), remaining.size)
        if dry_run:
            console.remark("Nothing was sent (--dry-run).")
            if json:
                console.print_json({"system": opened.about, "sent": 0})
            return
        transcript = _ask_all(journal, opened, limit, json)
        warn_of_suppression(opened, transcript)


def _ask_all(journal: Journal, opened: Opened, limit: int | None, json: bool) -> Transcript:
    before, expected = len(journal.answers), len(journal.open_questions())
    with console.progress("asking") as report:
        transcript = ask_into(journal, opened.target, report, limit)
    suppressed = int((~transcript.released).sum())
    if json:
        console.print_json(
            {
                "file": str(journal.path),
                "answers": len(transcript),
                "known_before": before,
                "suppressed": suppressed,
                "system": opened.about,
            }
        )
        return transcript
    resumed = f" ({before} of them from an earlier run)" if before else ""
    total = before + expected
    missing = f" of {total}; run again to resume" if len(transcript) < total else ""
    console.say(
        f"{len(transcript)} answers{resumed}{missing}, {suppressed} suppressed, in {journal.path}"
    )
    console.say(f"From: {opened.about}")
    return transcript


def _diffix(
    stack: ExitStack,
    who: options.Who,
    release: Release,
    table: str | None,
    database: str | None,
    secret: str | None = None,
) -> Diffix:
    """Diffix over people, or over a database."""
    if database is None:
        salt = read_salt(release.salt_file)
        system = Diffix(who.read(), secret, release.release, salt)
        keep_salt(release.salt_file, salt)
        return system
    if table is None or who.id_column is None:
        raise InputError("name the table of --database with --table and its id column with --id")
    salt = read_salt(release.salt_file)
    held = _database(stack, database, salt, table, who.id_column)
    keep_salt(release.salt_file, salt)
    return Diffix(held, secret, release.release, salt)


def _database(stack: ExitStack, where: str, salt: Salt, table: str, user: str) -> Database:
    """The table at a PostgreSQL address or in a file."""
    if where.startswith(("postgresql://", "postgres://")):
        return stack.enter_context(connect(where, table=table, user=user))
    # Loaded here: most of countleak needs no database.
    from countleak.diffix.databases.duck import Duck

    return Duck.of_file(Path(where), salt, table=table, user=user)


def _ask_one(system: Diffix, sql: str, json: bool) -> None:
    answer = system.ask(sql)
    rows = [dict(zip(answer.columns, row.values, strict=True)) for row in answer.rows]
    if json:
        console.print_json(
            {
                "rows": rows,
                "released": [row.released for row in answer.rows],
                "notices": list(answer.notices),
            }
        )
        return
    for notice in answer.notices:
        console.remark(notice)
    if rows:
        console.print_table(rows)
    else:
        console.say("Every group has too few people and is suppressed, and so are all together.")
    if not all(row.released for row in answer.rows):
        console.remark("Too few people: the count is suppressed, and 0 says so.")
