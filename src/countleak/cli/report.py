"""`countleak report`: what an audit found, as a page, and as JSON, SARIF and JUnit."""

from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.report.record import FILE
from countleak.audit.report.report import Report, read_report
from countleak.audit.report.writing import PAGE, write_files
from countleak.cli import console, options
from countleak.errors import InputError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an audit.")],
    show_ids: Annotated[
        bool,
        typer.Option(
            "--show-ids", help="Name the people at risk and what is claimed of them, up to 100."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the report goes (default: the audit's folder).", show_default=False
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write what an audit found as a page, and as JSON, SARIF and JUnit for a build."""
    found = read_report(run, show_ids=show_ids)
    folder = run if out is None else out
    if out is not None and (out / FILE).exists() and out.resolve() != run.resolve():
        raise InputError(f"{out}: holds another audit; name another folder")
    write_files(found, folder)
    if json:
        console.print_json(found.record())
        return
    console.say(in_words(found))
    console.say(files_in_words(folder))


def in_words(found: Report) -> str:
    """The verdict in a few lines."""
    verdict = found.verdict
    judged = found.audit.judged.words
    lines = [f"{verdict.headline}.", verdict.sentence, *([judged] if judged else [])]
    return "\n".join([*lines, verdict.caution])


def files_in_words(folder: Path) -> str:
    """Where the report is."""
    stem = PAGE.removesuffix(".html")
    # Without its extra there is no page.
    best = PAGE if (folder / PAGE).exists() else f"{stem}.json"
    return f"Report: {folder / best} (for a build: {stem}.json, {stem}.sarif, {stem}.xml)"
