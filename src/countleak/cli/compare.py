"""`countleak compare`: two audits side by side, before and after."""

from pathlib import Path
from typing import Annotated

import typer

from countleak.audit.report.comparison import compare as compare_reports
from countleak.audit.report.report import read_report
from countleak.audit.report.to_html import comparison_to_html
from countleak.audit.report.writing import write_page
from countleak.cli import console, options
from countleak.shares import percent


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The folder of an audit.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The folder of a later one.")],
    page: Annotated[
        Path | None, typer.Option(help="Write the comparison as a page too, an .html file.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Say what changed between two audits, and whether by more than chance."""
    first, second = read_report(before), read_report(after)
    found = compare_reports(first, second)
    if page is not None:
        write_page(page, comparison_to_html(found, first, second))
    if json:
        console.print_json({**found.record(), "page": None if page is None else str(page)})
        return
    console.say(f"{found.headline}.")
    if found.differences:
        console.print_table(
            [
                {
                    "figure": each.what,
                    "before": percent(each.before),
                    "after": percent(each.after),
                    "difference": f"{100 * each.difference:+.1f}",
                    "95%": f"{100 * each.interval[0]:+.1f} to {100 * each.interval[1]:+.1f}",
                    "verdict": "beyond chance" if each.beyond_chance else "within chance",
                }
                for each in found.differences
            ]
        )
    for change in found.changes:
        console.say(f"{change.what}: {change.before} -> {change.after}")
    for caution in found.cautions:
        console.remark(f"Note: {caution}")
    if page is not None:
        console.say(f"Page: {page}")
