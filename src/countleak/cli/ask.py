"""`countleak ask`: the questions of a plan, or one of your own, put to a system."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from countleak.addresses import SCHEMES
from countleak.attack.queries.files import read_queries
from countleak.attack.queries.signs import Signs
from countleak.attack.secrets import Secret, parse_secret
from countleak.attack.transcript import Journal, Transcript
from countleak.audit.run import ask_into
from countleak.audit.targets.diffix import Diffix
from countleak.cli import console, options
from countleak.cli.option_rules import ABSENT, Needs, given, needs
from countleak.cli.showing import show, warn_of_suppression
from countleak.cli.target_options import (
    IN_PROCESS,
    LIVE,
    SIMULATED,
    TARGET_HELP,
    TWO_SUBSETS,
    Live,
    Opened,
    Release,
    Simulation,
    Systems,
    TargetWord,
    over_diffix,
    read_target,
    shown_name,
    target_needs,
)
from countleak.diffix.databases.database import Database
from countleak.diffix.databases.postgres import connect
from countleak.diffix.salt import Salt
from countleak.errors import InputError
from countleak.files import is_file

TARGET_NEEDS: Needs = {
    **target_needs("--target"),
    "--table": {"--target": (*LIVE, "diffix")},
}
OF_A_PLAN = ("--secret", "--limit", "--dry-run", "--out")


@dataclass(frozen=True)
class Direct:
    """Diffix asked directly: a question of one's own, or data of one's own."""

    sql: Annotated[
        str | None, typer.Option(help="diffix: one question in SQL instead of a plan.")
    ] = None
    database: Annotated[
        str | None,
        typer.Option(
            help="diffix: data to ask instead of --people: postgresql://..., or a CSV, Parquet or "
            "DuckDB file, with --table and --id."
        ),
    ] = None


@dataclass(frozen=True)
class Sending:
    """How much of a plan is sent now."""

    limit: Annotated[
        int | None, typer.Option(help="Ask at most so many now; run again to resume.", min=1)
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be asked; send nothing.")
    ] = False


@needs(
    {
        **TARGET_NEEDS,
        **{option: {**TARGET_NEEDS.get(option, {}), "--sql": ABSENT} for option in OF_A_PLAN},
        "--sql": {"--target": ("diffix",), "QUERIES": ABSENT},
        "--database": {"--target": ("diffix",), "--people": ABSENT, "--between": ABSENT},
        "--seed": {"--target": IN_PROCESS},
        "--sign-noise": {"--target": IN_PROCESS},
    }
)
def ask(
    context: typer.Context,
    who: options.Who,
    simulation: Simulation,
    release: Release,
    live: Live,
    direct: Direct,
    sending: Sending,
    queries: Annotated[
        Path | None, typer.Argument(metavar="QUERIES", help="Queries written by `countleak plan`.")
    ] = None,
    target: Annotated[
        TargetWord, typer.Option(help=TARGET_HELP, parser=read_target, metavar="TARGET")
    ] = SIMULATED,
    secret: Annotated[
        str | None,
        typer.Option(help="What is secret about a person, see `countleak audit --help`."),
    ] = None,
    sign_noise: Annotated[
        str,
        typer.Option(
            help="signs: noise of one `direct` answer, of `two-subsets`, or a standard deviation."
        ),
    ] = TWO_SUBSETS,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, or to resume.")] = Path(
        "answers.jsonl"
    ),
    json: options.Json = False,
) -> None:
    """Put the questions to a system and keep its answers as they come; or one of your own."""
    if (queries is None) == (direct.sql is None):
        raise InputError("name a file of queries written by `countleak plan`, or pass --sql")
    if live.table is not None and target.kind == "diffix" and direct.database is None:
        raise InputError("--table names a table of --database or at an address; leave it out")
    with ExitStack() as stack:
        if direct.sql is not None:
            system = _diffix(stack, who, release, live.table, direct.database)
            _ask_one(system, direct.sql, json)
            return
        assert queries is not None
        if secret is None:
            raise InputError("say what is secret with --secret, like \"status = 'C'\"")
        planned = read_queries(queries)
        if "--sign-noise" in given(context) and not isinstance(planned.family, Signs):
            raise InputError(f"--sign-noise is for ±1 queries, not for {planned.family.name}")
        if direct.database is not None:
            named = parse_secret(secret)
            opened = _diffix(stack, who, release, live.table, direct.database, named)
        else:
            people = who.read(target.people)
            named = people.named(secret)
            systems = Systems(simulation, release, live, sign_noise, sending.dry_run)
            opened = systems.open(target, people, named, planned, seed)
        journal = Journal(out, planned, named, opened.about, live.authorised_by)
        if not sending.dry_run:
            stack.enter_context(journal.writing())
        remaining = journal.open_questions()[: sending.limit]
        if target.is_live or sending.dry_run:
            show(opened, planned, remaining.tolist(), remaining.size)
        if sending.dry_run:
            console.remark("Nothing was sent (--dry-run).")
            if json:
                console.print_json({"system": opened.about, "sent": 0})
            return
        opened.keep_salt()
        transcript = _ask_all(journal, opened, sending.limit, json)
        warn_of_suppression(opened, transcript)


def _ask_all(journal: Journal, opened: Opened, limit: int | None, json: bool) -> Transcript:
    before, expected = len(journal.answers), len(journal.open_questions())
    with console.progress("asking") as report:
        transcript = ask_into(journal, opened.target, report, limit)
    answers, suppressed = len(transcript), int((~transcript.released).sum())
    resumed = f" ({before} of them from an earlier run)" if before else ""
    total = before + expected
    missing = f" of {total}; run again to resume" if answers < total else ""
    with console.beside(journal.path):
        if json:
            console.print_json(
                {
                    "file": str(journal.path),
                    "answers": answers,
                    "known_before": before,
                    "suppressed": suppressed,
                    "system": opened.about,
                }
            )
        else:
            console.say(
                f"{answers} answers{resumed}{missing}, {suppressed} suppressed, in {journal.path}"
            )
            console.say(f"From: {opened.about}")
    return transcript


def _diffix(
    stack: ExitStack,
    who: options.Who,
    release: Release,
    table: str | None,
    database: str | None,
    secret: Secret | None = None,
) -> Opened:
    """Diffix over people, or over a table at a PostgreSQL address or in a file."""
    if database is None:
        people = who.read()
        return over_diffix(people, secret, release, people.table)
    if table is None or who.id_column is None:
        raise InputError("name the table of --database with --table and its id column with --id")
    where, user = database, who.id_column

    def held(salt: Salt) -> Database:
        if where.startswith(SCHEMES):
            return stack.enter_context(connect(where, table=table, user=user))
        if not is_file(where):
            raise InputError(
                f"no such file{shown_name(where)}; name one, or an address that begins with "
                "postgresql://"
            )
        # Loaded here: most of countleak needs no database.
        from countleak.diffix.databases.duck import Duck

        return Duck.of_file(Path(where), salt, table=table, user=user)

    return over_diffix(held, secret, release, table)


def _ask_one(opened: Opened, sql: str, json: bool) -> None:
    assert isinstance(opened.target, Diffix)
    answer = opened.target.ask(sql)
    opened.keep_salt()
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
