"""Every block of Python and every console block of the README and of the pages below runs."""

import re
from pathlib import Path

import pytest

from tests.pages import (
    MADE,
    RECORDED,
    Terminal,
    agrees,
    blocks,
    run_commands,
    run_page,
    with_free_ports,
)

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
    "docs/log.md",
    "docs/protocol.md",
    "docs/report.md",
    "docs/scale.md",
    "docs/secrets.md",
    "docs/tables.md",
)
# Pages that start a server.
SERVED = (pytest.param("docs/live.md", marks=SLOW), "docs/server.md", "docs/lab.md")
WITH_RECORDED = (
    pytest.param("docs/decoders.md", marks=SLOW),
    pytest.param("docs/paper.md", marks=SLOW),
)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_as_shown(page, tmp_path, monkeypatch):
    assert run_page(page, (ROOT / page).read_text(), Terminal(tmp_path), monkeypatch)


@pytest.mark.parametrize("page", SERVED)
def test_the_blocks_of_a_page_with_a_server_run_as_shown(page, tmp_path, monkeypatch, psql):
    text = with_free_ports((ROOT / page).read_text())
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
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_file_of_the_source_that_a_page_names_is_there(page):
    text = page.read_text()
    for name in re.findall(r"`((?:attack|audit|diffix|lab|lab_page|cli)/[\w/]+\.py)`", text):
        assert (SOURCE / name).is_file(), name
    for name in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name
