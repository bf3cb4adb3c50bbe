"""The lab as a visitor sees and uses it, in the system's Chromium."""

import re

import pytest

import countleak as cl
from countleak.lab_page.asking import EXAMPLES
from countleak.lab_page.settings import SECRET, people_of

SMALL = {"people": "30", "questions": "240", "size": "2", "seed": "5"}
# A machine that does much else takes its time.
PATIENCE = 120_000
WINDOWS = [
    (390, True),
    (1440, False),
    pytest.param(390, False, marks=pytest.mark.slow),
    pytest.param(1440, True, marks=pytest.mark.slow),
]


def fill(page, noise="gaussian", **more):
    page.select_option("#noise", noise)
    for name, value in {**SMALL, **more}.items():
        page.fill(f"#{name}", value)


def wait(page, text):
    page.locator(f"text=/{text}/").first.wait_for(timeout=PATIENCE)


def test_an_attack_runs_to_its_end_from_clicks_and_ends_as_the_library_ends_it(browser, lab):
    people = people_of(30)
    target = cl.Simulated(people, SECRET, cl.Gaussian(2.0), 5)
    asking = cl.Asking(seed=5)
    expected = cl.audit(people, secret=SECRET, target=target, queries=240, asking=asking)
    with browser.visit(f"{lab.url}/attack") as visit:
        page = visit.page
        fill(page)
        page.click("text=Start")
        wait(page, "Done: ")
        assert re.search(r"/attacks/[\w-]{20,}$", page.url)
        shown = page.locator(".grid[role=img] circle")
        assert shown.count() == 30
        kinds = [circle.get_attribute("class").split()[0] for circle in shown.all()]
        assert [kind == "one" for kind in kinds] == (expected.guess.values == 1).tolist()
        assert all(kind in ("one", "zero") for kind in kinds)
        assert page.locator(".verdict p").all_text_contents() == str(expected).splitlines()
        right = f"{expected.score.right} of 30 right"
        axes = page.locator(".curve text").all_text_contents()
        assert axes[:2] == ["people right", "30"]
        assert axes[3:] == ["0", "240 answers"]
        assert page.locator("#right").text_content() == right
        assert page.locator(".cross").count() == expected.score.wrong + 1
        page.click("text=Everyone, in a table")
        assert page.locator(".everyone tbody tr").count() == 30
        with page.expect_download() as download:
            page.click("text=the result as JSON")
        assert download.value.suggested_filename == "result.json"
        with page.expect_download(timeout=PATIENCE) as download:
            page.click("text=Download the report")
        assert download.value.suggested_filename == "report.html"
        # The address alone shows it all again.
        page.reload()
        assert page.locator("#right").text_content() == right


@pytest.mark.slow
def test_it_stops_and_resumes_from_clicks(browser, lab):
    with browser.visit(f"{lab.url}/attack") as visit:
        page = visit.page
        fill(page)
        page.check("input[name=slowly]")
        page.click("text=Start")
        wait(page, "Asking a simulated system with normal noise, SD 2")
        page.click("text=Stop")
        wait(page, "Stopped. All answers so far are kept.")
        page.click("text=Resume")
        wait(page, "Done: ")


def test_it_can_be_driven_by_the_keyboard_alone(browser, lab):
    with browser.visit(f"{lab.url}/attack") as visit:
        page = visit.page

        def tab_to(name):
            for _ in range(40):
                page.keyboard.press("Tab")
                if page.locator(":focus").get_attribute("id") == name:
                    return
            raise AssertionError(name)

        page.keyboard.press("Tab")
        assert page.locator(":focus").text_content() == "To the content"
        tab_to("people")
        for name in ("people", "questions", "noise", "size", "decoder", "seed"):
            assert page.locator(":focus").get_attribute("id") == name
            if name in SMALL:
                page.keyboard.press("Control+A")
                page.keyboard.type(SMALL[name])
            elif name == "noise":
                page.keyboard.type("normal")
            page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.locator(":focus").text_content() == "Start"
        page.keyboard.press("Enter")
        wait(page, "Done: ")
        assert page.locator("[role=status]").count() == 1


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
@pytest.mark.parametrize("address", ["/?statement=", "/attack", "/map"])
def test_every_page_fits_and_can_be_read(browser, lab, address, width, dark):
    with browser.visit(f"{lab.url}{address}", width=width, dark=dark) as visit:
        if address.startswith("/?"):
            visit.page.click("button")
            wait(visit.page, "How it came about")
        assert visit.overflow == 0
        assert visit.grave_violations() == []


@pytest.mark.parametrize(("width", "dark"), WINDOWS[:1])
def test_an_attack_that_went_wrong_fits_and_can_be_read_too(browser, lab, width, dark):
    with browser.visit(f"{lab.url}/attack", width=width, dark=dark) as visit:
        fill(visit.page, people="100", questions="60", size="9")
        visit.page.click("text=Start")
        wait(visit.page, "Done: ")
        assert visit.page.locator(".grid .cross").count() > 5
        for details in visit.page.locator("summary").all():
            details.click()
        assert visit.overflow == 0
        assert visit.grave_violations() == []


def test_a_script_shows_as_text(browser, lab):
    statement = "SELECT count(*) FROM loans WHERE status = '<script>alert(1)</script>'"
    with browser.visit(lab.url) as visit:
        visit.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        visit.page.fill("textarea", statement)
        visit.page.click("button")
        wait(visit.page, "How it came about")
        assert "<script>alert(1)</script>" in visit.page.locator(".layers").inner_text()


def test_an_example_is_asked_from_a_click_and_a_refusal_is_quoted(browser, lab):
    with browser.visit(lab.url) as visit:
        visit.page.click("text=By group")
        wait(visit.page, "GROUP BY status")
        visit.page.fill("textarea", EXAMPLES["Refused"])
        visit.page.click("button")
        wait(visit.page, "Combining conditions with `OR` is not allowed.")
        assert "statement=" in visit.page.url


def test_the_map_follows_a_slider(browser, lab):
    with browser.visit(f"{lab.url}/map") as visit:
        page = visit.page
        before = page.locator("#map .figure").text_content()
        page.locator("#sd").focus()
        page.keyboard.press("End")
        wait(page, "SD 32")
        assert page.locator("#sd-value").text_content() == "SD 32"
        assert page.locator(":focus").get_attribute("id") == "sd"
        assert page.locator("#map .figure").text_content() != before
        assert "stays within" in page.locator("#map").inner_text() or (
            "your system leaks" in page.locator("#map").inner_text()
        )
