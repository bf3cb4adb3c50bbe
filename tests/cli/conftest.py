"""A fixture that runs the command line in this process, as the console script would."""

import json
import logging
import sys
from dataclasses import dataclass

import pytest

from countleak.cli import main


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

    def run(*words: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["countleak", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return Result(stopped.value.code, captured.out, captured.err)

    yield run
    # What the command line logs to is this test's own error stream, closed when it ends.
    logging.getLogger("countleak").handlers.clear()
