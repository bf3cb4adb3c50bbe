"""The report as JUnit XML, for whatever counts tests."""

from xml.etree import ElementTree

from countleak.audit.report.report import Report
from countleak.audit.report.verdict import Outcome
from countleak.foreign import clean_lines

SUITE = "countleak audit"
SHOWS_NOTHING = (Outcome.NOTHING, Outcome.MISFIT)


def to_junit(report: Report) -> str:
    """Two tests: whether the attack could be carried out, and whether no more leaks than allowed.

    The first is an error where the audit shows nothing. The second is skipped, never passed, where
    nobody said how much is allowed, or where it cannot be told.
    """
    judged, verdict = report.audit.judged, report.verdict
    shows_nothing = verdict.outcome in SHOWS_NOTHING
    suite = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests="2",
        errors=str(int(shows_nothing)),
        failures=str(int(judged.failed is True)),
        skipped=str(int(judged.failed is None)),
        timestamp=report.audit.finished.removesuffix("+00:00"),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report).items():
        ElementTree.SubElement(properties, "property", name=name, value=_plain(value))
    attacked = _case(suite, "the attack could be carried out")
    if shows_nothing:
        ElementTree.SubElement(
            attacked, "error", message=_plain(verdict.headline), type=verdict.outcome.name
        ).text = _plain(verdict.sentence)
    kept = _case(suite, "no more leaks than is allowed")
    if judged.failed:
        message = _plain(judged.words)
        failure = ElementTree.SubElement(kept, "failure", message=message, type="leak")
        failure.text = _plain(verdict.sentence)
    elif judged.failed is None:
        why = judged.words or judged.nothing or "nobody said how much may leak (--fail-above)"
        ElementTree.SubElement(kept, "skipped", message=_plain(why))
    ElementTree.SubElement(kept, "system-out").text = _plain(
        f"{verdict.headline}. {verdict.sentence} {verdict.caution}"
    )
    root = ElementTree.Element("testsuites", name=SUITE)
    root.append(suite)
    ElementTree.indent(root)
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname="countleak", name=name)


def _properties(report: Report) -> dict[str, str]:
    audit = report.audit
    return {
        "system": audit.system,
        "secret": audit.secret,
        "people": str(audit.people),
        "answers": str(audit.asked.answers),
        "outcome": report.verdict.outcome.value,
        "countleak": audit.versions.get("countleak", ""),
    }


def _plain(text: str) -> str:
    """Text that XML can hold: control characters are none."""
    return clean_lines(text)
