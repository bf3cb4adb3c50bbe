"""The report as SARIF 2.1.0, for whatever shows findings of checks beside the code."""

from typing import Any

import countleak
from countleak.audit.report.report import Report
from countleak.audit.report.verdict import Outcome

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULE = "counts-leak-secrets"
# The answers as a whole; viewers show nothing that has no line.
PLACE = {
    "artifactLocation": {"uri": "answers.jsonl", "index": 0},
    "region": {"startLine": 1},
}
HELP = (
    "Answer fewer questions, or with more noise, and audit again. report.html beside this file "
    "says how much of each would do, and what it costs."
)


def to_sarif(report: Report) -> dict[str, Any]:
    """The log: one run with one result, about the audit's answers.

    What shows nothing is `open`, never a pass. Passing a threshold is a pass of that alone.
    """
    verdict, judged = report.verdict, report.audit.judged
    judgement = f"{judged.words.rstrip('.')}." if judged.words else ""
    text = " ".join(filter(None, (verdict.sentence, judgement, verdict.caution)))
    kind, level = _kind(report)
    # The location of the result is the first artifact.
    digests = sorted(report.digests.items(), key=lambda item: item[0] != "answers.jsonl")
    result = {
        "ruleId": RULE,
        "ruleIndex": 0,
        "kind": kind,
        "level": level,
        "message": {"text": f"{verdict.headline}. {text}"},
        "locations": [{"physicalLocation": PLACE}],
        "partialFingerprints": {
            "audit/v1": f"{report.audit.secret} of {report.audit.system}"[:200],
        },
    }
    run = {
        "tool": {"driver": _driver()},
        "artifacts": [
            {"location": {"uri": name}, "hashes": {"sha-256": digest}} for name, digest in digests
        ],
        "invocations": [
            {
                "executionSuccessful": verdict.outcome is not Outcome.NOTHING,
                "endTimeUtc": report.audit.finished.replace("+00:00", "Z"),
            }
        ],
        "results": [result],
        "properties": {"outcome": verdict.outcome.value, "simulated": report.audit.simulated},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _kind(report: Report) -> tuple[str, str]:
    """SARIF's kind and level of the verdict."""
    if report.audit.judged.failed:
        return "fail", "error"
    if report.audit.judged.failed is False:
        return "pass", "none"
    match report.verdict.outcome:
        case Outcome.LEAKS:
            return "fail", "warning"
        case Outcome.CONFIDENCE:
            return "review", "none"
    return "open", "none"


def _driver() -> dict[str, Any]:
    return {
        "name": "countleak",
        "semanticVersion": countleak.__version__,
        "rules": [
            {
                "id": RULE,
                "name": "CountsLeakSecrets",
                "shortDescription": {"text": "Counts give away people's secrets"},
                "fullDescription": {
                    "text": "From the counts that a system answers, the secret of single people "
                    "can be worked out better than by guessing. Passing is no proof of anonymity."
                },
                # Code scanning on GitHub rejects rules without it.
                "help": {"text": HELP},
                "defaultConfiguration": {"level": "error"},
            }
        ],
    }
