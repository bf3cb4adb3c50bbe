"""JSON-stat, 2.0 and 1.x: numbers by position, their status, and code lists."""

import json

import pytest

from countleak.audit.releases.reading import Reading, read_release
from countleak.errors import InputError

SEX = {"index": {"T": 0, "F": 1, "M": 2}, "label": {"T": "Total", "F": "Women", "M": "Men"}}
DIMENSIONS = {
    "region": {"category": {"index": ["L", "Y"], "label": {"L": "Leeds", "Y": "York"}}},
    "sex": {"category": {**SEX, "child": {"T": ["F", "M"]}}},
}
DATASET = {
    "version": "2.0",
    "class": "dataset",
    "id": ["region", "sex"],
    "size": [2, 3],
    "dimension": DIMENSIONS,
    "value": [5, 3, None, 7, 4, 3],
    "status": {"2": "c"},
}


@pytest.fixture
def read(tmp_path):
    def read(record, how=None):
        path = tmp_path / "t.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record))
        return read_release(path, how)

    return read


def numbers(release):
    return {number.labels: number.value for number in release.numbers}


def test_numbers_are_read_by_position_and_status_is_the_mark_of_what_is_not_shown(read):
    release = read(DATASET)
    assert release.dimensions == ("region", "sex")
    assert numbers(release) == {
        ("Leeds", "Total"): 5,
        ("Leeds", "Women"): 3,
        ("Leeds", "Men"): None,
        ("York", "Total"): 7,
        ("York", "Women"): 4,
        ("York", "Men"): 3,
    }
    assert [n.mark for n in release.numbers if n.value is None] == ["c"]
    assert release.trees == {"sex": {"Total": ("Women", "Men")}}


def test_an_index_gives_places_in_whatever_order_it_is_written(read):
    shuffled = {**SEX, "index": {"M": 2, "T": 0, "F": 1}}
    dimension = {**DIMENSIONS, "sex": {"category": shuffled}}
    assert numbers(read({**DATASET, "dimension": dimension})) == numbers(read(DATASET))


def test_a_bundle_with_sparse_values_has_the_numbers_that_it_has(read):
    inside = {"id": ["region", "sex"], "size": [2, 3], "role": {}, **DIMENSIONS}
    release = read({"population": {"dimension": inside, "value": {"0": 5, "4": 4}, "status": "e"}})
    assert numbers(release) == {("Leeds", "Total"): 5, ("York", "Women"): 4}


def test_of_several_measures_one_is_named(read):
    measures = {"category": {"index": ["p", "s"], "label": {"p": "People", "s": "Share"}}}
    record = {
        "id": ["region", "measure"],
        "size": [2, 2],
        "role": {"metric": ["measure"]},
        "dimension": {"region": DIMENSIONS["region"], "measure": measures},
        "value": [5, 0.5, 7, 0.25],
    }
    with pytest.raises(InputError, match="it has 'People', 'Share' by 'measure'"):
        read(record)
    release = read(record, Reading(count="People"))
    assert release.dimensions == ("region",)
    assert numbers(release) == {("Leeds",): 5, ("York",): 7}


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ("{", "not JSON"),
        ("[" * 10**5, "not JSON"),
        ("[]", "neither JSON-stat nor SDMX-JSON"),
        ({"a": {"value": []}, "b": {"value": []}}, "2 JSON-stat datasets"),
        ({**DATASET, "value": [1, 2]}, "2 numbers where the dimensions have 6"),
        ({**DATASET, "value": {"9": 1}}, "there is a number at 9, but there are 6"),
        ({**DATASET, "value": {"x": 1}}, "not JSON-stat that can be read"),
        ({**DATASET, "size": [2, 4], "value": [0] * 8}, "'sex' has not 4 categories"),
        ({**DATASET, "size": [2]}, "2 dimensions but sizes"),
        ({**DATASET, "id": ["region", "age"]}, "not JSON-stat that can be read"),
        ({**DATASET, "value": [1.5] * 6}, "'1.5' is no count"),
        ({**DATASET, "value": [-1] * 6}, "'-1' is no count"),
        ({**DATASET, "size": [10**9, 10**9], "value": {}}, "'region' has not"),
    ],
)
def test_a_damaged_file_gets_one_line(read, record, complaint):
    with pytest.raises(InputError, match=complaint) as raised:
        read(record)
    assert "\n" not in str(raised.value)
