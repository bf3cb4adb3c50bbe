"""`countleak log`: what a sequence of logged counts gives away, query by query."""

from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.query_log import SMALL, Options, audit_log
from countleak.cli import console, options
from countleak.cli.audit import FAILED
from countleak.errors import NoResult


def log(
    logfile: Annotated[
        Path,
        typer.Argument(
            metavar="LOGFILE",
            help="The log: SQL, CSV or JSON lines with a column `statement`, or PostgreSQL's own.",
        ),
    ],
    database: Annotated[
        str,
        typer.Option(
            help="The owner's data: a DuckDB, CSV or Parquet file, or the URL of a database that "
            "SQLAlchemy knows. It is only read."
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(help="The table that the log asks about; a CSV or Parquet file is one."),
    ] = None,
    small: Annotated[
        int, typer.Option(help="Groups of up to so many people are alarms.", min=1)
    ] = SMALL,
    per_user: Annotated[
        bool, typer.Option("--per-user", help="Keep an account per user of the log.")
    ] = False,
    secret: Annotated[
        str | None, typer.Option(help="A column: alarms say where it tells people apart.")
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help="The log's SQL, as sqlglot calls it; else the database's.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw the people pinned, query by query (.svg, .png, .html)."),
    ] = None,
    fail_above: Annotated[
        int | None, typer.Option(help="Exit with 1 if there are more alarms.", min=0)
    ] = None,
    allow_unread: Annotated[
        bool,
        typer.Option("--allow-unread", help="Pass although statements are not in the account."),
    ] = False,
    authorised_by: Annotated[
        str | None, typer.Option(help="Who allows it: needed for a database on another machine.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Say what logged counts pin together, query by query, on your own data."""
    if figure is not None:
        from countleak.audit.report.drawing import require_drawing

        require_drawing(figure)
    with console.progress("counts") as progress:
        result = audit_log(
            logfile,
            database,
            table,
            options=Options(small, per_user, secret, dialect, authorised_by),
            progress=progress,
        )
    if figure is not None:
        from countleak.audit.report.meter import draw_meter

        draw_meter(result, figure)
    failed = fail_above is not None and result.found > fail_above
    if json:
        console.print_json({**result.record(), "failed": failed})
    else:
        console.say(str(result))
        if failed:
            console.say(f"FAILED: {result.found:,} alarms; {fail_above:,} are allowed")
    if failed:
        raise typer.Exit(FAILED)
    if fail_above is not None and result.unread and not allow_unread:
        raise NoResult(
            f"{result.unread_in_words()} are not in the account, so it has not passed; "
            "--allow-unread passes without them"
        )
    if fail_above is not None and not json:
        console.say(f"passed: {result.found:,} alarms; {fail_above:,} are allowed")
