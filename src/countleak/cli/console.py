"""What the command line prints: tables for people, JSON for machines, progress on the side."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from countleak.experiments import Progress as Report
from countleak.scores import Score


def say(text: str) -> None:
    """Print a line for people."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def remark(text: str) -> None:
    """Print a line for people beside the result, where a pipe does not see it."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False, style="dim")


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


def print_table(records: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print records of equal fields as a table."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for name, value in records[0].items():
        numeric = isinstance(value, int | float) or value is None
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for record in records:
        table.add_row(*(_cell(name, value) for name, value in record.items()))
    # A pipe has no width; a table wrapped at 80 columns would be unreadable in a file.
    width = None if sys.stdout.isatty() else 160
    Console(highlight=False, width=width).print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return " - ".join(_cell(name, part) for part in value)
    if isinstance(value, float):
        short = name in ("kappa", "exponent", "max_exponent", "multiplier")
        return f"{value:.1f}" if short else f"{value:.2f}" if "residual" in name else f"{value:.3f}"
    return str(value)


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """A bar on the error stream that goes away when done; call it with (done, total)."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def score_record(found: Score, known: int) -> dict[str, Any]:
    """A score as plain fields."""
    return {
        "people": found.people,
        "claims": found.claims,
        "right": found.right,
        "wrong": found.wrong,
        "accuracy": found.accuracy,
        "interval": found.interval(),
        "baseline": found.baseline,
        "false_positives": found.false_positives,
        "false_negatives": found.false_negatives,
        "kappa": found.kappa,
        "alpha_ids_known": found.alpha(known),
        "alpha_ids_free": found.alpha(0),
    }


def describe_score(found: Score) -> str:
    """A score in one sentence, with baseline and interval."""
    interval = found.interval()
    if found.accuracy is None or interval is None:
        return f"No claim about any of {found.people} people: the program has no solution."
    return (
        f"{found.right} of {found.claims} secrets recovered ({found.accuracy:.1%}, 95% interval "
        f"{interval[0]:.1%} to {interval[1]:.1%}); guessing without any answer gets "
        f"{found.baseline:.1%}."
    )


def listing(values: Iterable[str]) -> str:
    """Words for an error message: a, b or c."""
    words = list(values)
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
