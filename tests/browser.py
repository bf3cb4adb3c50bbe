"""The system's Chromium, opened from tests: what a page shows, asks for and complains about."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing of the browser's own reaches the network, and no name but this machine's is found.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)  # fmt: skip
HERE = ("localhost", "127.0.0.1", "::1")
# What makes a page useless to some people, by axe's own words.
GRAVE = ("serious", "critical")


@dataclass
class Visit:
    """A page, every address that was asked for on its behalf, and what it complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def elsewhere(self) -> list[str]:
        """The addresses that are not on this machine."""
        return [url for url in self.requests if not _is_here(url)]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        script = "document.documentElement.scrollWidth - window.innerWidth"
        return max(int(self.page.evaluate(script)), 0)

    def grave_violations(self) -> list[str]:
        """What axe finds that is serious or critical, with the first place of each."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}, at {each['nodes'][0]['target']}"
            for each in found
            if each["impact"] in GRAVE
        ]


@dataclass(frozen=True)
class Visitor:
    """Opens pages; each has a window of its own, which forgets everything when it is closed."""

    browser: Browser

    @contextmanager
    def visit(
        self, url: str, *, width: int = 1440, dark: bool = False, offline: bool = False
    ) -> Iterator[Visit]:
        """A page in a window ``width`` pixels wide; afterwards no request may have left here.

        Nor may the page have thrown, or written an error to its console.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        context.set_offline(offline)
        visit = Visit(context.new_page())
        # Of the whole context, so that windows that a page opens are heard too.
        context.on("request", lambda request: visit.requests.append(request.url))
        context.on("console", lambda message: _hear(visit, message))
        context.on("weberror", lambda error: visit.complaints.append(str(error.error)))
        try:
            visit.page.goto(url)
            yield visit
        finally:
            context.close()
        assert not visit.elsewhere, f"asked for {visit.elsewhere}"
        assert not visit.complaints, f"complained: {visit.complaints}"


def _hear(visit: Visit, message: Any) -> None:
    if message.type == "error":
        visit.complaints.append(message.text)


def _is_here(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.hostname in HERE


@contextmanager
def chromium() -> Iterator[Visitor]:
    """The system's Chromium; without one tests skip, or fail where CI is set."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        why = "no Chromium here; install Debian's package chromium to try pages in a browser"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield Visitor(browser)
        browser.close()
