"""`countleak tables`: everything published about the same people, solved at once."""

from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.releases import SMALL, audit_tables
from countleak.audit.releases.description import Described, read_releases, strangers
from countleak.audit.releases.guessing import proposed
from countleak.cli import console, options
from countleak.cli.audit import FAILED
from countleak.cli.tables_beyond import Beyond
from countleak.errors import InputError, NoResult


def tables(
    releases: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASES...",
            help="Tables of counts as CSV, Parquet or XLSX, a row per cell with the count last, or "
            "as SDMX, JSON-stat or PX; or one releases.toml that says what they are.",
        ),
    ],
    guess: Annotated[
        bool,
        typer.Option("--guess", help="Print the releases.toml that the tables look like, and end."),
    ] = False,
    small: Annotated[
        int, typer.Option(help="Groups of up to so many people are findings.", min=1)
    ] = SMALL,
    fail_above: Annotated[
        int | None, typer.Option(help="Exit with 1 if there are more findings.", min=0)
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds after which integer programs are left out.", min=0)
    ] = 60.0,
    beyond: Beyond = Beyond(),
    json: options.Json = False,
) -> None:
    """Solve published tables together: which small groups and hidden counts they pin, and why."""
    described = read_releases(releases)
    if guess:
        if any(path.suffix.lower() == ".toml" for path in releases):
            raise InputError("--guess reads tables, not a releases.toml; name the tables")
        console.say(proposed(described.tables, described.trees, releases).rstrip())
        return
    if not json:
        for line in read_in_words(described):
            console.remark(line)
    with console.progress("groups") as progress:
        result = audit_tables(
            described.tables,
            described.trees,
            small=small,
            time_limit=time_limit,
            progress=progress,
        )
    failed = fail_above is not None and len(result.findings) + result.unproven > fail_above
    parts = [] if result.contradicts else beyond.parts(result, time_limit)
    if json:
        record = {**result.record(), "apart": strangers(described)}
        for part in parts:
            record.update(part.record)
        console.print_json({**record, "failed": failed or any(part.failed for part in parts)})
    if result.contradiction is not None:
        raise NoResult(str(result.contradiction))
    if not json:
        for text in (str(result), *(part.words for part in parts)):
            console.say(text)
        if fail_above is not None and (failed or not result.not_looked_at):
            found = len(result.findings) + result.unproven
            verdict = "FAILED" if failed else "passed"
            console.say(f"{verdict}: {found} findings; {fail_above} are allowed")
    if failed or any(part.failed for part in parts):
        raise typer.Exit(FAILED)
    if fail_above is not None and result.not_looked_at:
        raise NoResult(f"this can neither pass nor fail: {result.not_looked_at[0]}")


def read_in_words(described: Described) -> list[str]:
    """How each table was read."""
    lines = []
    for stated in described.tables:
        release = stated.release
        hidden = sum(number.value is None for number in release.numbers)
        is_read = stated.inferred and stated.within is None
        words = stated.inferred if is_read else (*stated.rules.words, *stated.inferred)
        rules = " and ".join(words)
        how = "read as: " if is_read else ""
        lines.append(
            f"{release.name}: {len(release.numbers)} numbers ({hidden} not shown) by "
            f"{', '.join(release.dimensions) or 'nothing'}; {how}{rules}."
        )
    return lines + strangers(described)
