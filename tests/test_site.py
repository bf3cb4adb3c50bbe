"""The documentation builds without a warning, and its pages ask nothing of any other machine."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import countleak
from countleak.cli import build

# Building the site takes longer than any other test.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
LOOKED_AT = ("", "tutorial/", "reference/options/", "reference/python/", "recipes/tables/", "law/")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    """The address of a folder, on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def address(site):
    with served(site) as found:
        yield found


def test_every_page_is_built(site):
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        built = site / "index.html" if place.name == "index" else site / place / "index.html"
        assert built.is_file()


def verbs(group, prefix="countleak"):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def test_every_verb_and_every_option_is_in_the_reference(site):
    page = (site / "reference" / "options" / "index.html").read_text()
    sections = dict(
        re.findall(r"<h2 id=\"[^\"]*\">(countleak [^<]*)<(.*?)(?=<h2|</article)", page, re.S)
    )
    for name, command in verbs(build()):
        for option in command.params:
            for word in option.opts if option.param_type_name == "option" else ():
                assert word in sections[name], f"{name} {word}"


def test_every_name_of_the_package_is_in_the_reference(site):
    page = (site / "reference" / "python" / "index.html").read_text()
    for name in countleak.__all__:
        member = getattr(countleak, name)
        assert f'id="{member.__module__}.{name}"' in page


@pytest.mark.parametrize("path", LOOKED_AT)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_asks_nothing_elsewhere_fits_a_phone_and_can_be_read(browser, address, path, dark):
    with browser.visit(address + path, width=390, dark=dark) as visit:
        visit.page.wait_for_load_state("networkidle")
        assert visit.page.locator("h1").first.is_visible()
        assert visit.overflow == 0
        # The theme's script wraps wide tables; browsers themselves let the keyboard scroll those.
        found = visit.grave_violations()
        assert [each for each in found if not each.startswith("scrollable-region")] == []


def test_the_search_finds_a_word_without_the_network(browser, address):
    with browser.visit(address) as visit:
        visit.page.locator("input.md-search__input").fill("calibration")
        visit.page.locator("a.md-search-result__link").first.wait_for()
