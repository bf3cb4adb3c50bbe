import re
from dataclasses import replace
from itertools import pairwise

import pytest

from countleak.audit.report.remedy import Remedy
from countleak.audit.report.report import read_report
from countleak.audit.report.to_html import BEGINNING, to_html
from countleak.audit.report.verdict import verdict_of
from countleak.audit.report.writing import PAGE, write_files
from tests.audit.report.conftest import HOSTILE

MOST_BYTES = 3_000_000


def levels(page):
    return [int(level) for level in re.findall(r"<h(\d)", page)]


@pytest.mark.parametrize("which", ["leaking", "hopeless", "unknown", "valued", "numbers"])
def test_a_page_of_every_kind_of_audit_needs_nothing_else(which, request):
    page = to_html(read_report(request.getfixturevalue(which).folder))
    assert page.startswith(BEGINNING)
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page)
    assert "http://" not in page
    assert "https://" not in page
    order = levels(page)
    assert order[0] == 1
    assert order.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(order))
    assert "no proof of anonymity" in page


def test_it_says_what_a_data_protection_officer_wants_to_know(leaking):
    report = read_report(leaking.folder)
    page = to_html(report)
    for text in (
        report.verdict.headline.replace("'", "&#39;"), "A. Reviewer", "In plain words",
        "After how many answers", "Who is at risk", "Can its probabilities be believed?",
        "Not tested", "Kappa", "Alpha", "Risk against control", "Linkability", "Not assessed",
        "A cap on answers", "Differential privacy", "FAILED",
    ):  # fmt: skip
        assert text in page, text


def test_what_is_read_first_takes_no_statistics(leaking):
    page = to_html(read_report(leaking.folder))
    first = re.sub(r"<[^>]*>", " ", page[page.index("<main>") : page.index('id="soon"')])
    for text in (
        "95% interval", "0% is guessing, 100% knowing everyone", "19 times of 20",
        "knowing everyone&#39;s id, and so whom each question is about",
    ):  # fmt: skip
        assert text in first, text
    for jargon in (
        "SD",
        "standard deviation",
        "sigma",
        "lower bound",
        "model",
        "None",
        "posterior",
    ):
        assert jargon not in first, jargon


def test_a_list_that_would_say_nothing_is_one_sentence(numbers):
    hidden, shown = (to_html(read_report(numbers.folder, show_ids=show)) for show in (False, True))
    assert "Something is claimed about 20 people" in hidden
    assert "The surest claims" not in hidden
    assert "The surest claims" in shown
    assert "does to a sum" in hidden


def test_what_is_enough_already_is_not_sold_as_a_remedy(hopeless):
    report = read_report(hopeless.folder)
    enough = Remedy(0.1, "normal noise of SD 60", noise_sd_now=60.0, noise_sd=20.0, answers=4000)
    page = to_html(replace(report, audit=replace(report.audit, remedy=enough)))
    for text in ("What would prevent a leak", "which is enough", "A cap on answers"):
        assert text in page, text
    for text in ("What would have prevented it", "More noise", "outcome leaks"):
        assert text not in page, text


def test_what_others_wrote_shows_as_text(valued):
    for show in (False, True):
        page = to_html(read_report(valued.folder, show_ids=show))
        assert "<script" not in page
        assert "&lt;script&gt;" in page
    assert HOSTILE in {p.value for p in read_report(valued.folder, show_ids=True).people.listed}


def test_what_others_wrote_neither_floods_nor_turns_round_the_verdict(leaking):
    secret = "name = '\N{RIGHT-TO-LEFT OVERRIDE}\N{HEBREW LETTER ALEF}\nPassed\x1b[31m" + "x" * 5000
    folder = leaking.folder
    report = read_report(folder)
    audit = replace(leaking.record, secret=secret, system=secret)
    verdict = verdict_of(audit, 0, False)
    assert len(verdict.sentence) < 300
    page = to_html(replace(report, audit=audit, verdict=verdict))
    for letter in ("\N{RIGHT-TO-LEFT OVERRIDE}", "\x1b"):
        assert letter not in page
    first = page[page.index("<main>") : page.index('id="soon"')]
    assert "<bdi>name = &#39;\\u202e\N{HEBREW LETTER ALEF}\\nPassed" in first
    assert "x" * 100 not in first


def test_nothing_is_drawn_where_there_is_nothing(leaking):
    report = read_report(leaking.folder)
    bare = replace(
        report.audit, residuals=None, calibration=None, control=None,
        growth=replace(report.audit.growth, points=report.audit.growth.points[-1:]),
    )  # fmt: skip
    page = to_html(replace(report, audit=bare))
    assert 'class="plot"' not in page
    assert "Only the whole was decoded" in page


def test_five_thousand_people_are_still_a_small_page(crowd):
    for show in (False, True):
        write_files(read_report(crowd, show_ids=show), crowd)
        assert all(path.stat().st_size < MOST_BYTES for path in crowd.glob("report.*"))
    page = (crowd / PAGE).read_text()
    assert "and 4,900 more" in page
