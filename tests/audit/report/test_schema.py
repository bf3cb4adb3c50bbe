import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator, ValidationError

from countleak.audit.report.report import read_report
from countleak.audit.report.schema import report_schema

SHIPPED = json.loads((files("countleak.audit.report") / "report.schema.json").read_text())


def test_the_schema_that_is_shipped_is_that_of_the_report():
    Draft202012Validator.check_schema(SHIPPED)
    assert json.loads(json.dumps(report_schema())) == SHIPPED, (
        "write it again: python -m countleak.audit.report.schema"
    )


@pytest.mark.parametrize("which", ["leaking", "hopeless", "unknown", "valued", "numbers"])
@pytest.mark.parametrize("show", [False, True])
def test_every_report_keeps_to_it(which, show, request):
    report = read_report(request.getfixturevalue(which).folder, show_ids=show)
    Draft202012Validator(SHIPPED).validate(json.loads(json.dumps(report.record())))


def test_it_notices_what_does_not_belong(leaking):
    record = json.loads(json.dumps(read_report(leaking.folder).record()))
    for damage in (
        {"verdict": {**record["verdict"], "outcome": "all clear"}},
        {"people": {**record["people"], "names": []}},
        {"version": 9},
    ):
        with pytest.raises(ValidationError):
            Draft202012Validator(SHIPPED).validate({**record, **damage})
