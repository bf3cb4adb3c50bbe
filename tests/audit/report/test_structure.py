from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from countleak.audit.report.structure import structured
from countleak.errors import InputError


@dataclass(frozen=True)
class Part:
    share: float
    pair: tuple[int, float] | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...]
    table: dict[str, int]
    anything: dict[str, Any] = field(default_factory=dict)


WHOLE = Whole("w", (Part(0.5), Part(1.0, (2, 3.0))), {"a": 1}, {"x": [None, {"y": "z"}]})


def test_what_was_written_comes_back():
    record = asdict(WHOLE)
    record["parts"] = [
        {**part, "pair": part["pair"] and list(part["pair"])} for part in record["parts"]
    ]
    assert structured(Whole, record) == WHOLE
    assert structured(Whole, {**record, "later": 1}) == WHOLE
    assert structured(Part, {"share": 1}) == Part(1.0)


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ([], "it must be a JSON object"),
        ({"share": 1.0, "pair": 3}, "pair must be a list"),
        ({"share": 1.0, "pair": [1]}, "pair must be a list of 2"),
        ({"share": 1.0, "pair": [1, "x"]}, r"pair\[1\] is 'x', expected float"),
        ({"share": True}, "share is True, expected float"),
        ({}, "share is missing"),
    ],
)
def test_what_does_not_fit_is_named(record, complaint):
    with pytest.raises(InputError, match=complaint):
        structured(Part, record)
