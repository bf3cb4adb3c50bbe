"""How the command line starts and how it ends."""

import os
import subprocess
import sys

import pytest

from countleak.cli import budget


def countleak(*words, **settings):
    return subprocess.run(
        [sys.executable, "-m", "countleak.cli", *words],
        text=True,
        stderr=subprocess.PIPE,
        **settings,
    )


def failing(error):
    def fail(*_):
        raise error

    return fail


BUDGET = ("budget", "--n", 100, "-m", 300, "--sigma", 4, "--json")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("by zero"), 70, "please report it: ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), 130, "stopped; what was written so far is kept"),
        (PermissionError(13, "Permission denied", "secret"), 2, "secret: Permission denied"),
        (OSError(28, "No space left on device"), 2, "countleak: No space left on device"),
        (MemoryError(), 2, "not enough memory"),
        (EOFError(), 2, "the input ended"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_goes_wrong_is_one_line_and_a_code(run, monkeypatch, error, code, said):
    monkeypatch.setattr(budget, "advise", failing(error))
    result = run(*BUDGET)
    assert result.code == code
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert said in result.err


def test_the_traceback_is_shown_on_demand(run, monkeypatch):
    monkeypatch.setattr(budget, "advise", failing(ZeroDivisionError()))
    assert "COUNTLEAK_DEBUG=1" in run(*BUDGET).err
    monkeypatch.setenv("COUNTLEAK_DEBUG", "1")
    assert "Traceback" in run(*BUDGET).err


def test_a_closed_pipe_ends_quietly(run, monkeypatch):
    monkeypatch.setattr(budget, "advise", failing(BrokenPipeError()))
    assert run(*BUDGET) == type(run("--version"))(141, "", "")


def test_nobody_reads_on():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nowhere:
        result = countleak("lab", stdout=nowhere)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("words", [("--version",), tuple(map(str, BUDGET))], ids=str)
def test_a_full_disk_behind_the_output_is_one_line(words):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        result = countleak(*words, stdout=full)
    assert (result.returncode, result.stderr) == (2, "countleak: No space left on device\n")


def test_help_and_version(run):
    assert run("--version").out.startswith("countleak 0")
    for words in ((), ("lab",), ("lab", "bench")):
        assert run(*words).code == 0
        assert run(*words).out == run(*words, "--help").out
    assert "Did you mean 'budget'?" in run("bugdet").err


def test_help_loads_neither_verbs_nor_anything_heavy():
    program = (
        "import sys; sys.argv = ['countleak', '--help']\n"
        "from countleak.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'rich', 'scipy', 'pydantic', 'countleak.attack', 'countleak.lab',\n"
        "         'countleak.cli.budget', 'countleak.cli.lab'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"
