"""The benchmarks by name, and the start that they share: `python -m benchmarks.NAME`."""

import re
from importlib import import_module

from countleak import cli
from countleak.cli.verbs import make_group, make_verb
from countleak.errors import InputError

BENCHMARKS = {
    "solvers": (
        "benchmarks.solvers",
        "Time the program from problem to certified solution, against all solvers.",
    ),
    "serve": (
        "benchmarks.serve",
        "Time digit queries through the server, in process, and on a plain PostgreSQL.",
    ),
    "scale": (
        "benchmarks.scale",
        "Measure time, memory and accuracy from a thousand people upwards, beside its peers.",
    ),
    "decoders": (
        "benchmarks.decoders",
        "Compare the decoders' accuracy, calibration and speed with each other and the limits.",
    ),
    "honesty": (
        "benchmarks.honesty.__main__",
        "Check that expectations, claims and proofs are true on systems nobody tuned for.",
    ),
    "budget": (
        "benchmarks.budget",
        "Compare the accuracy `countleak budget` predicts with simulated attacks.",
    ),
    "tables": (
        "benchmarks.tables.__main__",
        "Measure what published tables give away together, beside the tools that check them.",
    ),
    "query_log": (
        "benchmarks.query_log.__main__",
        "Time the leak meter on a long log, and count the trackers it catches and its false "
        "alarms.",
    ),
}
ABOUT = (
    "Measure countleak beside named peers. Each benchmark below is run from the root of a clone "
    "as `python -m benchmarks.NAME`; `--help` lists its options."
)


def main(name: str = "") -> None:
    """Run the command line of a benchmark, or list all; errors and exit codes are countleak's.

    The benchmark is imported under its own name: the processes that it starts find its functions
    there, and not in `__main__`.
    """
    if name:
        module, _ = BENCHMARKS[name]
        cli.main(
            lambda: make_verb(getattr(import_module(module), name), name),
            f"python -m benchmarks.{name}",
        )
    else:
        cli.main(lambda: make_group("benchmarks", ABOUT, BENCHMARKS), "python -m benchmarks")


def whole_from(text: str, flag: str) -> int:
    """The positive whole number that ``text`` writes."""
    if not re.fullmatch(r"\s*[0-9]{1,9}\s*", text) or int(text) < 1:
        raise InputError(f"{flag}: {text!r} is not a whole number above 0")
    return int(text)
