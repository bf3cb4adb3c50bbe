"""The command line: words to objects, nothing else."""

import logging
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

import countleak
from countleak.cli import (
    ask,
    audit,
    bench,
    bench_decoders,
    budget,
    console,
    demo,
    diagnose,
    kinds,
    reproduce,
    serve,
    solve,
    stages,
    sweep,
)
from countleak.errors import CountleakError

# What typer makes of Ctrl-C.
INTERRUPTED = 130


def _version(wanted: bool) -> None:
    if wanted:
        console.say(f"countleak {countleak.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="countleak",
    help="Ask a system many counts, solve for the data behind the answers, and see whose secret "
    "they give away. An audit tool for your own systems.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask a system many counts, and see whose secret the answers give away."""
    if context.invoked_subcommand is None:
        console.say(context.get_help())


app.command()(demo.demo)
app.command()(audit.audit)
app.command()(stages.plan)
app.command()(ask.ask)
app.command()(diagnose.diagnose)
app.command()(solve.solve)
app.command()(kinds.categories)
app.command()(kinds.sums)
app.command()(stages.score)
app.command()(budget.budget)
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)
app.command()(serve.serve)
bench.bench.command()(bench_decoders.decoders)
app.add_typer(bench.bench, name="bench")


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2."""
    _log_to_stderr()
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        _refuse(f"{_message(error)} (try --help)")
    except CountleakError as error:
        _refuse(str(error))
    except (OSError, OverflowError, MemoryError) as error:
        _refuse(f"{type(error).__name__}: {error}")
    if code == INTERRUPTED:
        sys.stderr.write("countleak: stopped; what was written so far is kept\n")
    sys.exit(code if isinstance(code, int) else 0)


def _log_to_stderr() -> None:
    """Show what countleak itself logs; its libraries keep theirs."""
    log = logging.getLogger("countleak")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("countleak: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    # sqlglot tells of SQL it does not know; the refusal says so already, in one line.
    logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def _message(error: TyperException) -> str:
    describe = getattr(error, "format_message", None)
    return str(describe() if describe else error).rstrip(".")


def _refuse(what: str) -> None:
    sys.stderr.write(f"countleak: {' '.join(what.split())}\n")
    sys.exit(2)
