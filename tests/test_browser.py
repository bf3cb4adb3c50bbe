"""The browser of the tests notices what it is there to notice."""

import pytest

PAGE = '<!doctype html><html lang="en"><title>A page</title><main><h1>Page</h1>{}</main></html>'


def written(folder, body):
    path = folder / "page.html"
    path.write_text(PAGE.format(body))
    return path.as_uri()


def test_a_page_opens_from_disk_with_the_network_off(browser, tmp_path):
    with browser.visit(written(tmp_path, ""), width=390, dark=True, offline=True) as visit:
        assert visit.page.title() == "A page"
        assert visit.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert visit.page.evaluate("window.innerWidth") == 390
        assert visit.overflow == 0
        assert visit.grave_violations() == []


def test_a_page_that_is_too_wide_or_cannot_be_read_is_noticed(browser, tmp_path):
    body = '<p style="width: 600px; color: #ddd; background: #fff">pale</p><img src="data:,x">'
    with browser.visit(written(tmp_path, body), width=390) as visit:
        assert visit.overflow > 200
        found = " ".join(visit.grave_violations())
        assert "color-contrast" in found
        assert "image-alt" in found


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("fetch('http://192.0.2.1/').catch(() => 0)", r"192\.0\.2\.1"),
        ("console.error('all is lost')", "all is lost"),
        ("setTimeout(() => { throw Error('thrown') })", "thrown"),
    ],
)
def test_a_page_that_asks_elsewhere_or_fails_is_noticed(browser, tmp_path, script, complaint):
    address = written(tmp_path, f"<script>{script}; setTimeout(() => {{ done = 1 }})</script>")
    with (
        pytest.raises(AssertionError, match=complaint),
        browser.visit(address, offline=True) as visit,
    ):
        visit.page.wait_for_function("window.done")
