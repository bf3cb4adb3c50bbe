"""Runs the blocks of a page as a reader would, and compares what they print with what is shown.

In a console block a line that begins with ``$`` is a command, and the lines below it are what it
prints on either stream. A ``text`` block right after a Python block is what that prints. ``...``
stands for any text, several lines included; everything else must match, trailing blanks aside. The
blocks of a page run in order, in one temporary folder and one Python namespace. The commands of a
``yaml`` block, which a build would run, must end with 0; those that install are left out.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

# Where a page expects the authors' recorded answers.
RECORDED = "Linear-Program-Reconstruction/data"
# A command of the README that installs first, and what it then runs; None: too long to run here.
MADE = {"make demo": "countleak demo", "make test": None}
# A command that fails shows why, so that dots cannot hide it.
FAILURES = ("countleak: ", "ERROR: ", "FAILED: ")
# What a build installs, the tests have.
INSTALLS = "pip install "
# Servers that pages start listen on these; tests replace them by free ones.
PORTS = ("5433", "8033", "8050", "8786")
# Said once per machine, when nothing is compiled yet.
COMPILING = "countleak: compiling"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line it begins on."""

    language: str
    text: str
    line: int
    follows: bool  # right after the block before it

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console block, with what it prints."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            end = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
            command = re.sub(r"\s+# .*", "", "\n".join(lines[:end]))
            yield command, "\n".join(lines[end:])


def blocks(text: str) -> list[Block]:
    found, before = [], 0
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        follows = bool(found) and not text[before : match.start()].strip()
        line = text[: match.start()].count("\n") + 1
        found.append(Block(match[1], match[2], line, follows))
        before = match.end()
    return found


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = ".*".join(map(re.escape, "\n".join(lines).split("...")))
    kept = [line.rstrip() for line in printed.splitlines() if not line.startswith(COMPILING)]
    return re.fullmatch(pattern, "\n".join(kept).strip("\n"), re.DOTALL) is not None


class Terminal:
    """Where the commands of a page run, one after the other."""

    def __init__(self, folder: Path, psql: Path | None = None, **variables: str):
        places = [str(Path(sys.executable).parent), *([str(psql.parent)] if psql else [])]
        self.folder, self.code = folder, 0
        self.environment = {
            **os.environ,
            **variables,
            "PATH": os.pathsep.join([*places, os.environ["PATH"]]),
            "PYTHONUNBUFFERED": "1",
        }
        self.servers: list[subprocess.Popen[str]] = []

    def run(self, command: str) -> str:
        """What a command prints; `$?` is the exit code of the one before it."""
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {command}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        self.code = done.returncode
        # A slow machine says how far it has come.
        return re.sub(r"^[\w ,-]+: \d+ of \d+ after .*\n", "", done.stdout, flags=re.MULTILINE)

    def start(self, command: str, lines: int) -> str:
        """The first lines of a command that stays in the background."""
        server = subprocess.Popen(
            shlex.split(command),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.servers.append(server)
        assert server.stdout is not None
        return "".join(server.stdout.readline() for _ in range(lines))

    def close(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=30)


def run_page(name: str, text: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run every block of a page that needs no recorded answers; how many there were."""
    monkeypatch.chdir(terminal.folder)
    namespace: dict[str, object] = {}
    printed, count = "", 0
    for block in blocks(text):
        where = f"{name}, line {block.line}"
        if block.language == "python":
            output = StringIO()
            with redirect_stdout(output):
                exec(compile(block.text, where, "exec"), namespace)
            printed = output.getvalue()
        elif block.language == "text" and block.follows:
            assert agrees(block.text, printed), f"{where} is not what was printed:\n{printed}"
        elif block.language == "console" and RECORDED not in block.text:
            run_commands(where, block, terminal)
        elif block.language == "yaml":
            run_steps(where, block, terminal)
        else:
            continue
        count += 1
    return count


def run_commands(where: str, block: Block, terminal: Terminal) -> None:
    assert block.text.startswith("$ "), f"{where}: a console block begins with a command"
    for command, shown in block.commands:
        meant = MADE.get(command, command)
        if meant is None:
            continue
        if meant.endswith("&"):
            printed = terminal.start(meant.rstrip("& "), len(shown.splitlines()))
        else:
            printed = terminal.run(meant)
        assert agrees(shown, printed), f"{where}: `{command}` printed\n{printed}"
        fails = any(word in shown for word in FAILURES)
        assert bool(terminal.code) == fails, f"{where}: `{command}` ended with {terminal.code}"


def run_steps(where: str, block: Block, terminal: Terminal) -> None:
    steps = [step for step in steps_of(yaml.safe_load(block.text)) if INSTALLS not in step]
    assert steps, f"{where}: a build runs something"
    for step in steps:
        printed = terminal.run(step)
        assert terminal.code == 0, f"{where}: `{step}` ended with {terminal.code}:\n{printed}"


def steps_of(build: Any) -> Iterator[str]:
    """The commands of a build, as GitHub (``run``) and GitLab (``script``) write them."""
    if isinstance(build, list):
        for part in build:
            yield from steps_of(part)
    elif isinstance(build, dict):
        for key, part in build.items():
            if key in ("run", "script"):
                yield from [part] if isinstance(part, str) else part
            else:
                yield from steps_of(part)


def with_free_ports(text: str) -> str:
    """A page whose servers listen on ports that are free here."""
    with ExitStack() as stack:
        for port in PORTS:
            free = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            text = text.replace(port, str(free.getsockname()[1]))
    return text
