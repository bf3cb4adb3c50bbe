"""What the command line prints: tables for people, JSON for machines, progress on the side."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import typer

from countleak.foreign import clean, clean_lines
from countleak.shares import percent, rounded

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def say(text: str) -> None:
    """Print a line for people."""
    sys.stdout.write(f"{clean_lines(text)}\n")


def remark(text: str) -> None:
    """Print a line for people beside the result, where a pipe does not see it."""
    typer.secho(clean_lines(text), err=True, dim=True)


@contextmanager
def beside(result: Path) -> Iterator[None]:
    """Print on the error stream in this block where the ``result`` itself is standard output."""
    try:
        taken = os.path.samestat(result.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):
        taken = False
    with redirect_stdout(sys.stderr) if taken else nullcontext():
        yield


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
    # Here and below: rich takes long to load, and most commands need none of it.
    from rich import box
    from rich.console import Console
    from rich.table import Table

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
            table.add_row(clean(name.replace("_", " ")), _cell(name, value))
    else:
        for name, value in records[0].items():
            numeric = isinstance(value, int | float | tuple | list) or value is None
            wide = isinstance(value, str) and any(len(str(r[name])) > 40 for r in records)
            prose = prose or wide
            table.add_column(
                SHORT.get(name, clean(name.replace("_", " "))),
                justify="right" if numeric else "left",
                no_wrap=not wide,
            )
        for record in records:
            table.add_row(*(_cell(name, value) for name, value in record.items()))
    # A pipe has no width, and numbers cut short to fit a narrow window would be useless: only
    # prose is folded.
    # A cell is text, whatever brackets it holds.
    width = None if sys.stdout.isatty() else 160
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    if not prose:
        console.width = max(console.width, Console(width=1000).measure(table).maximum)
    console.print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return "-".join(_cell(name, part) for part in value)
    if isinstance(value, float):
        if name == "kappa":
            return percent(value / 100).removesuffix("%")
        if name in ("exponent", "max_exponent", "multiplier"):
            return f"{value:.1f}"
        if "residual" in name or name.startswith("sd_"):
            return f"{value:.2f}"
        decimals = 4 if name == "accuracy_paper" else 3
        # Small numbers may be errors or chances; what is nearly 1 must not read as all.
        return rounded(value, decimals) if value > 0.5 else f"{value:.{decimals}f}"
    return clean(str(value))


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner on the error stream for work whose length nobody knows."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


# Outside a terminal, seconds between two lines about how far work has come.
EVERY = 10.0
# Up to this share of some work nothing is said of how long the rest takes.
EARLY = 0.1


class Lines:
    """Progress where there is no terminal: a plain line on the error stream, now and then.

    Work that takes less than ``EVERY`` seconds says nothing.
    """

    def __init__(self, what: str):
        """Work called ``what``, which begins with the first call."""
        self._what = what
        self._began: float | None = None
        self._said = 0.0
        self._noted = ""

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        if self._began is None:
            self._began = self._said = now
        if done >= total or now - self._said < EVERY:
            return
        self._said, spent = now, now - self._began
        # The first steps tell little: something is still being compiled, or connected to.
        early = done < EARLY * total
        left = "" if early else f", about {_duration(spent * (total - done) / done)} left"
        text = f"{self._what}: {done} of {total} after {_duration(spent)}{left}{self._noted}"
        sys.stderr.write(f"{clean(text)}\n")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        """Say this too, from the next line on."""
        self._noted = f"; {text}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Stage(Protocol):
    """Work that says how far it has come, and what there is to note of it."""

    def __call__(self, done: int, total: int) -> None:
        """So many steps of so many are done."""

    def note(self, text: str) -> None:
        """Show this beside it."""


@dataclass(frozen=True)
class Bar:
    """A stage as one of the bars of a terminal."""

    bars: "Progress"
    task: "TaskID"
    what: str

    def __call__(self, done: int, total: int) -> None:
        self.bars.update(self.task, completed=done, total=total, visible=True)

    def note(self, text: str) -> None:
        """Show this beside the name of the stage."""
        self.bars.update(self.task, description=f"{self.what} ({clean(text)})")


@contextmanager
def progress(what: str) -> Iterator[Stage]:
    """A bar on the error stream that goes away when done; call it with (done, total)."""
    with stages(what) as (report,):
        yield report


@contextmanager
def stages(*names: str) -> Iterator[Sequence[Stage]]:
    """A bar like that for each stage of some work; each shows from its first call on.

    Outside a terminal there are lines instead, if it takes long.
    """
    if not sys.stderr.isatty():
        # What a function of the user's prints is no result, and must not stand in its JSON.
        with redirect_stdout(sys.stderr):
            yield [Lines(name) for name in names]
        return
    from rich import progress as parts
    from rich.console import Console
    from rich.text import Text

    class _Rate(parts.ProgressColumn):
        """How many are done per second, of late."""

        def render(self, task: parts.Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g}/s")

    with parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.MofNCompleteColumn(),
        _Rate(),
        parts.TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    ) as bars:
        yield [
            Bar(bars, bars.add_task(what, total=None, visible=not i), what)
            for i, what in enumerate(names)
        ]
