"""Every verb has help and a docs page; every page is linked; no link is broken."""

import re
from pathlib import Path

import pytest

from countleak.cli import build
from countleak.lab.reproduction import CATALOGUE

ROOT = Path(__file__).parent.parent
MOST_IN_A_PART = 12
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def verbs(group, prefix=""):
    """Every verb by what is typed, `lab reproduce` among them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def groups(group):
    yield group
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from groups(command)


VERBS = dict(verbs(build()))
LINES = {
    f"{group.name} {name}": (line, group.commands[name])
    for group in groups(build())
    for name, (_, line) in group.table.items()
}


@pytest.mark.parametrize("verb", LINES)
def test_the_list_of_verbs_says_what_each_says_of_itself(verb):
    line, command = LINES[verb]
    assert command.help.splitlines()[0] == line


@pytest.mark.parametrize("group", [*groups(build())], ids=lambda group: group.name)
def test_every_verb_is_listed_once_and_its_line_is_not_cut(group):
    assert sorted(name for names in group.listed.values() for name in names) == sorted(group.table)
    context = group.make_context(group.name, [], resilient_parsing=True, terminal_width=80)
    shown = " ".join(group.get_help(context).split())
    for name, (_, line) in group.table.items():
        assert f"{name} {line}" in shown


@pytest.mark.parametrize("verb", VERBS)
def test_no_help_is_cut_at_80_columns_and_long_lists_are_in_parts(verb):
    command = VERBS[verb]
    context = command.make_context(verb, [], resilient_parsing=True, terminal_width=80)
    lines = command.get_help(context).splitlines()
    assert max(map(len, lines)) <= 80
    shown = " ".join(" ".join(lines).split())
    for option in command.params:
        assert " ".join((option.help or "").split()) in shown
    assert max(parts(lines).values()) <= MOST_IN_A_PART


def parts(lines):
    """How many options each part of a help text lists."""
    counts = {}
    for line in lines:
        if line and not line.startswith(" "):
            part = line
        counts[part] = counts.get(part, 0) + line.startswith("  -")
    return counts


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_has_help_and_a_section_in_the_docs(verb):
    command = VERBS[verb]
    assert command.help
    for option in command.params:
        if option.name != "help":
            assert option.help, f"{verb} {option.name}"
    assert f"## countleak {verb}" in (ROOT / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_experiment_is_told_in_the_docs(name):
    assert f"reproduce {name}" in (ROOT / "docs" / "paper.md").read_text()


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_start_page_links_every_other_and_the_readme_links_it():
    start = DOCS / "index.md"
    linked = {
        (DOCS / target).resolve() for target in re.findall(r"\]\(([^)#:]+)", start.read_text())
    }
    assert set(PAGES) - {start} <= linked
    assert "(docs/index.md)" in (ROOT / "README.md").read_text()
