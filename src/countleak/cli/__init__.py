"""The command line: words to objects, nothing else.

It ends with 0 when it is done, 1 when an audit found that too much leaks and for nothing else, 2
for bad input or no result, 70 for a fault of its own, 130 on Ctrl-C, and 141 when whoever reads its
output stops reading.
"""

import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated

import typer
from typer.exceptions import TyperException

import countleak
from countleak.cli.verbs import Group, Verb, make_group, show_help
from countleak.errors import CountleakError
from countleak.foreign import clean, clean_lines

LEAKS, BAD_INPUT, FAULT, INTERRUPTED, CLOSED_PIPE = 1, 2, 70, 130, 141
DEBUG = "COUNTLEAK_DEBUG"

# The verbs in the order of their use.
VERBS = {
    "demo": (
        "countleak.cli.demo",
        "Serve a generated bank through Diffix 18.1, ask it over the wire, and rebuild its loans.",
    ),
    "audit": (
        "countleak.cli.audit",
        "Plan, ask, solve and score in one go; exit code 1 when more leaks than is allowed.",
    ),
    "probe": (
        "countleak.cli.probe",
        "Find out by asking which questions a system answers, and what it does to a count.",
    ),
    "plan": (
        "countleak.cli.plan",
        "Choose the questions: whom each counts, and how it is asked in SQL.",
    ),
    "ask": (
        "countleak.cli.ask",
        "Put the questions to a system and keep its answers as they come; or one of your own.",
    ),
    "diagnose": (
        "countleak.cli.diagnose",
        "Say what noise a system adds, from its answers alone, without the truth.",
    ),
    "solve": (
        "countleak.cli.solve",
        "Solve for the secrets behind the answers, with a certificate or a probability each.",
    ),
    "score": (
        "countleak.cli.score",
        "Compare a guess with the truth: accuracy, interval, baseline, advantage, calibration.",
    ),
    "report": (
        "countleak.cli.report",
        "Write what an audit found as a page, and as JSON, SARIF and JUnit for a build.",
    ),
    "compare": (
        "countleak.cli.compare",
        "Say what changed between two audits, and whether by more than chance.",
    ),
    "budget": (
        "countleak.cli.budget",
        "Say what so many answers give away, next to guessing, and what would have kept it.",
    ),
    "tables": (
        "countleak.cli.tables",
        "Solve published tables together: which small groups and hidden counts they pin, and why.",
    ),
    "log": (
        "countleak.cli.log",
        "Say what logged counts pin together, query by query, on your own data.",
    ),
    "serve": (
        "countleak.cli.serve",
        "Serve Diffix over a database to psql, drivers and HTTP clients.",
    ),
    "lab": (
        "countleak.cli.lab",
        "Reproduce the paper, and draw maps of your own.",
    ),
}
# What they are for; `test_docs` holds every verb to be listed once.
LISTED = {
    "Audit": ("demo", "audit", "tables", "log", "report", "compare"),
    "Step by step": ("probe", "plan", "ask", "diagnose", "solve", "score"),
    "Know the limits": ("budget",),
    "Serve": ("serve",),
    "Research": ("lab",),
}


@cache
def build() -> Group:
    """The command line, made once."""
    about = (
        "Ask a system many counts, solve for the data behind the answers, and see whose "
        "secret they give away. An audit tool for your own systems."
    )
    return make_group("countleak", about, VERBS, start, LISTED)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"countleak {countleak.__version__}")
        raise typer.Exit


def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask a system many counts, and see whose secret the answers give away."""
    show_help(context)


def main(make: Callable[[], Group | Verb] = build, name: str = "countleak") -> None:
    """Run a command line called ``name``; whatever goes wrong ends in one line and an exit code."""
    _log_to_stderr()
    for stream in (sys.stdout, sys.stderr):
        # A name that is no text in the terminal's encoding is still to be shown.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = _run(make, name, sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or CLOSED_PIPE
        _discard_output()
    except OSError as error:
        _discard_output()
        code = code or _complain(_reason(error))
    sys.exit(code)


def _run(make: Callable[[], Group | Verb], name: str, words: Sequence[str]) -> int:
    """The exit code after those words."""
    try:
        command = make()
        with command.make_context(name, list(words)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        return _complain(_message(error))
    except CountleakError as error:
        return _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped; what was written so far is kept", INTERRUPTED)
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except (EOFError, MemoryError, OSError) as error:
        return _complain(_reason(error))
    except Exception as error:
        if os.environ.get(DEBUG):
            # Loaded here, for it takes longer than the rest of this module.
            import traceback

            traceback.print_exc()
        return _complain(
            f"a fault of countleak itself, please report it: {type(error).__name__}: {error} "
            f"(set {DEBUG}=1 to see where)",
            FAULT,
        )
    return 0


def _reason(error: EOFError | MemoryError | OSError) -> str:
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this; ask for less {error}"
    if isinstance(error, EOFError):
        return "the input ended where an answer was expected"
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error or type(error).__name__}"


class _Clean(logging.Formatter):
    """What others said may be part of what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        return clean_lines(super().format(record))


def _log_to_stderr() -> None:
    """Show what countleak itself logs; its libraries keep theirs."""
    log = logging.getLogger("countleak")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Clean("countleak: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    # sqlglot tells of SQL it does not know; the refusal says so already, in one line.
    logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def _message(error: TyperException) -> str:
    describe = getattr(error, "format_message", None)
    text = str(describe() if describe else error).rstrip(".")
    # What an option's own reading says needs no more words around it.
    _, is_ours, ours = text.partition(": Value error, ")
    return ours if is_ours else f"{text} (try --help)"


def _complain(what: str, code: int = BAD_INPUT) -> int:
    """Say in one line what is wrong."""
    sys.stderr.write(f"countleak: {clean(' '.join(what.split()))}\n")
    return code


def _discard_output() -> None:
    """Let what is still to be written go nowhere, so that Python does not try again at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
