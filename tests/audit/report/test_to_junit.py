from dataclasses import replace
from xml.etree import ElementTree

import pytest

from countleak.audit.report.report import read_report
from countleak.audit.report.to_junit import to_junit
from countleak.audit.report.verdict import Outcome


def suite_of(report):
    (suite,) = ElementTree.fromstring(to_junit(report))
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases)
    for what, tag in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
        assert int(suite.get(what)) == len(suite.findall(f"testcase/{tag}"))
    return suite


@pytest.mark.parametrize(
    ("which", "failures", "skipped"),
    [("leaking", 1, 0), ("hopeless", 0, 0), ("valued", 0, 1), ("numbers", 0, 1)],
)
def test_the_second_test_is_whether_too_much_leaks(which, failures, skipped, request):
    suite = suite_of(read_report(request.getfixturevalue(which).folder))
    assert (int(suite.get("failures")), int(suite.get("skipped"))) == (failures, skipped)
    assert suite.get("errors") == "0"


def test_an_audit_that_shows_nothing_is_an_error_and_no_pass(leaking):
    report = read_report(leaking.folder)
    judged = replace(report.audit.judged, failed=None, words="", nothing="every answer is 0\x07")
    nothing = replace(
        report,
        audit=replace(report.audit, judged=judged),
        verdict=replace(report.verdict, outcome=Outcome.NOTHING),
    )
    suite = suite_of(nothing)
    assert suite.get("errors") == suite.get("skipped") == "1"
    assert "every answer is 0" in suite.find("testcase/skipped").get("message")
