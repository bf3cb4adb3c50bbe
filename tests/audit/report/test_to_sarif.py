from dataclasses import replace

import pytest

from countleak.audit.report.report import read_report
from countleak.audit.report.to_sarif import to_sarif
from countleak.audit.report.verdict import Outcome

# What SARIF 2.1.0 allows for these (sections 3.27.9 and 3.27.10).
KINDS = {"pass", "open", "informational", "notApplicable", "review", "fail"}
LEVELS = {"none", "note", "warning", "error"}


@pytest.mark.parametrize("which", ["leaking", "hopeless", "unknown", "valued"])
def test_the_log_has_what_the_standard_requires(which, request):
    log = to_sarif(read_report(request.getfixturevalue(which).folder))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "countleak"
    (result,) = run["results"]
    assert result["kind"] in KINDS
    assert result["level"] in LEVELS
    # A level other than none goes with a failure, and with nothing else (3.27.10).
    assert (result["kind"] == "fail") == (result["level"] != "none")
    assert result["message"]["text"]
    rule = driver["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"]
    # What GitHub's code scanning needs besides (rule GH2012 of the SARIF multitool).
    assert rule["help"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert run["artifacts"][place["index"]]["location"]["uri"] == place["uri"]
    assert all(isinstance(i["executionSuccessful"], bool) for i in run["invocations"])
    assert run["invocations"][0]["endTimeUtc"].endswith("Z")


def kind(report):
    result = to_sarif(report)["runs"][0]["results"][0]
    return result["kind"], result["level"]


def test_what_shows_nothing_never_passes(leaking, hopeless, unknown):
    report = read_report(leaking.folder)
    assert kind(report) == ("fail", "error")
    assert kind(read_report(unknown.folder)) == ("fail", "error")
    passed = read_report(hopeless.folder)
    assert kind(passed) == ("pass", "none")
    unjudged = replace(report.audit.judged, failed=None, allowed=None, words="")
    open_report = replace(report, audit=replace(report.audit, judged=unjudged))
    assert kind(open_report) == ("fail", "warning")
    for outcome, expected in (
        (Outcome.NOTHING, "open"),
        (Outcome.MISFIT, "open"),
        (Outcome.NOT_SHOWN, "open"),
        (Outcome.CONFIDENCE, "review"),
    ):
        verdict = replace(report.verdict, outcome=outcome)
        assert kind(replace(open_report, verdict=verdict)) == (expected, "none")
