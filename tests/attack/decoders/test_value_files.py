import numpy as np
import pytest
from countleak.attack.decoders.value_files import (
    read_amounts,
    read_categories,
    write_amounts,
    write_categories,
)
from countleak.GONE import Amounts, Categories

from countleak.errors import InputError

VALUES = Categories(
    np.array([3, 5]),
    ("A", "B"),
    np.array([[0.9, 0.1], [0.4, 0.6]]),
    np.array([True, False]),
    {"decoder": "categorical"},
)
NUMBERS = Amounts(
    np.array([3, 5]),
    np.array([10.0, 20.5]),
    np.array([1.0, 2.0]),
    np.array([8.0, 17.0]),
    np.array([12.0, 24.0]),
    0.9,
    {"decoder": "sums"},
)


def test_values_read_back(tmp_path):
    write_categories(tmp_path / "values.jsonl", VALUES)
    again = read_categories(tmp_path / "values.jsonl")
    assert again.names == VALUES.names
    assert again.values.tolist() == ["A", "B"]
    assert again.claimed.tolist() == [True, False]
    assert np.array_equal(again.probability, VALUES.probability)
    assert again.basis == VALUES.basis


def test_numbers_read_back(tmp_path):
    write_amounts(tmp_path / "numbers.jsonl", NUMBERS)
    again = read_amounts(tmp_path / "numbers.jsonl")
    for name in ("ids", "values", "error", "low", "high"):
        assert np.array_equal(getattr(again, name), getattr(NUMBERS, name))
    assert again.level == 0.9
    assert again.basis == NUMBERS.basis


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (['{"id":1,"value":"C","probability":[1,0]}'], "line 2: expected"),
        (['{"id":1,"value":"A","probability":[1]}'], "line 2: expected"),
        (['{"id":1,"value":"A","probability":[2,0]}'], "line 2: expected"),
        (['{"id":"x","probability":[1,0]}'], "line 2: id is 'x'"),
        (['{"id":1,"probability":[1,0]}'] * 2, "line 3: id 1 stood on line 2 already"),
        ([], "no guess in this file"),
    ],
)
def test_damaged_values_are_reported_by_line(tmp_path, lines, complaint):
    path = tmp_path / "values.jsonl"
    header = f'{{"countleak":"categories","version":1,"people":{len(lines)},"values":["A","B"]}}'
    path.write_text("\n".join([header, *lines]) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_categories(path)


@pytest.mark.parametrize(
    ("header", "lines", "complaint"),
    [
        ('"level":0.9,"people":1', ['{"id":1,"value":"x"}'], "line 2: value is 'x'"),
        ('"level":0.9,"people":2', ['{"id":1,"value":1,"error":1,"low":0,"high":2}'], "promises 2"),
        ('"people":1', ['{"id":1}'], "line 1: the header gives no level"),
    ],
)
def test_damaged_numbers_are_reported_by_line(tmp_path, header, lines, complaint):
    path = tmp_path / "numbers.jsonl"
    path.write_text("\n".join([f'{{"countleak":"amounts","version":1,{header}}}', *lines]) + "\n")
    with pytest.raises(InputError, match=complaint):
        read_amounts(path)
