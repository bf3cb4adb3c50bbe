"""What the command line prints: tables for people, JSON for machines, progress on the side."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from countleak.audit.scores import Score
from countleak.audit.run import Progress as Report


def say(text: str) -> None:
    """Print a line for people."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def remark(text: str) -> None:
    """Print a line for people beside the result, where a pipe does not see it."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False, style="dim")


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


# What a table calls a field whose name is too long for a column.
SHORT = {
    "accuracy_paper": "paper",
    "accuracy_bounded": "bounded",
    "accuracy_dmt": "DMT",
    "interval_dmt": "95% of DMT",
    "interval": "95%",
    "max_exponent": "e <=",
    "residual_mean": "mean",
    "residual_sd": "SD",
}


def print_table(records: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print records of equal fields as a table, a single one as a list."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    prose = False
    if len(records) == 1:
        table.show_header = False
        table.add_column()
        table.add_column()
        for name, value in records[0].items():
            table.add_row(name.replace("_", " "), _cell(name, value))
    else:
        for name, value in records[0].items():
            numeric = isinstance(value, int | float | tuple | list) or value is None
            wide = isinstance(value, str) and any(len(str(r[name])) > 40 for r in records)
            prose = prose or wide
            table.add_column(
                SHORT.get(name, name.replace("_", " ")),
                justify="right" if numeric else "left",
                no_wrap=not wide,
            )
        for record in records:
            table.add_row(*(_cell(name, value) for name, value in record.items()))
    # A pipe has no width, and numbers cut short to fit a narrow window would be useless: only
    # prose is folded.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    if not prose:
        console.width = max(console.width, Console(width=1000).measure(table).maximum)
    console.print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return "-".join(_cell(name, part) for part in value)
    if isinstance(value, float):
        if name in ("kappa", "exponent", "max_exponent", "multiplier"):
            return f"{value:.1f}"
        if "residual" in name or name.startswith("sd_"):
            return f"{value:.2f}"
        return f"{value:.4f}" if name == "accuracy_paper" else f"{value:.3f}"
    return str(value)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner on the error stream for work whose length nobody knows."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


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


def describe_score(found: Score, status: str) -> str:
    """A score in one sentence, with baseline and interval; ``status`` says why there is none."""
    interval = found.interval()
    if found.accuracy is None or interval is None:
        why = {
            "infeasible": "the program has no solution",
            "time_limit": "no solution was found in time",
        }
        return f"No claim about any of {found.people} people: {why.get(status, status)}."
    return (
        f"{found.right} of {found.claims} secrets recovered ({found.accuracy:.1%}, 95% interval "
        f"{interval[0]:.1%} to {interval[1]:.1%}); guessing without any answer gets "
        f"{found.baseline:.1%}."
    )
