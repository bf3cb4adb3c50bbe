"""The page in a browser, from disk, with the network off."""

import pytest

from countleak.audit.report.comparison import compare
from countleak.audit.report.report import read_report
from countleak.audit.report.to_html import comparison_to_html, to_html

AUDITS = ("leaking", "hopeless", "unknown", "valued", "numbers")
PLOTS = """[...document.querySelectorAll('svg.plot')].every(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].every(text => {
    const at = text.getBoundingClientRect();
    return at.left >= box.left - 1 && at.right <= box.right + 1
      && at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
  });
})"""


# Ticks that run into one another, across one picture.
RUN_TOGETHER = """[...document.querySelectorAll('svg.plot')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].map(text => [text.getBoundingClientRect(), text]);
  return texts.flatMap(([a, text], i) => texts.slice(i + 1).filter(([b]) =>
    a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom
  ).map(([, other]) => text.textContent + ' | ' + other.textContent));
})"""


@pytest.fixture(scope="module")
def pages(request, tmp_path_factory):
    """Where the page of every audit is, and that of two compared."""
    folder = tmp_path_factory.mktemp("pages")
    reports = {
        name: read_report(request.getfixturevalue(name).folder, show_ids=name == "valued")
        for name in AUDITS
    }
    texts = {name: to_html(report) for name, report in reports.items()}
    two = reports["leaking"], reports["valued"]
    texts["compared"] = comparison_to_html(compare(*two), *two)
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (390, True),
        (1440, False),
        pytest.param(390, False, marks=pytest.mark.slow),
        pytest.param(1440, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", [*AUDITS, "compared"])
def test_it_fits_can_be_read_by_everyone_and_asks_for_nothing(browser, pages, name, width, dark):
    with browser.visit(pages[name], width=width, dark=dark, offline=True) as visit:
        assert visit.overflow == 0
        assert visit.page.evaluate(PLOTS), "a text of a picture hangs over its edge"
        assert visit.page.evaluate(RUN_TOGETHER) == []
        assert visit.grave_violations() == []
        assert visit.requests == [pages[name]]


def test_a_telephone_says_which_value_was_before_and_which_is_after(browser, pages):
    label = "getComputedStyle(document.querySelector('td[data-is={}]'), '::before').content"
    with browser.visit(pages["compared"], width=390, offline=True) as visit:
        assert visit.page.evaluate(label.format("before")) == '"before: "'
        assert visit.page.evaluate(label.format("after")) == '"after: "'


@pytest.mark.parametrize("name", ["leaking", "valued", "compared"])
def test_nothing_is_cut_off_at_four_times_the_size(browser, pages, name):
    # A window 1280 pixels wide, zoomed to 400% (WCAG 2.2, 1.4.10).
    with browser.visit(pages[name], width=320, offline=True) as visit:
        assert visit.overflow == 0


def test_the_large_one_opens_and_shows_its_verdict(browser, crowd):
    page = crowd / "crowd.html"
    page.write_text(to_html(read_report(crowd, show_ids=True)), encoding="utf-8")
    with browser.visit(page.as_uri(), offline=True) as visit:
        assert visit.page.locator("h1").is_visible()
        assert visit.page.locator("tbody tr").count() > 100


def test_what_others_wrote_does_not_run(browser, pages):
    with browser.visit(pages["valued"], offline=True) as visit:
        assert "<script>alert('x')</script>" in visit.page.locator("main").inner_text()
        assert visit.page.locator("script").count() == 0


def test_the_keyboard_reaches_the_verdict(browser, pages):
    with browser.visit(pages["leaking"], offline=True) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
        assert visit.page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_it_can_be_printed(browser, pages):
    with browser.visit(pages["leaking"], dark=True, offline=True) as visit:
        visit.page.emulate_media(media="print")
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        assert visit.page.pdf(format="A4").startswith(b"%PDF")
