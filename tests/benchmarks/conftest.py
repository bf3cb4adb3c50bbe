"""A fixture that runs a benchmark in this process, as `python -m benchmarks.NAME` would."""

import logging
import math
import sys

import pytest

from benchmarks.start import main
from countleak.cli import console
from tests.cli.conftest import Result


@pytest.fixture
def bench(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    # A slow machine would say how far it has come.
    monkeypatch.setattr(console, "EVERY", math.inf)

    def bench(name: str, *words: object) -> Result:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main(name)
        captured = capsys.readouterr()
        return Result(stopped.value.code, captured.out, captured.err)

    yield bench
    # What the command line logs to is this test's own error stream, closed when it ends.
    logging.getLogger("countleak").handlers.clear()
