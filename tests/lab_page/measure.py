"""By hand, on an idle machine: python -m tests.lab_page.measure

How soon the lab is painted, how long an attack takes in the page, and 20 visitors at once.
"""

import sys
from time import perf_counter

from tests.browser import chromium
from tests.lab_page.conftest import running_lab

# The browser notes it a moment after the page is loaded.
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
PATIENCE = 600_000
VISITORS = 20


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def attacked(page, url, noise="rounded"):
    """Seconds from the click to the end of 2500 questions about 100 people."""
    page.goto(f"{url}/attack")
    page.select_option("#noise", noise)
    begin = perf_counter()
    page.click("text=Start")
    page.locator("text=/Done: /").first.wait_for(timeout=PATIENCE)
    return perf_counter() - begin


def main():
    with running_lab() as lab, chromium() as visitor:
        with visitor.visit(lab.url) as visit:
            while (paint := visit.page.evaluate(PAINT)) is None:
                visit.page.wait_for_timeout(10)
            say(f"first paint: {paint:.0f} ms")
            # Whatever is compiled is compiled by the first of all.
            attacked(visit.page, lab.url)
            for noise in ("rounded", "18.1"):
                seconds = attacked(visit.page, lab.url, noise)
                say(f"100 people, 2500 questions, {noise}: {seconds:.1f} s")
        contexts = [visitor.browser.new_context() for _ in range(VISITORS)]
        pages = [context.new_page() for context in contexts]
        begin = perf_counter()
        for page in pages:
            page.goto(f"{lab.url}/attack")
            page.click("text=Start")
        for page in pages:
            page.locator("text=/Done: /").first.wait_for(timeout=PATIENCE)
        say(f"{VISITORS} visitors at once: all done in {perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
