"""Every block of Python and every console block of the README and of the pages below runs.

In a console block a line that begins with ``$`` is a command, and the lines below it are what it
prints on either stream. A ``text`` block right after a Python block is what that prints. ``...``
stands for any text, several lines included; everything else must match, trailing blanks aside. The
blocks of a page run in order, in one temporary folder and one Python namespace.
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

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "countleak"
SLOW = pytest.mark.slow
PAGES = (
    "README.md",
    pytest.param("docs/adaptive.md", marks=SLOW),
    "docs/budget.md",
    "docs/commands.md",
    "docs/decoders.md",
    "docs/diffix.md",
    "docs/protocol.md",
    "docs/report.md",
    "docs/secrets.md",
)
# Pages with a server on these ports, which are replaced by free ones.
SERVED = (pytest.param("docs/live.md", marks=SLOW), "docs/server.md", "docs/lab.md")
PORTS = ("5433", "8033", "8050")
WITH_RECORDED = (
    "README.md",
    pytest.param("docs/decoders.md", marks=SLOW),
    pytest.param("docs/paper.md", marks=SLOW),
)
# Where a page expects the authors' recorded answers.
RECORDED = "Linear-Program-Reconstruction/data"
# A command of the README that installs first, and what it then runs; None: too long to run here.
MADE = {"make demo": "countleak demo", "make test": None}
# A command that fails shows why, so that dots cannot hide it.
FAILURES = ("countleak: ", "ERROR: ", "FAILED: ")
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

    def __init__(self, folder: Path, psql: Path | None = None):
        places = [str(Path(sys.executable).parent), *([str(psql.parent)] if psql else [])]
        self.folder, self.code = folder, 0
        self.environment = {
            **os.environ,
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


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_as_shown(page, tmp_path, monkeypatch):
    assert run_page(page, (ROOT / page).read_text(), Terminal(tmp_path), monkeypatch)


@pytest.mark.parametrize("page", SERVED)
def test_the_blocks_of_a_page_with_a_server_run_as_shown(page, tmp_path, monkeypatch, psql):
    text = (ROOT / page).read_text()
    with ExitStack() as stack:
        for port in PORTS:
            free = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            text = text.replace(port, str(free.getsockname()[1]))
    terminal = Terminal(tmp_path, psql)
    try:
        assert run_page(page, text, terminal, monkeypatch)
    finally:
        terminal.close()


@pytest.mark.parametrize("page", WITH_RECORDED)
def test_what_is_shown_of_recorded_answers_is_so(page, tmp_path, shared):
    place = tmp_path / RECORDED
    place.parent.mkdir()
    place.symlink_to(shared / "data" / "cohen-nissim")
    terminal = Terminal(tmp_path)
    recorded = [
        block
        for block in blocks((ROOT / page).read_text())
        if block.language == "console" and RECORDED in block.text
    ]
    assert recorded
    for block in recorded:
        run_commands(f"{page}, line {block.line}", block, terminal)


@pytest.mark.parametrize("command", MADE)
def test_the_makefile_has_what_the_readme_runs(command):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert command.removeprefix("make ") in targets


def test_dots_stand_for_any_text_and_nothing_else_does():
    assert agrees("1 of ... in ... s", "1 of 2\nand 3 in 0.5 s\n")
    assert agrees("a  \n", "a\n")
    assert not agrees("a", "a\nb")
    assert not agrees("1.5 s", "135 s")


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_file_of_the_source_that_a_page_names_is_there(page):
    text = (ROOT / ("" if page == "README.md" else "docs") / page).read_text()
    for name in re.findall(r"`((?:attack|audit|diffix|lab|lab_page|cli)/[\w/]+\.py)`", text):
        assert (SOURCE / name).is_file(), name
    for name in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name
