"""The command line: words to objects, nothing else."""

import logging
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer
from typer.exceptions import TyperException

import countleak
from countleak.errors import CountleakError

# The verbs in the order of their use, each with its module: only the one wanted is loaded.
VERBS = {
    "demo": "demo",
    "audit": "audit",
    "plan": "stages",
    "ask": "ask",
    "diagnose": "diagnose",
    "solve": "solve",
    "categories": "kinds",
    "sums": "kinds",
    "score": "stages",
    "budget": "budget",
    "reproduce": "reproduce",
    "sweep": "sweep",
    "serve": "serve",
    "bench": "bench",
}
# What typer makes of Ctrl-C.
INTERRUPTED = 130


def build(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The command line with those verbs."""
    app = typer.Typer(
        name="countleak",
        help="Ask a system many counts, solve for the data behind the answers, and see whose "
        "secret they give away. An audit tool for your own systems.",
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(options)
    for verb in verbs:
        found = getattr(import_module(f"countleak.cli.{VERBS[verb]}"), verb)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=verb)
        else:
            app.command()(found)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"countleak {countleak.__version__}\n")
        raise typer.Exit


def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask a system many counts, and see whose secret the answers give away."""
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2."""
    _log_to_stderr()
    wanted = [word for word in sys.argv[1:2] if word in VERBS]
    try:
        code = build(wanted or VERBS)(standalone_mode=False)
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
