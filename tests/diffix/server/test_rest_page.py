"""The page that describes the REST interface, in a browser."""

import pytest

from tests.diffix.server.conftest import make_server, running, served_bank


@pytest.fixture(scope="module")
def own_server(bank):
    with running(make_server([served_bank(bank)])) as found:
        yield found


@pytest.mark.parametrize("width", [390, 1440])
def test_it_opens_without_a_complaint_and_fits(browser, own_server, width):
    with browser.visit(own_server.rest, width=width) as visit:
        assert visit.page.url == f"{own_server.rest}/docs"
        assert visit.page.locator("h2").count() == 5
        assert visit.page.locator("h2", has_text="POST /api/queries").count() == 2
        assert visit.overflow == 0
        assert visit.grave_violations() == []
        visit.page.click("text=openapi.json")
        assert visit.page.url == f"{own_server.rest}/openapi.json"
