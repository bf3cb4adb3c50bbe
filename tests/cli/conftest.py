"""A fixture that runs the command line in this process, as the console script would."""

import contextlib
import io
import json
import logging
import math
import sys
from dataclasses import dataclass

import pytest

from countleak.cli import console, main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    # A slow machine would say how far it has come.
    monkeypatch.setattr(console, "EVERY", math.inf)

    def run(*words: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["countleak", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return Result(stopped.value.code, captured.out, captured.err)

    yield run
    # What the command line logs to is this test's own error stream, closed when it ends.
    logging.getLogger("countleak").handlers.clear()


def run_once(folder, *words):
    """Run the command line in a folder, where a fixture outlives a test; it must succeed."""
    argv, sys.argv = sys.argv, ["countleak", *map(str, words)]
    said = io.StringIO()
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(said):
            main()
    except SystemExit as stopped:
        assert not stopped.code, said.getvalue()
    finally:
        sys.argv = argv
        logging.getLogger("countleak").handlers.clear()


def contents(folder):
    """What stands in a folder: the bytes of every file, and the names of folders."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module", autouse=True)
def brief_decoders(briefly):
    """No test here is about how well a decoder does."""
